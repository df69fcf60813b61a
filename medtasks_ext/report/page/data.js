"use strict";
// The report is data: medtasks_ext/report/payload.py says what is in it. Its texts only ever become
// text nodes. Columns are looked up by row number; rows by entry, strategy and dataset.

const report = JSON.parse(document.getElementById("data").textContent);
const { entries, datasets, axes, strategies } = report;
for (const table of [report.results, report.groups])
  for (const [name, column] of Object.entries(table)) table[name] = unpacked(column);
const results = filled(report.results, report.results.entry.length);
const groups = filled(report.groups, report.groups.entry.length);

// A column whose repeated values are written once (medtasks_ext/report/payload.py).
function unpacked(column) {
  if (Array.isArray(column)) return column;
  if (column.words) return column.at.map((at) => column.words[at]);
  const found = [];
  const { runs } = column;
  for (let at = 0; at < runs.length; at += 2) for (let times = runs[at + 1]; times > 0; times--) found.push(runs[at]);
  return found;
}

// What is missing at the end of a column is left out of the file.
function filled(columns, length) {
  for (const column of Object.values(columns)) while (column.length < length) column.push(null);
  return columns;
}

const datasetAt = new Map(datasets.map((dataset, index) => [dataset.id, index]));
const strategyAt = new Map(strategies.map(([id], index) => [id, index]));
const axisAt = new Map(axes.map((axis, index) => [axis.key, index]));
// Axes that tasks can be chosen by; the remaining one holds all tasks.
const taskAxes = axes.filter((axis) => axis.key !== "all");

const placeOf = (entry, strategy, dataset) => (entry * strategies.length + strategy) * datasets.length + dataset;
const rowAt = new Int32Array(entries.length * strategies.length * datasets.length).fill(-1);
results.entry.forEach((entry, row) => {
  rowAt[placeOf(entry, results.strategy[row], results.dataset[row])] = row;
});

// A row of `results`, or -1.
const resultRow = (entry, strategy, dataset) => rowAt[placeOf(entry, strategy, dataset)];

// One value of one experiment, or null.
const valueAt = (row, column) => (row < 0 ? null : (results[column]?.[row] ?? null));
const resultOf = (entry, strategy, dataset, column) => valueAt(resultRow(entry, strategy, dataset), column);

// What the report holds of one experiment; `at` is its row, -1 where there is none.
const RESULT_FIGURES = ["score", "low", "high", "rough", "n", "valid", "cut", "unclosed", "inputs_cut"];
function resultAt(entry, strategy, dataset) {
  const at = resultRow(entry, strategy, dataset);
  return { at, ...Object.fromEntries(RESULT_FIGURES.map((name) => [name, valueAt(at, name)])) };
}

// The values of a dataset on an axis, whatever their shape.
const valuesOf = (dataset, key) => [dataset[key] ?? []].flat();

const axisWords = (key) => axes[axisAt.get(key)]?.title ?? key;

function axisTitle(key) {
  const title = axisWords(key);
  return title.charAt(0).toUpperCase() + title.slice(1);
}

function valueTitle(key, value) {
  const { values = [], others = [] } = axes[axisAt.get(key)] ?? {};
  const found = [...values, ...others].find(([id]) => id === value);
  return found ? found[1] : value;
}

const suiteTitle = (suite) => valueTitle("suite", suite);
const suites = (axes[axisAt.get("suite")]?.values ?? []).map(([id]) => id);

const entryAt = new Map(entries.map((entry, index) => [entry.label, index]));

const isOwn = (entry) => entries[entry].kind !== "published";
const ownEntries = entries.map((_, index) => index).filter(isOwn);

// Tasks that count: a control asks its rows in another form, a draft is not ready.
const isGrouped = (dataset) => !dataset.control_of && !dataset.draft;
const counted = datasets.map((_, index) => index).filter((index) => isGrouped(datasets[index]));

const axisRank = new Map(axes.map((axis) => [axis.key, new Map(axis.values.map(([id], place) => [id, place]))]));

// Dataset indices in sections by the values of an axis, in the axis's order; those without a value last.
function bySection(tasks, key) {
  const sections = new Map();
  for (const task of tasks) {
    const values = valuesOf(datasets[task], key);
    for (const value of values.length ? values : [null]) {
      if (!sections.has(value)) sections.set(value, []);
      sections.get(value).push(task);
    }
  }
  const rank = axisRank.get(key) ?? new Map();
  const place = (value) => (value === null ? Infinity : (rank.get(value) ?? 1e6));
  return [...sections].sort(([one], [other]) => place(one) - place(other));
}
