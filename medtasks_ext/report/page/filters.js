// The filters of a page: some stand in sight as pills, the others in menus, beside a search. What is chosen stands in
// the address.

const filterBar = document.getElementById("filters");
const WIDE = 900; // from here on all filters stand open
// {key, title, values: [[value, title]], pills: in sight, single: one value at a time, counts() -> value -> what it would
// give, fits(facts of a model, value): of filters of models}
let filters = [];
let filterParts = []; // {filter, value, box, counter}

// Filters of models, for all pages that have some.
const SIZES = [SIZE_CLASSES[0], ["-10", "up to 10 B", (size) => isNumber(size) && size <= 10], ...SIZE_CLASSES.slice(1)];
const modelFilter = (key, title, values, fits) => ({ key, title, values, fits });
const ACCESS = [["open", "open"], ["proprietary", "proprietary"]];
const DOMAINS = [["general", "general"], ["medical", "medical"]];
const REASONING = [["yes", "reasons"], ["no", "does not"]];
const MODEL_FILTERS = [
  modelFilter("size", "Size", SIZES, ({ size }, value) => SIZES.find(([id]) => id === value)[2](size)),
  modelFilter("weights", "Weights", ACCESS, ({ access }, value) => access === value),
  modelFilter("domain", "Domain", DOMAINS, ({ domain }, value) => domain === value),
  modelFilter("reasoning", "Reasoning", REASONING, ({ reasoning }, value) => reasoning === value),
];

// The chosen values of a filter, unknown ones left out; empty means all.
function chosen(key) {
  const known = new Set(filters.find((filter) => filter.key === key)?.values.map(([id]) => id));
  return listOption(key).filter((value) => known.has(value));
}

// Whether a model is among those that the filters of models leave.
const fitsFilters = (facts) =>
  filters.every(({ key, fits }) => !fits || !chosen(key).length || chosen(key).some((value) => fits(facts, value)));

const fitsSearch = (name) =>
  option("q").toLowerCase().split(/\s+/).every((word) => name.toLowerCase().includes(word));

// {found: filters, placeholder: of the search, more: nodes of the folded part}
function buildFilters({ found, placeholder, more = [] }) {
  filters = found;
  filterParts = [];
  const fieldset = (filter, className, legend) =>
    make("fieldset", { className }, make("legend", { className: legend, textContent: filter.title }), ...boxes(filter));
  const pills = filters.filter((filter) => filter.pills).map((filter) => fieldset(filter, "pills", ""));
  const menus = filters
    .filter((filter) => !filter.pills && filter.values.length > 1)
    .map((filter) => menuOf(filter, fieldset(filter, "choices", "spoken")));
  const title = "Without filters, as the page was opened";
  filterBar.replaceChildren(
    make("div", { className: "main-filters" }, ...pills, make("p", { className: "selection", role: "status" })),
    make(
      "details",
      { id: "more-filters", open: innerWidth >= WIDE },
      make("summary", { textContent: "More filters and search" }),
      make(
        "div",
        { className: "menus" },
        ...menus,
        searchBox("q", placeholder, `${placeholder} by name or organisation`),
        ...more,
        button("Reset", resetFilters, { className: "", id: "reset", title }),
      ),
    ),
  );
}

function boxes(filter) {
  const { key, values, single } = filter;
  return values.map(([value, title]) => {
    const box = make("input", { type: single ? "radio" : "checkbox", value, name: key, onchange: () => toggle(filter) });
    const counter = text("span", "n", "");
    filterParts.push({ filter, value, box, counter });
    return make("label", {}, box, text("span", "word", title), counter);
  });
}

function toggle(filter) {
  const values = filterParts.filter((part) => part.filter === filter && part.box.checked).map((part) => part.value);
  const all = values.length === filter.values.length;
  change({ [filter.key]: asList(all ? [] : values) });
}

function menuOf({ key, title }, panel) {
  const summary = make("summary", {}, title, text("span", "chosen", ""));
  const menu = make("details", { className: "menu", "data-filter": key, name: "filter-menu" }, summary, panel);
  menu.addEventListener("toggle", () => {
    if (menu.open) keepInside(panel);
  });
  return menu;
}

// A menu that would leave the window on the right opens to the left.
function keepInside(panel) {
  panel.classList.remove("leftwards");
  panel.classList.toggle("leftwards", panel.getBoundingClientRect().right > innerWidth);
}

document.addEventListener("pointerdown", (event) => closeMenus(event.target));
document.addEventListener("focusin", (event) => closeMenus(event.target));
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" ? document.querySelector(".menu[open]") : null;
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

function closeMenus(target) {
  for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(target)) menu.open = false;
}

function resetFilters() {
  change(Object.fromEntries([...filters.map(({ key }) => key), "q", "common"].map((key) => [key, null])));
}

// Ticks, counts and what is selected in words, after any change.
function showFilters(words) {
  for (const filter of filters) {
    const values = chosen(filter.key);
    const parts = filterParts.filter((part) => part.filter === filter);
    const counts = filter.counts?.();
    for (const { value, box, counter } of parts) {
      box.checked = values.includes(value);
      counter.textContent = counts ? String(counts(value)) : "";
      box.parentElement.classList.toggle("none", counter.textContent === "0");
    }
    const menu = filterBar.querySelector(`[data-filter="${filter.key}"]`);
    if (!menu) continue;
    menu.querySelector(".chosen").textContent = values.length ? String(values.length) : "";
    menu.hidden = !values.length && parts.every(({ counter }) => counter.textContent === "0");
  }
  const search = document.getElementById("search");
  if (search.value !== option("q")) search.value = option("q");
  filterBar.querySelector(".selection").textContent = words;
}
