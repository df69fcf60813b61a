// Light and dark. Colours stand in report.css, those of pictures in report/pictures/theme.json.

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const THEMES = [
  ["auto", "◐ auto"],
  ["light", "light"],
  ["dark", "dark"],
];
let theme = "auto";
let onPaper = false;

// The browser may refuse to keep anything for a file.
function stored(value) {
  try {
    if (value !== undefined) localStorage.setItem("medtasks-report theme", value);
    return localStorage.getItem("medtasks-report theme");
  } catch {
    return null;
  }
}

const isDark = () => !onPaper && (theme === "dark" || (theme === "auto" && prefersDark.matches));

function applyTheme() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
}

// The choice of colours; `changed` draws what depends on them.
function themeMenu(changed) {
  const choose = () => {
    theme = menu.value;
    stored(theme);
    changed();
  };
  const menu = make("select", { id: "theme", "aria-label": "Light or dark", onchange: choose });
  for (const [value, words] of THEMES) menu.append(make("option", { value, textContent: words, selected: value === theme }));
  return menu;
}

if (THEMES.some(([value]) => value === stored())) theme = stored();
applyTheme();
