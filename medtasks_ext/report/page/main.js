// The frame: header, partsBar, routes, paper.

const PAGES = {
  task: { title: () => datasets[datasetAt.get(viewId)]?.name ?? viewId, draw: drawTask, parent: "tasks" },
  model: { title: () => viewId, draw: drawModel, parent: "leaderboard" },
};

const main = document.getElementById("main");
const partsBar = document.getElementById("views");

function buildHeader() {
  const kinds = [
    ["own run", ownEntries.length],
    ["published model", entries.length - ownEntries.length],
  ]
    .filter(([, n]) => n)
    .map(([name, n]) => plural(n, name));
  const texts = {
    none: "no texts of documents",
    open: "texts of open documents only",
    all: "texts of documents, gated ones included",
  }[report.text];
  const facts = [
    `made ${shownDate(report.made)}`,
    `medtasks ${report.version}`,
    ...kinds,
    plural(expected.length, "task"),
    texts,
  ].filter(Boolean);
  const notices = report.differences.length + report.faults.length;
  const known = make("a", {
    className: "know",
    href: address("overview"),
    textContent: plural(notices, "thing to know", "things to know"),
  });
  known.addEventListener("click", () => setTimeout(() => document.getElementById("know")?.scrollIntoView()));
  const themes = make("select", { id: "theme", "aria-label": "Colours", onchange: () => chooseTheme(themes.value) });
  for (const [value, title] of THEMES)
    themes.append(make("option", { value, textContent: title, selected: value === theme }));
  document
    .getElementById("top")
    .replaceChildren(
      make(
        "div",
        { className: "heading" },
        make("h1", { textContent: report.title }),
        make("button", { type: "button", className: "small quiet", textContent: "Print this part", onclick: () => print() }),
        make("button", { type: "button", className: "small quiet", id: "print-all", textContent: "Print all", onclick: printAll }),
        themes,
      ),
      make("p", { className: "facts-line" }, facts.join(" · "), notices ? " · " : "", notices ? known : null),
      report.sample ? sampleBanner() : "",
    );
}

function sampleBanner() {
  const all = ownEntries.length > 0 && ownEntries.every((entry) => entries[entry].sample);
  return make(
    "div",
    { className: "banner", role: "note" },
    text("strong", "", "SAMPLE DATA"),
    make("span", {
      textContent: all
        ? "All own runs here were made on synthetic rows. Their scores show how the software works; they say nothing about any model."
        : "Some runs here were made on synthetic rows. They are marked SAMPLE, are never ranked beside real ones, and their scores say nothing about any model.",
    }),
  );
}

// The day and hour where the report was made, wherever it is read.
function shownDate(made) {
  const [, day, time] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/.exec(made) ?? [];
  if (!day) return String(made);
  const words = new Date(`${day}T12:00:00Z`).toLocaleDateString("en-GB", {
    day: "numeric",
    month: "long",
    year: "numeric",
    timeZone: "UTC",
  });
  return `${words}, ${time}`;
}

function buildNavigation() {
  partsBar.replaceChildren(
    make(
      "ul",
      {},
      ...PARTS.map((part) => make("li", {}, make("a", { textContent: part.title, "data-part": part.id }))),
    ),
  );
}

function chooseTheme(value) {
  theme = value;
  stored(value);
  show();
}

// ------------------------------------------------------------------ drawing

function show() {
  applyTheme();
  const page = PAGES[view];
  const part = PARTS.find((item) => item.id === view) ?? PARTS[0];
  const shown = page ? { ...page, title: page.title(), filters: false } : part;
  for (const item of partsBar.querySelectorAll("a")) {
    const here = item.dataset.part === (page ? page.parent : part.id);
    item.href = addressOfPart(PARTS.find(({ id }) => id === item.dataset.part));
    if (here) item.setAttribute("aria-current", page ? "true" : "page");
    else item.removeAttribute("aria-current");
  }
  filterBar.hidden = !shown.filters || onPaper;
  showFilters();
  hideTip();
  forgetPictures();
  keepFocus(() =>
    main.replaceChildren(...(onPaper && allParts && !page ? PARTS.filter(isHere).flatMap((item) => section(item)) : section(shown, page))),
  );
  main.querySelectorAll(".scroll:not(.sideways)").forEach(settle);
  document.title = shown === PARTS[0] ? report.title : `${shown.title} · ${report.title}`;
}

// A table that is too wide scrolls in its box, which then takes the focus; another stands free.
function settle(box) {
  if (box.scrollWidth > box.clientWidth) box.classList.remove("steady");
  else if (box.scrollHeight <= box.clientHeight) box.removeAttribute("tabindex");
}

function section(part, page) {
  const heading = make(
    "h2",
    {},
    page
      ? link(address(page.parent), `${PARTS.find((item) => item.id === page.parent).title} /`, { className: "back" })
      : null,
    page ? " " : null,
    part.title,
  );
  return [
    make(
      "section",
      { className: "part", id: `part-${part.id ?? view}` },
      heading,
      part.about ? text("p", "about", part.about) : null,
      onPaper && part.filters ? text("p", "selection", selectionInWords()) : null,
      ...part.draw().filter(Boolean),
    ),
  ];
}

// A drawing replaces what had the focus or was scrolled; its successor takes over.
function keepFocus(draw) {
  const held = document.activeElement?.dataset?.key;
  const caret = document.activeElement?.selectionStart;
  draw();
  if (!held) return;
  const next = main.querySelector(`[data-key="${CSS.escape(held)}"]`);
  if (!next) return;
  next.focus({ preventScroll: true });
  if (isNumber(caret) && next.setSelectionRange) next.setSelectionRange(caret, caret);
}

function route() {
  const before = [view, viewId].join("/");
  readAddress();
  show();
  if (before === [view, viewId].join("/")) return;
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
  const current = partsBar.querySelector("[aria-current]");
  if (current)
    partsBar.firstChild.scrollLeft =
      current.parentElement.offsetLeft - partsBar.clientWidth / 2 + current.clientWidth / 2;
}

// ------------------------------------------------------------------ paper

// On paper a part stands in light colours, unfolded; all of them below each other where that was asked for.
let allParts = false;

function printAll() {
  allParts = true;
  print();
}

function printing(on) {
  if (on === onPaper) return;
  onPaper = on;
  show();
}

addEventListener("beforeprint", () => printing(true));
addEventListener("afterprint", () => {
  allParts = false;
  printing(false);
});
matchMedia("print").addEventListener("change", (event) => printing(event.matches));
prefersDark.addEventListener("change", () => {
  if (theme === "auto") show();
});

let lastWidth = innerWidth;
let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    if (innerWidth === lastWidth || onPaper) return;
    if (innerWidth >= WIDE !== lastWidth >= WIDE) document.getElementById("more-filters").open = innerWidth >= WIDE;
    lastWidth = innerWidth;
    show();
  }, 150);
});

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address holds what is shown
  main.focus();
});

// ------------------------------------------------------------------ start

readAddress();
buildHeader();
buildNavigation();
buildFilters();
show();
addEventListener("hashchange", route);
