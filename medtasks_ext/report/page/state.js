// What is shown lives in the address: `#view/id?key=value`, so that a view can be linked and printed.
// Keys that stand at their default are left out.

const FILTER_KEYS = ["suite", "strategy", ...taskAxes.map((axis) => axis.key).filter((key) => key !== "suite"), "kind"];
const KINDS = [
  ["own", "own runs"],
  ["published", "published"],
].filter(([kind]) => entries.some((_, entry) => isOwn(entry) === (kind === "own")));

const filterValues = new Map(
  FILTER_KEYS.map((key) => [
    key,
    key === "strategy" ? strategies : key === "kind" ? KINDS : (axes[axisAt.get(key)]?.values ?? []),
  ]),
);

// The suite that most is known about, own runs first: an average over suites is not what papers report.
function firstSuite() {
  const weight = new Map();
  results.entry.forEach((entry, row) => {
    const suite = homeOf(datasets[results.dataset[row]]);
    weight.set(suite, (weight.get(suite) ?? 0) + (isOwn(entry) ? 1e6 : 1));
  });
  return [...weight].sort((one, other) => other[1] - one[1])[0]?.[0];
}

function firstStrategy() {
  const used = new Set(results.strategy);
  return strategies.find((_, index) => used.has(index))?.[0];
}

const DEFAULTS = { suite: firstSuite() ?? "", strategy: firstStrategy() ?? "" };

let view = "";
let viewId = "";
let parameters = new Map();

function readAddress() {
  const [path, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  const slash = path.indexOf("/");
  view = slash < 0 ? path : path.slice(0, slash);
  viewId = slash < 0 ? "" : decoded(path.slice(slash + 1));
  parameters = new Map(new URLSearchParams(query));
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function option(key, fallback = "") {
  return parameters.get(key) ?? DEFAULTS[key] ?? fallback;
}

// One of the allowed values, or the first of them.
function choice(key, allowed) {
  const value = option(key);
  return allowed.includes(value) ? value : allowed[0];
}

// Texts of a list may hold anything, commas too.
function listOption(key) {
  return option(key).split(",").filter(Boolean).map(decoded);
}

// The chosen values of a filter, unknown ones left out; empty means all.
function chosen(key) {
  const known = new Set(filterValues.get(key).map(([id]) => id));
  return listOption(key).filter((value) => known.has(value));
}

const asList = (values) => values.map((value) => encodeURIComponent(value)).join(",");

// The address of a view with changed keys; null removes one.
function address(target, id = "", changes = {}) {
  const next = new Map(parameters);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === (DEFAULTS[key] ?? "")) next.delete(key);
    else next.set(key, value);
  }
  const query = new URLSearchParams([...next]).toString();
  return `#${target}${id ? `/${encodeURIComponent(id)}` : ""}${query ? `?${query}` : ""}`;
}

// Change what is shown without a new step in the browser's history.
function change(changes) {
  history.replaceState(null, "", address(view, viewId, changes));
  readAddress();
  show();
}

// ------------------------------------------------------------------ what the filters select

function matches(dataset, key, values) {
  return !values.length || valuesOf(dataset, key).some((value) => values.includes(value));
}

// Selected tasks, as sorted dataset indices.
function selectedTasks(without = null) {
  const filters = taskAxes.filter((axis) => axis.key !== without).map((axis) => [axis.key, chosen(axis.key)]);
  return counted.filter((task) => filters.every(([key, values]) => matches(datasets[task], key, values)));
}

function selectedStrategies() {
  const ids = chosen("strategy");
  return strategies.map((_, index) => index).filter((index) => !ids.length || ids.includes(strategies[index][0]));
}

function selectedEntries() {
  const kinds = chosen("kind");
  const words = option("q").toLowerCase().split(/\s+/).filter(Boolean);
  return entries
    .map((_, index) => index)
    .filter((index) => {
      const { label, facts } = entries[index];
      const text = `${label} ${facts.maker ?? ""}`.toLowerCase();
      return (
        (!kinds.length || kinds.includes(isOwn(index) ? "own" : "published")) &&
        words.every((word) => text.includes(word))
      );
    });
}

// The lines of a leaderboard: {entry, strategy} with what they reached on the selected tasks.
function selectedRows() {
  const lines = [];
  let tasks = selectedTasks();
  const byGroup = groupsOf(tasks);
  for (const strategy of selectedStrategies()) for (const entry of selectedEntries()) lines.push({ entry, strategy });
  let rows = lines
    .map((line) => ({ ...line, ...aggregate(line.entry, line.strategy, tasks, byGroup) }))
    .filter((row) => row.score !== undefined);
  let left = [];
  if (option("common") === "1") {
    const withTasks = rows.filter((row) => !row.printed && row.scored > 0);
    tasks = sharedTasks(withTasks, tasks);
    left = rows.filter((row) => !withTasks.includes(row));
    const shared = groupsOf(tasks);
    rows = tasks.length
      ? withTasks.map((row) => ({ ...row, ...aggregate(row.entry, row.strategy, tasks, shared) }))
      : [];
  }
  return { tasks, rows, left };
}

function sectionOfRow(row, allSample, published) {
  if (row.score === null) return "unscored";
  if (row.scored < row.total) return "partial";
  if (row.pending) return "pending";
  if (published && isOwn(row.entry) && row.otherwise?.length) return "otherwise";
  if (entries[row.entry].limited) return "limited";
  return row.sample && !allSample ? "sample" : "ranked";
}

// Complete rows on real data are ranked; the others stand below, with the reason.
function rankedRows(rows) {
  const allSample = rows.every((row) => entries[row.entry].sample);
  const published = rows.some((row) => !isOwn(row.entry));
  for (const row of rows) {
    row.sample = entries[row.entry].sample;
    row.section = sectionOfRow(row, allSample, published);
    row.place = null;
  }
  for (const [strategy] of strategies.entries()) {
    const ranked = rows.filter((row) => row.section === "ranked" && row.strategy === strategy);
    const found = ranksOf(ranked.map((row) => row.score));
    ranked.forEach((row, index) => {
      row.place = found[index];
    });
  }
  return rows;
}

// The selection in words, for headings and for paper.
function selectionInWords() {
  const parts = FILTER_KEYS.filter((key) => chosen(key).length).map((key) => {
    const titles = new Map(filterValues.get(key));
    const words = chosen(key)
      .map((value) => titles.get(value))
      .join(", ");
    return ["suite", "strategy", "kind"].includes(key) ? words : `${axes[axisAt.get(key)].title}: ${words}`;
  });
  if (!chosen("suite").length) parts.unshift("all suites");
  if (option("q")) parts.push(`search: “${option("q")}”`);
  return parts.join(" · ");
}
