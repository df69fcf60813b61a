// What reasoning first, or five examples, change against zero-shot, on the tasks that a model has with both.

function drawStrategies() {
  const base = strategyAt.get("zero_shot");
  const others = [...strategies.keys()].filter((strategy) => strategy !== base);
  if (base === undefined || !others.length) return [nothing("This report holds one strategy only.")];
  const parts = bySection(selectedTasks(), "suite")
    .map(([suite, members]) => strategySection(suite, members, base, others))
    .filter(Boolean);
  return [
    note(
      "The filter for strategies does not apply here. Both strategies answered the same documents, and are paired by these, " +
        "on the tasks that a model has with both; ≈ intervals take the normal distribution.",
    ),
    ...(parts.length ? parts : [nothing("No model has results with two strategies on the selected tasks.")]),
  ];
}

function strategySection(suite, tasks, base, others) {
  const titles = others.map((strategy) => strategies[strategy][1]);
  const rows = selectedEntries()
    .map((entry) => ({ entry, deltas: others.map((strategy) => deltaOf(entry, strategy, base, tasks)) }))
    .filter((row) => row.deltas.some(Boolean));
  if (!rows.length) return null;
  const labelOf = (row) => entries[row.entry].label;
  rows.sort((one, other) => isOwn(other.entry) - isOwn(one.entry) || compareValues(labelOf(one), labelOf(other)));
  const point = (row, delta, series) => {
    const change_ = `${titles[series]} minus zero-shot: ${signed(delta.value)} ${interval(delta, signed)}`;
    const on = `zero-shot ${fixed(delta.base)}; ${plural(delta.tasks, "shared task")} of ${tasks.length}`;
    return { ...delta, series, tip: [labelOf(row), change_, on] };
  };
  const lines = rows.map((row) => ({
    title: shortName(markedName(row.entry)),
    node: modelLink(row.entry),
    own: isOwn(row.entry),
    points: row.deltas.flatMap((delta, series) => (delta ? [point(row, delta, series)] : [])),
  }));
  const shown = linesShown(lines);
  return titled(
    `${suiteTitle(suite)}, ${plural(tasks.length, "task")}`,
    dots({
      label: `Change against zero-shot, ${suiteTitle(suite)}`,
      series: titles,
      rows: shown,
      format: signed,
      words: {
        ...looksOf(titles),
        measure: "difference of mean scores",
        format: "+.4~f",
        zero: true,
        origin: 0,
      },
    }),
    shown.length < lines.length ? smallButton(`Show all ${count(lines.length)} models`, { lines: "all" }) : null,
  );
}

function deltaOf(entry, strategy, base, tasks) {
  const both = [strategy, base].map((which) => ({ entry, strategy: which }));
  const shared = sharedTasks(both, tasks);
  if (!shared.length) return null;
  const rows = (which) => shared.map((task) => resultRow(entry, which, task));
  const level = (which) => mean(rows(which).map((row) => results.score[row]));
  const deviations = rows(strategy).map((row) => results.sd_of_gain[row]);
  const value = level(strategy) - level(base);
  const approximate = deviations.every(isNumber);
  const spread = (1.96 * Math.hypot(...deviations)) / shared.length;
  const range = approximate ? { low: value - spread, high: value + spread } : { low: null, high: null };
  return { value, base: level(base), ...range, approximate, tasks: shared.length };
}
