// Columns that several tables have, for rows with {entry, strategy, ..}.

const MODEL_COLUMN = {
  key: "model",
  title: "Model",
  head: true,
  value: (row) => entries[row.entry].label,
  cell: (row) => modelLink(row.entry),
};
const STRATEGY_COLUMN = {
  key: "strategy",
  title: "Strategy",
  value: (row) => row.strategy,
  cell: (row) => strategies[row.strategy][1],
};
const TASK_COLUMN = {
  key: "task",
  title: "Task",
  head: true,
  value: (row) => datasets[row.task].name,
  cell: (row) => taskLink(row.task),
};
const SUITE_COLUMN = {
  key: "suite",
  title: "Suite",
  value: (row) => suiteTitle(homeOf(datasets[row.task])),
  cell: (row) => suiteTitle(homeOf(datasets[row.task])),
};
const COVERAGE_COLUMN = {
  key: "tasks",
  title: "Tasks",
  numeric: true,
  hint: "Selected tasks with a score, of all selected",
  value: (row) => row.scored,
  cell: coverageCell,
};

const severalStrategies = (rows) => new Set(rows.map((row) => row.strategy)).size > 1;

// The column of strategies, where there is more than one.
function strategyColumns(rows) {
  return severalStrategies(rows) ? [STRATEGY_COLUMN] : [];
}

// Place, model, score with its interval, and the same as a bar.
function rankingColumns(rows) {
  return [
    {
      key: "place",
      title: "#",
      numeric: true,
      sort: "asc",
      hint: "Place among complete rows of the same strategy",
      value: (row) => row.place,
      cell: (row) => row.place ?? "",
      className: "place",
    },
    { ...MODEL_COLUMN, className: "sticky" },
    ...strategyColumns(rows),
    {
      key: "score",
      title: "Score",
      numeric: true,
      hint: "With its 95 % interval",
      value: (row) => row.score,
      cell: scoreText,
    },
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
  const part = (name, from, to) => {
    const element = make("span", { className: name });
    const within = [from, to].map((end) => Math.min(Math.max(end, 0), 1));
    element.style.left = `${100 * within[0]}%`;
    element.style.width = `${100 * (within[1] - within[0])}%`;
    return element;
  };
  return make(
    "span",
    { className: `meter ${className}`.trim(), "aria-hidden": "true" },
    part("fill", 0, value),
    isNumber(low) && isNumber(high) ? part("range", low, high) : null,
  );
}

function scoreText(row) {
  const range = isNumber(row.low) || (isNumber(row.score) && isOwn(row.entry)) ? interval(row) : "";
  return make(
    "span",
    { className: "score-text" },
    text("b", "score", fixed(row.score)),
    " ",
    text("span", "interval", range),
  );
}

function tipLines(row) {
  const partial = row.scored < row.total ? ", partial" : "";
  return [
    entries[row.entry].label,
    `${strategies[row.strategy][1]}: ${fixed(row.score)} ${interval(row)}`,
    row.printed ? "the paper’s own average" : `${row.scored} of ${plural(row.total, "task")}${partial}`,
    row.approximate ? "≈ normal approximation" : null,
    entries[row.entry].sample ? "SAMPLE: synthetic rows" : null,
  ];
}

function coverageCell(row) {
  if (row.printed) {
    const hint = "The paper prints this average without the scores of its tasks";
    return make("span", { className: "coverage", title: hint }, "as published");
  }
  const partial = row.scored < row.total ? tag("partial", "partial") : null;
  return make("span", { className: "coverage" }, `${row.scored}/${row.total}`, partial);
}
