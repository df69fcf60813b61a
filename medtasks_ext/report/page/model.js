// One entry: how it was made, and what it reached on every task.

function drawModel() {
  const entry = entryAt.get(viewId);
  if (entry === undefined) return [note(`This report knows no model “${viewId}”.`)];
  const { settings, details, notes, kind, sample } = entries[entry];
  const origin =
    kind === "published"
      ? `These are published results of ${suiteTitle(entries[entry].suite)}`
      : kind === "lm_eval"
        ? "This is a run of plain lm_eval"
        : "This is a run of medtasks";
  return [
    make(
      "p",
      { className: "lead" },
      origin,
      sample ? " on synthetic rows: its scores mean nothing." : ".",
    ),
    notes?.length
      ? make("ul", { className: "notes" }, ...notes.map((item) => make("li", { textContent: item })))
      : null,
    modelSuites(entry),
    factList("Settings", settings),
    factList("About the model", details),
    modelTasks(entry),
  ];
}

function factList(title, facts) {
  const known = Object.entries(facts ?? {}).filter(([, value]) => value !== null && value !== "");
  if (!known.length) return null;
  return titled(
    title,
    make(
      "dl",
      { className: "facts" },
      ...known.map(([name, value]) =>
        make(
          "div",
          {},
          make("dt", { textContent: name.replace(/_/g, " ") }),
          make("dd", { textContent: typeof value === "string" ? value : JSON.stringify(value) }),
        ),
      ),
    ),
  );
}

function modelSuites(entry) {
  const known = suites.filter((suite) => [...strategies.keys()].some((strategy) => reachedOn(entry, strategy, suite)));
  const columns = [
    {
      key: "suite",
      title: "Suite",
      head: true,
      value: suiteTitle,
      cell: (suite) => link(address("leaderboard", "", { suite: asList([suite]) }), suiteTitle(suite)),
    },
    ...strategies.map(([id, title], strategy) => ({
      key: id,
      title,
      numeric: true,
      value: (suite) => reachedOn(entry, strategy, suite)?.score ?? null,
      cell: (suite) => scoreWithCoverage(reachedOn(entry, strategy, suite)),
    })),
  ];
  return titled(
    "By suite",
    table({
      name: "suites",
      caption: `Scores of ${entries[entry].label} by suite`,
      columns,
      rows: known,
      sort: "suite",
    }),
  );
}

function reachedOn(entry, strategy, suite) {
  return aggregate(entry, strategy, tasksOfSuite(suite), suiteGroup(suite));
}

function modelTasks(entry) {
  const rows = datasets
    .map((_, task) => ({ task }))
    .filter(({ task }) => [...strategies.keys()].some((strategy) => resultRow(entry, strategy, task) >= 0));
  if (!rows.length) return note("Only averages over groups are published for this model, no scores per task.");
  const columns = [
    { ...TASK_COLUMN, className: "sticky" },
    SUITE_COLUMN,
    ...strategies.map(([id, title], strategy) => ({
      key: id,
      title,
      numeric: true,
      value: ({ task }) => resultOf(entry, strategy, task, "score"),
      cell: ({ task }) => experimentCell(entry, strategy, task),
    })),
  ];
  return titled(
    "By task",
    table({ name: "model-tasks", caption: `Scores of ${entries[entry].label} by task`, columns, rows, sort: "task" }),
  );
}

function experimentCell(entry, strategy, task) {
  const row = resultRow(entry, strategy, task);
  if (row < 0) return NONE;
  const range = { low: results.low[row], high: results.high[row], rough: results.rough?.[row] };
  return make(
    "span",
    {},
    text("b", "", fixed(results.score[row])),
    isNumber(range.low) ? text("span", "interval", ` ${interval(range)}`) : null,
  );
}
