// Columns that several tables have, for rows with {entry, strategy, ..}.

const MODEL_COLUMN = wordColumn("model", "Model", {
  head: true,
  value: (row) => entries[row.entry].label,
  cell: (row) => modelLink(row.entry),
});
const STRATEGY_COLUMN = wordColumn("strategy", "Strategy", {
  value: (row) => row.strategy,
  cell: (row) => strategies[row.strategy][1],
});
const TASK_COLUMN = wordColumn("task", "Task", {
  head: true,
  value: (row) => datasets[row.task].name,
  cell: (row) => taskLink(row.task),
});
const SUITE_COLUMN = wordColumn("suite", "Suite", { value: (row) => suiteTitle(datasets[row.task].suite) });
const COVERAGE_COLUMN = numberColumn("tasks", "Tasks", {
  hint: "Selected tasks with a score, of all selected",
  value: (row) => row.scored,
  cell: coverageCell,
});

// Answers that could not be read, were truncated, or never came to an end of their reasoning.
const FAULT_SHARES = [
  ["valid", "Readable", "Share of answers in which an answer could be read"],
  ["cut", "Truncated", "Share of answers that used up their length limit"],
  ["unclosed", "Unclosed reasoning", "Share of answers whose reasoning never ended"],
  ["inputs_cut", "Inputs cut", "Share of prompts that were shortened to fit"],
];
const SHARE_COLUMNS = FAULT_SHARES.map(([key, title, hint]) =>
  numberColumn(key, title, { sort: key === "valid" ? "asc" : "desc", hint, value: (row) => row[key] ?? null, format: percent }),
);

// The column of strategies, where there is more than one.
const strategyColumns = (rows) => (severalStrategies(rows) ? [STRATEGY_COLUMN] : []);

// A model's name with its strategy behind it, where there are several.
const namedWithStrategy = ({ entry, strategy }, several) =>
  make("span", {}, modelLink(entry), several ? text("span", "soft", ` ${strategies[strategy][1]}`) : null);

// Those columns that say something of a row.
const withValues = (columns, rows) => columns.filter(({ value }) => rows.some((row) => isGiven(value(row))));

// Place, model, score with its interval, and the same as a bar.
function rankingColumns(rows) {
  return [
    numberColumn("place", "#", {
      sort: "asc",
      hint: "Place among complete rows of the same strategy",
      format: (place) => place ?? "",
      className: "place",
    }),
    { ...MODEL_COLUMN, className: "sticky" },
    ...strategyColumns(rows),
    numberColumn("score", "Score", { hint: "With its 95 % interval", cell: scoreText }),
    {
      key: "bar",
      title: text("span", "spoken", "Score as a bar from 0 to 1"),
      cell: (row) => (isNumber(row.score) ? withTip(meter(row.score, row), ...tipLines(row)) : ""),
      className: "bar-cell",
    },
  ];
}

function scoreText(row) {
  const range = isNumber(row.low) || (isNumber(row.score) && isOwn(row.entry)) ? interval(row) : "";
  return make("span", { className: "score-text" }, text("b", "score", fixed(row.score)), " ", text("span", "interval", range));
}

function tipLines(row) {
  const partial = row.scored < row.total ? ", partial" : "";
  return [
    entries[row.entry].label,
    `${strategies[row.strategy][1]}: ${fixed(row.score)} ${interval(row)}`,
    row.printed ? "the paper’s own average" : `${row.scored} of ${plural(row.total, "task")}${partial}`,
    entries[row.entry].sample ? "SAMPLE: synthetic rows" : null,
  ];
}

function coverageCell(row) {
  if (row.printed) {
    const title = "The paper prints this average without the scores of its tasks";
    return make("span", { className: "coverage", title }, "as published");
  }
  return make("span", { className: "coverage" }, `${row.scored}/${row.total}`, partialTag(row));
}

const partialTag = ({ scored, total }) => (scored < total ? tag("partial", "partial") : null);
