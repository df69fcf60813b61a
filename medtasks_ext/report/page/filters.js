// One set of filters for all parts of the report. Suite and strategy stand in sight, the others fold.

const MAIN_FILTERS = ["suite", "strategy"];
const filterBar = document.getElementById("filters");
const WIDE = 900; // from here on all filters stand open
let filterParts = []; // {key, value, box, counter}

function buildFilters() {
  filterParts = [];
  const open = MAIN_FILTERS.map((key) =>
    make("fieldset", { className: "pills" }, make("legend", { textContent: titleOfFilter(key) }), ...boxes(key)),
  );
  const rest = FILTER_KEYS.filter((key) => !MAIN_FILTERS.includes(key) && filterValues.get(key).length > 1).map(
    foldedFilter,
  );
  const search = make("input", {
    type: "search",
    id: "search",
    placeholder: "Search models",
    value: option("q"),
    "aria-label": "Search models by name or organisation",
    oninput: () => change({ q: search.value || null }),
  });
  const common = make("input", {
    type: "checkbox",
    id: "common",
    onchange: () => change({ common: common.checked ? "1" : null }),
  });
  const state = make("p", { className: "selection", role: "status" });
  const reset = make("button", {
    type: "button",
    id: "reset",
    textContent: "Reset",
    title: "Back to the first suite, without other filters",
    onclick: resetFilters,
  });
  filterBar.replaceChildren(
    make("div", { className: "main-filters" }, ...open, state),
    make(
      "details",
      { id: "more-filters", open: innerWidth >= WIDE },
      make("summary", { textContent: "More filters and search" }),
      make(
        "div",
        { className: "menus" },
        ...rest,
        search,
        make(
          "label",
          { className: "check", title: "Compare on the tasks that every model shown has a score for" },
          common,
          "only tasks that all have",
        ),
        reset,
      ),
    ),
  );
}

function titleOfFilter(key) {
  return { strategy: "Strategy", kind: "Origin" }[key] ?? axisTitle(key);
}

function boxes(key) {
  return filterValues.get(key).map(([value, title]) => {
    const box = make("input", { type: "checkbox", value, name: key, onchange: () => toggle(key) });
    const counter = text("span", "n", "");
    filterParts.push({ key, value, box, counter });
    return make("label", {}, box, text("span", "word", title), counter);
  });
}

function toggle(key) {
  const values = filterParts.filter((part) => part.key === key && part.box.checked).map((part) => part.value);
  const all = values.length === filterValues.get(key).length;
  change({ [key]: asList(all ? [] : values) });
}

function foldedFilter(key) {
  const summary = make("summary", {}, titleOfFilter(key), text("span", "chosen", ""));
  const menu = make(
    "details",
    { className: "menu", "data-filter": key, name: "filter-menu" },
    summary,
    make(
      "fieldset",
      { className: "choices" },
      make("legend", { className: "spoken", textContent: titleOfFilter(key) }),
      ...boxes(key),
    ),
  );
  menu.addEventListener("toggle", () => {
    if (menu.open) keepInside(menu.lastChild);
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
  change(Object.fromEntries([...FILTER_KEYS, "q", "common"].map((key) => [key, null])));
}

// Ticks, counts and the sentence, after any change. A count says how many tasks the value would give, the other filters being as they are.
function showFilters() {
  for (const key of FILTER_KEYS) {
    const values = chosen(key);
    const parts = filterParts.filter((part) => part.key === key);
    const tasks = axisAt.has(key) ? selectedTasks(key) : null;
    for (const { value, box, counter } of parts) {
      box.checked = values.includes(value);
      const n = tasks?.filter((task) => valuesOf(datasets[task], key).includes(value)).length;
      counter.textContent = tasks ? String(n) : "";
      box.parentElement.classList.toggle("none", n === 0);
    }
    const menu = filterBar.querySelector(`[data-filter="${key}"]`);
    if (!menu) continue;
    menu.querySelector(".chosen").textContent = values.length ? String(values.length) : "";
    menu.hidden = !values.length && axisAt.has(key) && !tasks.some((task) => valuesOf(datasets[task], key).length);
  }
  const search = document.getElementById("search");
  if (search.value !== option("q")) search.value = option("q");
  document.getElementById("common").checked = option("common") === "1";
  filterBar.querySelector(".selection").textContent =
    `${selectionInWords()}: ${plural(selectedTasks().length, "task")}`;
}
