// Light and dark, and colours for canvases. CSS has its own in report.css.

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

if (THEMES.some(([value]) => value === stored())) theme = stored();
applyTheme();

const cssColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function parse(hex) {
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

// Between colours at equal distances; place on 0-1.
function ramp(stops, place) {
  const scaled = Math.min(Math.max(place, 0), 1) * (stops.length - 1);
  const index = Math.min(Math.floor(scaled), stops.length - 2);
  const [from, to] = [stops[index], stops[index + 1]];
  return from.map((part, channel) => Math.round(part + (to[channel] - part) * (scaled - index)));
}

// Dark to light through blue and green: grows in lightness alone, so it reads without colour, too.
const SEQUENTIAL = ["#3b0f55", "#3f4a89", "#2b758e", "#22a087", "#6ec75a", "#f4e428"].map(parse);
// Blue and orange are told apart with every common colour deficiency.
const DIVERGING = {
  light: ["#9c4a00", "#dd8a3e", "#f6d3ae", "#f7f7f5", "#bcd8ee", "#5b9fd0", "#12548f"].map(parse),
  dark: ["#ffb266", "#c9752a", "#6e4420", "#2a3038", "#22496b", "#3d87c4", "#8cc8ff"].map(parse),
};

const rgb = (parts) => `rgb(${parts.join(" ")})`;
const sequential = (value) => ramp(SEQUENTIAL, value);
const diverging = (value) => ramp(DIVERGING[isDark() ? "dark" : "light"], (value + 1) / 2);

// Black or white, whichever is easier to read on a colour (relative luminance, WCAG 2).
function inkOn(parts) {
  const [r, g, b] = parts.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

// Series of dot plots: a colour (CSS --series-N) and a shape each.
const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down", "bar", "ring"];

function marker(index, x, y, size = 5) {
  const attributes = { class: `mark series-${index % 8}` };
  const polygon = (...points) =>
    svg("polygon", { ...attributes, points: points.map(([dx, dy]) => `${x + dx * size},${y + dy * size}`).join(" ") });
  switch (SHAPES[index % 8]) {
    case "square":
      return svg("rect", {
        ...attributes,
        x: x - size * 0.9,
        y: y - size * 0.9,
        width: size * 1.8,
        height: size * 1.8,
      });
    case "triangle":
      return polygon([0, -1.15], [1.1, 0.85], [-1.1, 0.85]);
    case "diamond":
      return polygon([0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]);
    case "cross":
      return polygon(
        [-1.1, -0.4],
        [-0.4, -0.4],
        [-0.4, -1.1],
        [0.4, -1.1],
        [0.4, -0.4],
        [1.1, -0.4],
        [1.1, 0.4],
        [0.4, 0.4],
        [0.4, 1.1],
        [-0.4, 1.1],
        [-0.4, 0.4],
        [-1.1, 0.4],
      );
    case "down":
      return polygon([0, 1.15], [1.1, -0.85], [-1.1, -0.85]);
    case "bar":
      return svg("rect", { ...attributes, x: x - size * 0.5, y: y - size * 1.2, width: size, height: size * 2.4 });
    case "ring":
      return svg("circle", { ...attributes, cx: x, cy: y, r: size * 0.85, "data-ring": "" });
    default:
      return svg("circle", { ...attributes, cx: x, cy: y, r: size });
  }
}
