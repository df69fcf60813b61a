// A table of models: filters, axes, sorting; ranks among results that were asked alike.

const SHOWN = 100;
const PART = "part";
const UNPROVEN = "unproven";
const ALIKE = "alike";
const OTHERWISE = "otherwise";
const WITHOUT = "without";

// What a cell holds: the score, the number of tasks where that is not on all of them, a third number where
// it is on all, and not proven.
const valueOf = (cell) => (Array.isArray(cell) ? cell[0] : cell);
const isRanked = (cell) => isNumber(cell);
const isPart = (cell) => Array.isArray(cell) && cell.length === 2;
const isUnproven = (cell) => Array.isArray(cell) && cell.length === 3;

function drawBoard() {
  const axes = axisKeys();
  const axis = site.axes.findIndex(([key]) => key === choice("axis", axes));
  const columns = shownColumns(axis);
  const { strategy, by, rows, sections, shown } = shownRows(columns);
  const picture_ = part(shown, strategy, by, besideRoom());
  const own = shown.some(isSubmitted);
  return [
    text("h2", "", site.title),
    site.about ? text("p", "about", site.about) : null,
    controls(site.axes.length > 1 ? selector("Columns", "axis", columnChoices(), site.axes[axis][0]) : null, presets()),
    own ? null : picture_,
    note(counted(shown, rows, by)),
    whatRanksProve(shown),
    modelsTable(shown, {
      className: "lines",
      caption: `${site.title}: ${site.strategies[strategy][1]}, ranked by ${columnTitle(by)}`,
      columns: tableColumns(columns, strategy, by),
      sort: `-c${columns[0]}`,
      sections,
      limit: SHOWN,
    }),
    own ? picture_ : null,
  ];
}

const isSubmitted = ({ entry }) => !site.entries.published[entry];

// What the address chooses of these columns: the strategy, the column by which lines are ranked, and the lines.
function shownRows(columns) {
  const strategies = site.strategies.map(([id]) => id);
  const strategy = strategies.indexOf(choice("strategy", strategies));
  const by = sortedColumn(columns);
  const { rows, sections } = ranked(strategy, by);
  return { strategy, by, rows, sections, shown: rows.filter(matches) };
}

// Lines in sections; submissions stand above all once more, ranked ones first.
const PINNED = 10;
function modelsTable(shown, more) {
  const own = shown.filter(isSubmitted);
  const pinned = [...own].sort((one, other) => (one.rank === null) - (other.rank === null)).slice(0, PINNED);
  const heading = `${plural(own.length, "submission")}${own.length > PINNED ? `, ${PINNED} of them here` : ""}`;
  return table({
    name: "lines",
    rows: shown,
    sectionOf: (row) => row.section,
    classOf: (row) => (isSubmitted(row) ? "own" : ""),
    pinned: { heading, rows: pinned },
    ...more,
  });
}

// The kinds of tasks come first: a suite as a whole is one column.
function axisKeys() {
  const keys = site.axes.map(([key]) => key);
  const first = keys.find((key) => key === "task_type") ?? keys[1] ?? keys[0];
  return [first, ...keys.filter((key) => key !== first)];
}

function whatRanksProve(shown) {
  if (!shown.some((row) => row.rank !== null && isSubmitted(row))) return null;
  const said =
    "Answers of submitted models with a rank were scored again here. No check proves that the named model gave them: ";
  return note(said, link(`${site.home}about.html`, "how far a score is trusted"), ".");
}

const columnTitle = (column) => site.columns[column][1];

function counted(shown, rows, by) {
  const sorted = `sorted by ${columnTitle(by)} (${plural(site.columns[by][2], "task")})`;
  const whole = rows.filter((row) => row.rank !== null).length;
  return `${plural(shown.length, "result")} of ${count(rows.length)} · ${sorted}, where ${count(whole)} are ranked`;
}

// The suite as a whole, then the values of the axis.
function shownColumns(axis) {
  const all = site.columns.map((_, index) => index);
  const first = all.filter((index) => site.columns[index][0] === 0);
  return axis === 0 ? first : [...first, ...all.filter((index) => site.columns[index][0] === axis)];
}

// The column by which lines are ranked: the one that they are sorted by, if it holds scores.
function sortedColumn(columns) {
  const key = option("sort-lines").replace("-", "");
  const index = key.startsWith("c") ? Number(key.slice(1)) : columns[0];
  return columns.includes(index) ? index : columns[0];
}

// What keeps a number apart from those of the suite's paper; empty where nothing does.
const apartWords = (strategy, column, entry) => site.apart_words[site.apart[strategy][column][entry] ?? 0];

// Every line with its rank in that column, among all results of it.
function ranked(strategy, by) {
  const cells = site.scores[strategy][by];
  const sectionOf = (cell, words) => {
    if (cell === null) return WITHOUT;
    return isPart(cell) ? PART : isUnproven(cell) ? UNPROVEN : words ? OTHERWISE : ALIKE;
  };
  const rows = site.entries.label.map((_, entry) => {
    const rank = site.ranks[strategy][by][entry];
    return { entry, rank, of: site.ranked[strategy][by], section: sectionOf(cells[entry], apartWords(strategy, by, entry)) };
  });
  return {
    rows,
    sections: [
      [ALIKE, rows.some(({ rank }) => rank !== null) ? "Same conditions as the suite’s paper: ranked together" : null],
      [OTHERWISE, "Other conditions than in the suite’s paper: not ranked"],
      [UNPROVEN, "Not proven: self-reported, not ranked"],
      [PART, "On a part of the tasks, rows or judgements: not ranked"],
      [WITHOUT, `No score: ${columnTitle(by)}`],
    ],
  };
}

// ------------------------------------------------------------------ filters

// Of what a table of models shows.
function boardFilters() {
  DEFAULTS.strategy = site.strategies[0][0];
  const strategy = { key: "strategy", title: "Strategy", values: site.strategies, pills: true, single: true };
  const kinds = [["submitted", "submitted"], ["published", "published"]];
  return [
    ...(site.strategies.length > 1 ? [strategy] : []),
    modelFilter("kind", "Results", kinds, ({ published }, value) => published === (value === "published")),
    ...MODEL_FILTERS,
  ];
}

function matches({ entry }) {
  const { label, organisation, published, size, access, domain, reasoning } = site.entries;
  const facts = { size: size[entry], access: access[entry], domain: domain[entry], reasoning: reasoning[entry] };
  return fitsFilters({ ...facts, published: Boolean(published[entry]) }) && fitsSearch(`${label[entry]} ${organisation[entry] ?? ""}`);
}

function selectionInWords() {
  const n = site.entries.label.filter((_, entry) => matches({ entry })).length;
  const [, strategy] = site.strategies.find(([id]) => id === option("strategy")) ?? site.strategies[0];
  return `${strategy}: ${plural(n, "result")}`;
}

function columnChoices() {
  const titles = new Map(site.axes);
  return axisKeys().map((key) => [key, key === site.axes[0][0] ? "as a whole" : `by ${titles.get(key).toLowerCase()}`]);
}

// Filters that people set together.
const PRESETS = [
  ["open weights", { weights: "open" }],
  ["open, up to 10 B", { weights: "open", size: "-10" }],
  ["medical", { domain: "medical" }],
  ["reasoning", { reasoning: "yes" }],
];

function presets() {
  const keys = [...new Set(PRESETS.flatMap(([, wanted]) => Object.keys(wanted)))];
  const every = Object.fromEntries(keys.map((key) => [key, null]));
  const isSet = (wanted) => keys.every((key) => option(key) === (wanted[key] ?? ""));
  const buttons = [["all", {}], ...PRESETS].map(([title, wanted]) =>
    button(title, () => change({ ...every, ...wanted }), {
      className: "",
      "aria-pressed": String(isSet(wanted)),
      "data-key": `preset ${title}`,
    }),
  );
  const name = text("span", "switch-label", "Models");
  return make("div", { className: "switch presets", role: "group", "aria-label": "Models" }, name, ...buttons);
}

// ------------------------------------------------------------------ columns

function tableColumns(columns, strategy, by) {
  const cells = site.scores[strategy];
  const place = ({ rank, of }) => (rank === null ? NONE : withTip(text("span", "", String(rank)), `${rank} of ${of}`));
  const cell = ({ entry, section }, column) => scoreCell(cells[column][entry], column, strategy, entry, section);
  return [
    { title: "Rank", numeric: true, className: "rank", cell: place },
    NAME_COLUMN,
    SIZE_COLUMN,
    ...scoreColumns(columns, strategy, by, cell),
  ];
}

// A column for each suite or part of one; `cell(row, column)` draws it.
const scoreColumns = (columns, strategy, by, cell) =>
  columns.map((column) =>
    numberColumn(`c${column}`, columnTitle(column), {
      hint: plural(site.columns[column][2], "task"),
      className: column === by ? "current" : "",
      value: ({ entry }) => valueOf(site.scores[strategy][column][entry]),
      cell: (row) => cell(row, column),
    }),
  );

const NAME_COLUMN = wordColumn("model", "Model", {
  head: true,
  value: ({ entry }) => site.entries.label[entry],
  cell: modelCell,
});
const SIZE_COLUMN = numberColumn("size", "Size, B", {
  className: "size",
  value: ({ entry }) => site.entries.size[entry],
  format: sizeText,
});

function modelCell({ entry }) {
  const { label, page, published, trust, organisation, access, domain, reasoning } = site.entries;
  const facts = [organisation[entry], access[entry], domain[entry], reasoning[entry] === "yes" ? "reasoning" : null];
  return make(
    "span",
    {},
    modelPage(page[entry], label[entry]),
    " ",
    published[entry] ? null : tag("", "submitted"),
    text("span", "facts-line", facts.filter(Boolean).join(" · ")),
    trust[entry] ? text("span", "trust-line", trust[entry]) : null,
  );
}

// A score that is not proven says so, unless it stands under a heading that does; a bar beside it would look
// like those of scores that are.
function scoreCell(cell, column, strategy, entry, section) {
  if (cell === null) return NONE;
  const found = site.intervals[strategy][column]?.[entry];
  const value = valueOf(cell);
  const tasks = site.columns[column][2];
  const partly = isPart(cell) ? (cell[1] < tasks ? ` on ${cell[1]} of ${tasks}` : " on a part") : "";
  const unproven = isUnproven(cell) && section !== UNPROVEN ? " not proven" : "";
  const part = partly || unproven ? text("span", "part", partly || unproven) : null;
  const shown = make("span", {}, score(value), part);
  if (!isUnproven(cell)) {
    shown.className = "barred";
    shown.style.setProperty("--share", `${(100 * value) / UNIT}%`);
  }
  return found ? withTip(shown, `${score(value)} ${ends(found)}`, "95 % interval; p: the paper’s own") : shown;
}
