// What was run, what was not, and why.

const STATES = [
  ["scored", "scored", "", "#2f8f83"],
  ["without gold", "run, no gold answers", "○", "#8fcac0"],
  ["not judged", "run, waits for judges", "J", "#8a7cc8"],
  ["waiting", "still to be run", "…", "#6aa2d8"],
  ["missing", "data are missing", "?", "#e0a63a"],
  ["failed", "failed", "!", "#c23b4e"],
  ["not computed", "answered, no Punkt data", "P", "#c98a9a"],
  ["not asked", "not asked for", "·", "#b9c0c9"],
];
// "entry strategy dataset" -> {state, reason}
const coverageAt = new Map();
report.coverage.entry.forEach((entry, row) => {
  const { strategy, dataset, state, reason, reasons } = report.coverage;
  const found = { state: state[row], reason: reasons[reason[row]] ?? "" };
  coverageAt.set(placeOf(entry, strategy[row], dataset[row]), found);
});

function stateOf({ entry, strategy }, task) {
  if (isNumber(resultOf(entry, strategy, task, "score"))) return { state: "scored", reason: "" };
  const state = resultRow(entry, strategy, task) < 0 ? "not asked" : "without gold";
  return coverageAt.get(placeOf(entry, strategy, task)) ?? { state, reason: "" };
}

function drawCoverage() {
  const tasks = selectedTasks();
  if (!tasks.length) return [emptySelection()];
  const own = selectedEntries().filter(isOwn);
  const lines = selectedStrategies().flatMap((strategy) => own.map((entry) => ({ entry, strategy })));
  if (!lines.length) return [note("No own runs in this selection; published results are as their papers print them.")];
  const tally = (state) => (line) => tasks.filter((task) => stateOf(line, task).state === state).length;
  const states = STATES.map(([state, title]) =>
    numberColumn(state.replace(" ", "_"), state, { hint: title, value: tally(state), format: count }),
  );
  return [
    table({
      name: "coverage",
      caption: `Coverage: ${selectionInWords()}, ${plural(tasks.length, "task")}`,
      rows: lines,
      sort: "model",
      columns: [MODEL_COLUMN, ...strategyColumns(lines), ...states],
    }),
    statePicture(lines, tasks),
    reasonList(lines, tasks),
  ];
}

function statePicture(lines, tasks) {
  const several = selectedStrategies().length > 1;
  const columns = bySection(tasks, "suite").flatMap(([suite, members]) =>
    inOrder(members, "name", []).map((task) => ({
      task,
      title: datasets[task].name,
      node: link(taskAddress(task), datasets[task].name),
      group: suiteTitle(suite),
    })),
  );
  return heat({
    kind: "states",
    label: `State of each task: ${selectionInWords()}`,
    heading: "Model",
    rows: lines.map((line) => ({ title: rowTitle(line, several), node: namedWithStrategy(line, several) })),
    columns,
    cell: (row, column) => {
      const { task } = columns[column];
      const { entry, strategy } = lines[row];
      const { state, reason } = stateOf(lines[row], task);
      const [, title, words] = STATES.find(([name]) => name === state) ?? [state, state, "?"];
      const tip = [datasets[task].name, entries[entry].label, `${strategies[strategy][1]}: ${title}`, reason];
      return { state: title, words, said: title, tip, go: taskAddress(task) };
    },
    words: {
      states: STATES.map(([, name]) => name),
      colours: STATES.map(([, , , colour]) => colour),
      legend_columns: isNarrow() ? 1 : 4,
    },
  });
}

// The reasons, each with the tasks that it concerns.
function reasonList(lines, tasks) {
  const found = lines
    .flatMap((line) => tasks.map((task) => ({ task, ...stateOf(line, task) })))
    .filter(({ state }) => state !== "scored" && state !== "not asked")
    .map(({ task, state, reason }) => ({ task, reason: `${state}: ${reason || "no reason on record"}` }));
  if (!found.length) return note("Everything that was asked for has a score.");
  const named = (task) => [taskLink(task), text("span", "soft", ` ${suiteTitle(homeOf(datasets[task]))}`)];
  const item = ([reason, of]) => [
    text("span", "", reason),
    folded(plural(of.length, "task"), () => bullets(of.map(named), "columns"), { open: onPaper }),
  ];
  const byReason = grouped(found, ({ reason }) => reason).map((some) => [
    some[0].reason,
    [...new Set(some.map(({ task }) => task))],
  ]);
  byReason.sort(([, one], [, other]) => other.length - one.length);
  return titled("Why results are missing", bullets(byReason.map(item), "reasons"));
}
