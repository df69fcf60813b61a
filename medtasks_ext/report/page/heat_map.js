// Every model on every task, or on the means of an axis.

const MOST_SINGLE = 24; // tasks that are shown one by one unless asked for

function drawHeatMap() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  const all = heatLines(rows);
  const axes_ = columnAxes(tasks, all);
  const key = axes_.find((axis) => axis === option("group")) ?? axes_[0];
  const order = choice("order", ["name", "score"]);
  const shows = [...(axes_.length ? ["means"] : []), ...(all.some((line) => !line.printed) ? ["tasks"] : [])];
  if (tasks.length <= MOST_SINGLE) shows.reverse();
  const means = choice("show", shows) === "means";
  const median = choice("against", ["zero", "median"]) === "median";
  const columns = means ? meanColumns(tasks, key) : taskColumns(tasks, order, all);
  return [
    make(
      "div",
      { className: "controls" },
      shows.length > 1
        ? switcher("Columns", "show", shows.map((id) => [id, id === "means" ? "means over tasks" : "single tasks"]), means ? "means" : "tasks")
        : null,
      means
        ? selector("by", "group", axes_.map((axis) => [axis, axisTitle(axis)]), key)
        : switcher("Order", "order", [["name", "by name"], ["score", "hardest first"]], order),
      switcher("Colour", "against", [["zero", "score"], ["median", "against the column’s median"]], median ? "median" : "zero"),
    ),
    ...heatOf(all, columns, means ? axisWords(key) : "task", median),
  ];
}

// The rows of a heat map, own ones first, then by their place.
const heatLines = (rows) =>
  rankedRows(rows).sort(
    (one, other) =>
      isOwn(other.entry) - isOwn(one.entry) || heatRank(one) - heatRank(other) || (other.score ?? -1) - (one.score ?? -1),
  );

// Axes that make several columns for the selected tasks, kinds of tasks first. A paper may print means of an axis
// alone, without the scores of tasks: such an axis comes before all others.
function columnAxes(tasks, lines) {
  const keys = taskAxes.map((axis) => axis.key);
  const several = keys.filter((key) => new Set(tasks.flatMap((task) => valuesOf(datasets[task], key))).size > 1);
  const order = (key) => (key === "task_type" ? 0 : key === "suite" ? 2 : 1);
  const found = several.sort((one, other) => order(one) - order(other));
  if (!lines.length || lines.some((line) => !line.printed)) return found;
  const reached = (key) => meanColumns(tasks, key).filter((column) => lines.some((line) => column.reach(line)));
  return found.filter((key) => reached(key).length > 1);
}

// Models on columns: {title, node, go, reach(line)}; those without any score are left out. `what` they are, in words.
function heatOf(all, wanted, what, median = false) {
  const found = all.map((line) => wanted.map((column) => column.reach(line)));
  const known = wanted.map((_, place) => found.some((line) => line[place]));
  const columns = wanted.filter((_, place) => known[place]);
  const lines = all.filter((_, place) => found[place].some(Boolean));
  const reached = found.filter((line) => line.some(Boolean)).map((line) => line.filter((_, place) => known[place]));
  const several = severalStrategies(lines);
  const names = lines.map((row) => ({
    title: nameInPicture(row, several),
    node: make("span", {}, modelLink(row.entry), several ? text("span", "soft", ` ${strategies[row.strategy][1]}`) : null),
    own: isOwn(row.entry),
  }));
  const middles = columns.map((_, place) => middleOf(reached.map((line) => line[place]?.score)));
  const cell = (row, column) => heatCell(lines[row], columns[column], reached[row][column], median ? middles[column] : null);
  return [
    heat({
      label: `${median ? "Score against the median" : "Score"} of each model on each ${what}: ${selectionInWords()}`,
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
