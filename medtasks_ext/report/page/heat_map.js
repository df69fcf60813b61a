// Every model on every task.

function drawHeatMap() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  const key = choice(
    "group",
    taskAxes.map((axis) => axis.key),
  );
  const order = choice("order", ["name", "score"]);
  const lines = rankedRows(rows)
    .filter((row) => !row.printed)
    .sort((one, other) => heatRank(one) - heatRank(other) || (other.score ?? -1) - (one.score ?? -1));
  const several = severalStrategies(lines);
  const columns = bySection(tasks, key).flatMap(([value, members]) =>
    inOrder(members, order, lines).map((task) => ({
      task,
      title: datasets[task].name,
      node: link(taskAddress(task), datasets[task].name),
      group: value === null ? "–" : valueTitle(key, value),
    })),
  );
  const names = lines.map((row) => ({
    title: entries[row.entry].label + (several ? ` · ${strategies[row.strategy][1]}` : ""),
    node: make(
      "span",
      {},
      link(modelAddress(row.entry), entries[row.entry].label),
      entries[row.entry].sample ? tag("sample", "SAMPLE") : null,
      several ? text("span", "soft", strategies[row.strategy][1]) : null,
    ),
  }));
  const known = taskAxes.filter((axis) => tasks.some((task) => valuesOf(datasets[task], axis.key).length));
  return [
    make(
      "div",
      { className: "controls" },
      selector(
        "Columns by",
        "group",
        known.map((axis) => [axis.key, axisTitle(axis.key)]),
        key,
      ),
      switcher(
        "Order",
        "order",
        [
          ["name", "by name"],
          ["score", "hardest first"],
        ],
        order,
      ),
    ),
    grid({
      label: `Score of each model on each task: ${selectionInWords()}`,
      heading: "Model",
      rows: names,
      columns,
      legend: rampLegend(sequential, 0, 1, ["0", "1", "– no score"]),
      cell: (row, column) => heatCell(lines[row], columns[column].task),
    }),
  ];
}

const heatRank = (row) => SECTIONS.findIndex(([id]) => id === row.section);

function inOrder(tasks, order, rows) {
  const byName = [...tasks].sort((one, other) => compareValues(datasets[one].name, datasets[other].name));
  if (order === "name") return byName;
  const level = new Map(
    byName.map((task) => [
      task,
      mean(rows.map((row) => resultOf(row.entry, row.strategy, task, "score")).filter(isNumber)),
    ]),
  );
  return byName.sort((one, other) => compareValues(level.get(one), level.get(other)));
}

function heatCell({ entry, strategy }, task) {
  const row = resultRow(entry, strategy, task);
  const score = row < 0 ? null : results.score[row];
  if (!isNumber(score)) return null;
  return {
    colour: sequential(score),
    text: fixed(score),
    go: taskAddress(task),
    tip: [
      `${fixed(score)} ${interval({ low: results.low[row], high: results.high[row] })}`,
      entries[entry].label,
      `${datasets[task].name} · ${suiteTitle(homeOf(datasets[task]))} · ${strategies[strategy][1]}`,
      entries[entry].sample ? "SAMPLE: synthetic rows" : null,
    ],
  };
}
