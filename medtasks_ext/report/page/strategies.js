// What reasoning first, or five examples, change against zero-shot, on the tasks that a model has with both.

function drawStrategies() {
  const tasks = selectedTasks();
  const base = strategyAt.get("zero_shot");
  const others = [...strategies.keys()].filter((strategy) => strategy !== base);
  if (base === undefined || !others.length) return [nothing("This report holds one strategy only.")];
  const parts = bySection(tasks, "suite")
    .map(([suite, members]) => strategySection(suite, members, base, others))
    .filter(Boolean);
  return [
    note(
      "The filter for strategies does not apply here. Both strategies answered the same documents, and are paired by these; ≈ intervals take the normal distribution.",
    ),
    ...(parts.length ? parts : [nothing("No model has results with two strategies on the selected tasks.")]),
  ];
}

function strategySection(suite, tasks, base, others) {
  const rows = selectedEntries()
    .map((entry) => ({ entry, deltas: others.map((strategy) => deltaOf(entry, strategy, base, tasks)) }))
    .filter((row) => row.deltas.some(Boolean));
  if (!rows.length) return null;
  const order = choice("delta", ["own", ...others.map((strategy) => strategies[strategy][0])]);
  const by = others.findIndex((strategy) => strategies[strategy][0] === order);
  rows.sort((one, other) =>
    by < 0
      ? isOwn(other.entry) - isOwn(one.entry) || compareValues(entries[one.entry].label, entries[other.entry].label)
      : (other.deltas[by]?.value ?? -9) - (one.deltas[by]?.value ?? -9),
  );
  const lines = rows.map((row) => ({
    title: shortName(markedName(row.entry)),
    node: modelLink(row.entry),
    own: isOwn(row.entry),
    points: row.deltas.flatMap((delta, series) =>
      delta
        ? [
            {
              ...delta,
              series,
              tip: [
                entries[row.entry].label,
                `${strategies[others[series]][1]} minus zero-shot: ${signed(delta.value)} ${interval(delta, signed)}`,
                `zero-shot ${fixed(delta.base)}; ${plural(delta.tasks, "shared task")} of ${tasks.length}`,
              ],
            },
          ]
        : [],
    ),
  }));
  const points = lines.flatMap((line) => line.points);
  const all = option("lines") === "all" || onPaper;
  const shown = lines.filter((line, place) => all || line.own || place < MOST_LINES);
  const partial = points.some((point) => point.tasks < tasks.length);
  return titled(
    `${suiteTitle(suite)}, ${plural(tasks.length, "task")}`,
    switcher(
      "Order",
      "delta",
      [
        ["own", "own runs first"],
        ...others.map((strategy) => [strategies[strategy][0], `by ${strategies[strategy][1]}`]),
      ],
      order,
    ),
    partial
      ? note(
          "Some models lack some of these tasks in one of the strategies; each difference is over the tasks that the model has with both.",
        )
      : null,
    dots({
      label: `Change against zero-shot, ${suiteTitle(suite)}`,
      series: others.map((strategy) => strategies[strategy][1]),
      rows: shown,
      format: signed,
      words: {
        ...looksOf(others.map((strategy) => strategies[strategy][1])),
        domain: domainOf(points, { symmetric: true, zero: true }),
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
  const shared = sharedTasks(
    [
      { entry, strategy },
      { entry, strategy: base },
    ],
    tasks,
  );
  if (!shared.length) return null;
  const asPlain = (which) => shared.map((task) => resultRow(entry, which, task));
  const level = (which) => mean(asPlain(which).map((row) => results.score[row]));
  const deviations = asPlain(strategy).map((row) => results.sd_of_gain[row]);
  const value = level(strategy) - level(base);
  const spread = deviations.every(isNumber)
    ? (1.96 * Math.sqrt(sum(deviations.map((sd) => sd * sd)))) / shared.length
    : null;
  return {
    value,
    base: level(base),
    low: spread === null ? null : value - spread,
    high: spread === null ? null : value + spread,
    approximate: spread !== null,
    tasks: shared.length,
  };
}
