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
const SUITE_COLUMN = wordColumn("suite", "Suite", { value: (row) => suiteTitle(homeOf(datasets[row.task])) });
const COVERAGE_COLUMN = numberColumn("tasks", "Tasks", {
  hint: "Selected tasks with a score, of all selected",
  value: (row) => row.scored,
  cell: coverageCell,
});

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

// A share of 1 as a bar in a cell, with its interval as a line over it.
function meter(value, { low, high } = {}, className = "") {
  const part = (name, ...ends) => {
    const element = make("span", { className: name });
    const [from, to] = ends.map((end) => Math.min(Math.max(end, 0), 1));
    element.style.left = `${100 * from}%`;
    element.style.width = `${100 * (to - from)}%`;
    return element;
  };
  const range = isNumber(low) && isNumber(high) ? part("range", low, high) : null;
  const properties = { className: `meter ${className}`.trim(), "aria-hidden": "true" };
  return make("span", properties, part("fill", 0, value), range);
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

// A score over its coverage, of a mean in a table of suites.
function scoreWithCoverage(reached) {
  if (!reached || reached.score === null) return NONE;
  const { score, scored, total } = reached;
  return make(
    "span",
    { className: "stacked" },
    make("span", {}, text("b", "", fixed(score)), " ", text("span", "interval", interval(reached))),
    make("span", { className: "soft" }, `${scored}/${total} tasks `, partialTag(reached)),
  );
}
