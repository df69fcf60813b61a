// Scores on the documents with one label, beside those on all documents of the same tasks.

const LABEL_AXES = {
  difficulty: ["Difficulty", "How many of several models answer a question rightly; or the level that its row names."],
  department: [
    "Department",
    "The hospital departments that a question belongs to, up to three; secondary ones are in labels.csv.",
  ],
  contamination: [
    "Contamination",
    "Whether a probe found that a model had seen a document. What the probe says of one model says nothing of another.",
  ],
};
const MOST_LABELLED = 4; // models in one picture
const labelRows = report.labels ? rowsOf(filled(report.labels.rows, report.labels.rows.entry.length)) : [];

function rowsOf(columns) {
  return columns.entry.map((_, place) =>
    Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[place]])),
  );
}

const labelAxisTitle = (axis) => LABEL_AXES[axis]?.[0] ?? axis;

function drawLabels() {
  const [kept, asked, wanted] = [new Set(selectedEntries()), new Set(selectedStrategies()), chosen("suite")];
  const axis = choice("label", Object.keys(report.labels.axes));
  const rows = labelRows.filter(
    (row) =>
      row.axis === axis &&
      kept.has(row.entry) &&
      asked.has(row.strategy) &&
      (!wanted.length || wanted.includes(row.suite)),
  );
  const titles = Object.keys(report.labels.axes).map((key) => [key, labelAxisTitle(key)]);
  const places = grouped(rows, (row) => [row.suite, row.strategy, entries[row.entry].sample].join("\n"));
  return [
    titles.length > 1 ? switcher("Labels", "label", titles, axis) : null,
    note(LABEL_AXES[axis]?.[1] ?? "", " Filters for single tasks do not apply here: labels are counted over a whole suite."),
    ...(rows.length ? places.map((some) => labelSection(axis, some)) : [nothing("No result of this selection has such labels.")]),
  ];
}

function grouped(rows, keyOf) {
  const found = new Map();
  for (const row of rows) found.set(keyOf(row), [...(found.get(keyOf(row)) ?? []), row]);
  return [...found.values()];
}

// One suite with one strategy, on real rows or on synthetic ones.
function labelSection(axis, rows) {
  const { suite, strategy, entry } = rows[0];
  const { sample } = entries[entry];
  const heading = [suiteTitle(suite), strategies[strategy][1], sample ? "SAMPLE DATA" : null].filter(Boolean).join(", ");
  const models = [...new Set(rows.map((row) => row.entry))];
  const shown = models.slice(0, MOST_LABELLED);
  const values = report.labels.axes[axis];
  const lines = values.map((title, value) => ({
    title,
    points: rows.filter((row) => row.value === value && shown.includes(row.entry)).map((row) => labelPoint(row, shown)),
  }));
  const label = `Score by ${labelAxisTitle(axis).toLowerCase()}: ${heading}`;
  return titled(
    heading,
    note(saidBy(rows), alike(rows) ? "" : " The results stand on unlike documents: the table counts them."),
    shown.length < models.length
      ? note(`The picture shows ${count(shown.length)} of ${plural(models.length, "model")}; the search above the page chooses others.`)
      : null,
    dots({
      heading: labelAxisTitle(axis),
      label,
      series: shown.map((model) => markedName(model)),
      rows: lines.filter((line) => line.points.length),
      words: { domain: domainOf(lines.flatMap((line) => line.points)), measure: "mean score, 95 % interval" },
    }),
    labelTable(axis, rows, label),
  );
}

// Who gave the labels.
function saidBy(rows) {
  const files = [...new Set(rows.flatMap((row) => report.labels.sources[row.sources]))];
  const own = rows.some((row) => !report.labels.sources[row.sources].length);
  const said = [own ? "the rows of the datasets themselves" : null, files.length ? files.join(", ") : null].filter(Boolean);
  return `The labels are those of ${said.join(" and ")}.`;
}

// Whether each label stands for as many documents of as many tasks in every result.
function alike(rows) {
  return grouped(rows, (row) => row.value).every(
    (some) => new Set(some.map((row) => `${row.tasks} ${row.documents} ${row.documents_of_all}`)).size === 1,
  );
}

function labelPoint(row, shown) {
  return {
    series: shown.indexOf(row.entry),
    value: row.score,
    low: row.low,
    high: row.high,
    tip: [
      `${report.labels.axes[row.axis][row.value]}: ${entries[row.entry].label}`,
      `${fixed(row.score)} ${interval(row)}`,
      `${count(row.documents)} of ${plural(row.documents_of_all, "document")}, ${plural(row.tasks, "task")}`,
      `all of them: ${fixed(row.of_all)}`,
    ],
  };
}

function labelTable(axis, rows, caption) {
  const number = (key, title, cell, hint) => ({ key, title, hint, numeric: true, value: (row) => row[key], cell });
  return table({
    name: "labels",
    caption,
    rows,
    sort: "label",
    columns: [
      {
        key: "label",
        title: labelAxisTitle(axis),
        head: true,
        value: (row) => row.value,
        cell: (row) => report.labels.axes[axis][row.value],
      },
      { ...MODEL_COLUMN, head: false },
      number("score", "Score", scoreText, "On the documents with this label, with its 95 % interval"),
      number(
        "of_all",
        "All documents",
        (row) => scoreText({ ...row, score: row.of_all, low: row.of_all_low, high: row.of_all_high }),
        "The score of the same tasks on all their documents",
      ),
      number("documents", "Documents", (row) => `${count(row.documents)} of ${count(row.documents_of_all)}`),
      number("tasks", "Tasks", (row) => count(row.tasks)),
    ],
  });
}
