// Every model on every task, or on the means of an axis.

const MOST_SINGLE = 24; // tasks that are shown one by one unless asked for

function drawHeatMap() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  const known = taskAxes.filter((axis) => tasks.some((task) => valuesOf(datasets[task], axis.key).length));
  const usual = known.find((axis) => axis.key === "task_type") ?? known[0];
  const key = known.find((axis) => axis.key === option("group"))?.key ?? usual.key;
  const order = choice("order", ["name", "score"]);
  const shows = tasks.length > MOST_SINGLE ? ["means", "tasks"] : ["tasks", "means"];
  const means = choice("show", shows) === "means";
  const median = choice("against", ["zero", "median"]) === "median";
  const lines = rankedRows(rows)
    .filter((row) => !row.printed)
    .sort(
      (one, other) =>
        isOwn(other.entry) - isOwn(one.entry) || heatRank(one) - heatRank(other) || (other.score ?? -1) - (one.score ?? -1),
    );
  const several = severalStrategies(lines);
  const names = lines.map((row) => ({
    title: nameInPicture(row, several),
    node: make("span", {}, modelLink(row.entry), several ? text("span", "soft", ` ${strategies[row.strategy][1]}`) : null),
    own: isOwn(row.entry),
  }));
  const columns = means ? meanColumns(tasks, key) : taskColumns(tasks, order, lines);
  const reached = lines.map((line) => columns.map((column) => column.reach(line)));
  const middles = columns.map((_, place) => middleOf(reached.map((line) => line[place]?.score)));
  const cell = (row, column) => heatCell(lines[row], columns[column], reached[row][column], median ? middles[column] : null);
  return [
    make(
      "div",
      { className: "controls" },
      switcher("Columns", "show", shows.map((id) => [id, id === "means" ? "means over tasks" : "single tasks"]), means ? "means" : "tasks"),
      means
        ? selector("by", "group", known.map((axis) => [axis.key, axisTitle(axis.key)]), key)
        : switcher("Order", "order", [["name", "by name"], ["score", "hardest first"]], order),
      switcher("Colour", "against", [["zero", "score"], ["median", "against the column’s median"]], median ? "median" : "zero"),
    ),
    heat({
      label: `${median ? "Score against the median" : "Score"} of each model on each ${means ? axisTitle(key).toLowerCase() : "task"}: ${selectionInWords()}`,
      heading: "Model",
      rows: names,
      columns,
      cell,
      words: median ? againstMedian(lines, columns, cell) : { colours: "sequential", domain: [0, 1], measure: "score", format: ".1f" },
    }),
    reached.some((line) => line.some((item) => item && item.scored < item.total))
      ? note("* over a part of the column’s tasks.")
      : null,
  ];
}

const heatRank = (row) => SECTIONS.findIndex(([id]) => id === row.section);

function taskColumns(tasks, order, lines) {
  return inOrder(tasks, order, lines).map((task) => ({
    title: datasets[task].name,
    node: taskLink(task),
    go: taskAddress(task),
    reach: ({ entry, strategy }) => {
      const row = resultRow(entry, strategy, task);
      if (row < 0 || !isNumber(results.score[row])) return null;
      return { score: results.score[row], low: results.low[row], high: results.high[row], scored: 1, total: 1 };
    },
  }));
}

function meanColumns(tasks, key) {
  return bySection(tasks, key)
    .filter(([value]) => value !== null)
    .map(([value, members]) => ({
      title: valueTitle(key, value),
      node: link(address("leaderboard", "", { [key]: asList([value]) }), valueTitle(key, value)),
      go: address("heatmap", "", { [key]: asList([value]), show: "tasks" }),
      reach: ({ entry, strategy }) => {
        const found = aggregate(entry, strategy, members, groupsOf(members, [key]));
        return found && isNumber(found.score) ? found : null;
      },
    }));
}

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

function middleOf(values) {
  const sorted = values.filter(isNumber).sort((one, other) => one - other);
  if (!sorted.length) return null;
  const half = (sorted.length - 1) / 2;
  return (sorted[Math.floor(half)] + sorted[Math.ceil(half)]) / 2;
}

function heatCell({ entry, strategy }, column, reached, middle) {
  if (!reached) return null;
  const { score, scored, total } = reached;
  const value = middle === null ? score : score - middle;
  const part = scored < total ? "*" : "";
  return {
    value,
    words: `${middle === null ? fixed(score) : signed(value)}${part}`,
    go: column.go,
    tip: [
      `${fixed(score)} ${interval(reached)}`,
      middle === null ? null : `${signed(value)} from the median ${fixed(middle)}`,
      entries[entry].label,
      `${column.title} · ${strategies[strategy][1]}`,
      part ? `over ${scored} of ${plural(total, "task")}` : null,
      entries[entry].sample ? "SAMPLE: synthetic rows" : null,
    ],
  };
}

function againstMedian(lines, columns, cell) {
  const values = lines.flatMap((_, row) => columns.map((_, column) => Math.abs(cell(row, column)?.value ?? 0)));
  const sorted = values.sort((one, other) => one - other);
  const most = Math.max(0.05, Math.ceil(20 * sorted[Math.floor(0.95 * (sorted.length - 1))]) / 20); // a few outliers must not pale the rest
  return { colours: "diverging", domain: [-most, most], measure: "from the median", format: "+.2f" };
}
