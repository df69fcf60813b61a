// Scores on the documents with one label, beside those on all documents of the same tasks.

const LABEL_AXES = {
  difficulty: ["Difficulty", "How many of several models answer a question rightly; or the level that its row names."],
  department: ["Department", "The hospital departments that a question belongs to; secondary ones are in labels.csv."],
  contamination: ["Contamination", "Whether a probe found that this model, not another, had seen a document."],
};
const labelRows = report.labels.map((row) => ({ ...row, low: row.interval_low, high: row.interval_high }));
const labelAxes = [...new Set(labelRows.map((row) => row.axis))];
const labelsOf = (axis) => [...new Set(labelRows.filter((row) => row.axis === axis).map((row) => row.value))];

const labelAxisTitle = (axis) => LABEL_AXES[axis]?.[0] ?? axis;

function drawLabels() {
  const [kept, asked, wanted] = [new Set(selectedEntries()), new Set(selectedStrategies()), chosen("suite")];
  const axis = choice("label", labelAxes);
  const isChosen = (row) => kept.has(row.entry) && asked.has(row.strategy) && (!wanted.length || wanted.includes(row.suite));
  const rows = labelRows.filter((row) => row.axis === axis && isChosen(row));
  const titles = labelAxes.map((key) => [key, labelAxisTitle(key)]);
  const places = grouped(rows, (row) => [row.suite, row.strategy, entries[row.entry].sample].join("\n"));
  return [
    titles.length > 1 ? switcher("Labels", "label", titles, axis) : null,
    note(LABEL_AXES[axis]?.[1] ?? "", " Filters for single tasks do not apply here: labels are counted over a whole suite."),
    ...(rows.length ? places.map((some) => labelSection(axis, some)) : [nothing("No result of this selection has such labels.")]),
  ];
}

// One suite with one strategy, on real rows or on synthetic ones.
function labelSection(axis, rows) {
  const { suite, strategy, entry } = rows[0];
  const sample = entries[entry].sample ? ", SAMPLE DATA" : "";
  const heading = `${suiteTitle(suite)}, ${strategies[strategy][1]}${sample}`;
  const models = [...new Set(rows.map((row) => row.entry))];
  const shown = models.slice(0, MOST_SERIES);
  const of = (value) => rows.filter((row) => row.value === value && shown.includes(row.entry));
  const lines = labelsOf(axis)
    .map((title) => ({ title, points: of(title).map((row) => labelPoint(row, shown)) }))
    .filter((line) => line.points.length);
  const caption = `Score by ${labelAxisTitle(axis).toLowerCase()}: ${heading}`;
  const some = `The picture shows ${count(shown.length)} of ${plural(models.length, "model")}`;
  return titled(
    heading,
    note(saidBy(rows)),
    shown.length < models.length ? note(`${some}; the search above the page chooses others.`) : null,
    dots({
      heading: labelAxisTitle(axis),
      label: caption,
      series: shown.map(markedName),
      rows: lines,
      words: { measure: "mean score, 95 % interval" },
    }),
    labelTable(axis, rows, caption),
  );
}

// Who gave the labels.
function saidBy(rows) {
  const sources = rows.map((row) => row.sources);
  const own = sources.some((files) => !files.length) ? ["the rows of the datasets themselves"] : [];
  const files = [...new Set(sources.flat())].join(", ");
  return `The labels are those of ${[...own, files].filter(Boolean).join(" and ")}.`;
}

function labelPoint(row, shown) {
  const { entry, value, score, low, high, documents, documents_of_all: all, tasks, score_of_all: ofAll } = row;
  const tip = [
    `${value}: ${entries[entry].label}`,
    `${fixed(score)} ${interval(row)}`,
    `${count(documents)} of ${plural(all, "document")}, ${plural(tasks, "task")}`,
    `all of them: ${fixed(ofAll)}`,
  ];
  return { series: shown.indexOf(entry), value: score, low, high, tip };
}

function labelTable(axis, rows, caption) {
  const ofAll = (row) => scoreText({ ...row, score: row.score_of_all, low: row.of_all_low, high: row.of_all_high });
  const documents = (row) => `${count(row.documents)} of ${count(row.documents_of_all)}`;
  const hint = "On the documents with this label, with its 95 % interval";
  const columns = [
    wordColumn("label", labelAxisTitle(axis), {
      head: true,
      value: (row) => labelsOf(axis).indexOf(row.value),
      cell: (row) => row.value,
    }),
    { ...MODEL_COLUMN, head: false },
    numberColumn("score", "Score", { hint, cell: scoreText }),
    numberColumn("score_of_all", "All documents", { hint: "The score of the same tasks on all their documents", cell: ofAll }),
    numberColumn("documents", "Documents", { cell: documents }),
    numberColumn("tasks", "Tasks", { format: count }),
  ];
  return table({ name: "labels", caption, rows, sort: "label", columns });
}
