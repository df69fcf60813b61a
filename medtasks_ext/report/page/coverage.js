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
  coverageAt.set(placeOf(entry, strategy[row], dataset[row]), {
    state: state[row],
    reason: reasons[reason[row]] ?? "",
  });
});

function stateOf(entry, strategy, task) {
  if (isNumber(resultOf(entry, strategy, task, "score"))) return { state: "scored", reason: "" };
  return (
    coverageAt.get(placeOf(entry, strategy, task)) ?? {
      state: resultRow(entry, strategy, task) < 0 ? "not asked" : "without gold",
      reason: "",
    }
  );
}

function drawCoverage() {
  const tasks = selectedTasks();
  if (!tasks.length) return [emptySelection()];
  const lines = selectedStrategies().flatMap((strategy) =>
    selectedEntries()
      .filter(isOwn)
      .map((entry) => ({ entry, strategy })),
  );
  if (!lines.length) return [note("No own runs in this selection; published results are as their papers print them.")];
  const several = selectedStrategies().length > 1;
  const columns = bySection(tasks, "suite").flatMap(([suite, members]) =>
    inOrder(members, "name", []).map((task) => ({
      task,
      title: datasets[task].name,
      node: link(taskAddress(task), datasets[task].name),
      group: suiteTitle(suite),
    })),
  );
  const rows = lines.map((line) => ({
    title: rowTitle(line, several),
    node: make(
      "span",
      {},
      modelLink(line.entry),
      several ? text("span", "soft", ` ${strategies[line.strategy][1]}`) : null,
    ),
  }));
  return [
    table({
      name: "coverage",
      caption: `Coverage: ${selectionInWords()}, ${plural(tasks.length, "task")}`,
      rows: lines,
      sort: "model",
      columns: coverageColumns(lines, tasks),
    }),
    statePicture(lines, rows, columns),
    reasonList(lines, tasks),
  ];
}

function coverageColumns(lines, tasks) {
  const tally = (line, state) =>
    tasks.filter((task) => stateOf(line.entry, line.strategy, task).state === state).length;
  return [
    MODEL_COLUMN,
    ...strategyColumns(lines),
    ...STATES.map(([state, title]) => ({
      key: state.replace(" ", "_"),
      title: state,
      hint: title,
      numeric: true,
      value: (line) => tally(line, state),
      cell: (line) => count(tally(line, state)),
    })),
  ];
}

function statePicture(lines, rows, columns) {
  const titles = new Map(STATES.map(([state, title, glyph]) => [state, { title, glyph }]));
  return heat({
    kind: "states",
    label: `State of each task: ${selectionInWords()}`,
    heading: "Model",
    rows,
    columns,
    cell: (row, column) => {
      const { entry, strategy } = lines[row];
      const { task } = columns[column];
      const { state, reason } = stateOf(entry, strategy, task);
      const { title, glyph } = titles.get(state) ?? { title: state, glyph: "?" };
      const tip = [datasets[task].name, entries[entry].label, `${strategies[strategy][1]}: ${title}`, reason];
      return { state: title, words: glyph, said: title, tip, go: taskAddress(task) };
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
  const byReason = new Map();
  for (const line of lines)
    for (const task of tasks) {
      const { state, reason } = stateOf(line.entry, line.strategy, task);
      if (state === "scored" || state === "not asked") continue;
      const key = `${state}: ${reason || "no reason on record"}`;
      if (!byReason.has(key)) byReason.set(key, new Map());
      const found = byReason.get(key);
      found.set(task, (found.get(task) ?? 0) + 1);
    }
  if (!byReason.size) return note("Everything that was asked for has a score.");
  const sorted = [...byReason].sort(([, one], [, other]) => other.size - one.size);
  return titled(
    "Why results are missing",
    make(
      "ul",
      { className: "reasons" },
      ...sorted.map(([reason, found]) =>
        make(
          "li",
          {},
          text("span", "", reason),
          folded(
            plural(found.size, "task"),
            () =>
              make(
                "ul",
                { className: "columns" },
                ...[...found.keys()].map((task) =>
                  make("li", {}, taskLink(task), text("span", "soft", ` ${suiteTitle(homeOf(datasets[task]))}`)),
                ),
              ),
            { open: onPaper },
          ),
        ),
      ),
    ),
  );
}
