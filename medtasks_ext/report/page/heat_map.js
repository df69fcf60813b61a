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
  const show_ = choice("show", shows);
  const means = show_ === "means";
  const against = choice("against", ["zero", "median"]);
  const titles = { means: "means over tasks", tasks: "single tasks" };
  const orders = [["name", "by name"], ["score", "hardest first"]];
  const colours = [["zero", "score"], ["median", "against the column’s median"]];
  const columns = means ? meanColumns(tasks, key) : taskColumns(tasks, order, all);
  return [
    controls(
      shows.length > 1 ? switcher("Columns", "show", shows.map((id) => [id, titles[id]]), show_) : null,
      means
        ? selector("by", "group", axes_.map((axis) => [axis, axisTitle(axis)]), key)
        : switcher("Order", "order", orders, order),
      switcher("Colour", "against", colours, against),
    ),
    ...heatOf(all, columns, means ? axisWords(key) : "task", against === "median"),
  ];
}

// The rows of a heat map, own ones first, then by their place.
const heatLines = (rows) =>
  rankedRows(rows).sort((one, other) => isOwn(other.entry) - isOwn(one.entry) || bySectionAndScore(one, other));
const bySectionAndScore = (one, other) => heatRank(one) - heatRank(other) || (other.score ?? -1) - (one.score ?? -1);
const heatRank = (row) => SECTIONS.findIndex(([id]) => id === row.section);

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
  const isThere = wanted.map((_, place) => found.some((line) => line[place]));
  const columns = wanted.filter((_, place) => isThere[place]);
  const lines = all.filter((_, place) => found[place].some(Boolean));
  const reached = found.filter((line) => line.some(Boolean)).map((line) => line.filter((_, place) => isThere[place]));
  const several = severalStrategies(lines);
  const middles = columns.map((_, place) => (median ? middleOf(reached.map((line) => line[place]?.score)) : null));
  const cell = (row, column) => heatCell(lines[row], columns[column], reached[row][column], middles[column]);
  const plain = { colours: "sequential", domain: [0, 1], measure: "score", format: ".1f" };
  const parts = reached.some((line) => line.some((item) => item && item.scored < item.total));
  return [
    heat({
      label: `${median ? "Score against the median" : "Score"} of each model on each ${what}: ${selectionInWords()}`,
      heading: "Model",
      rows: lines.map((row) => ({
        title: nameInPicture(row, several),
        node: namedWithStrategy(row, several),
        own: isOwn(row.entry),
      })),
      columns,
      cell,
      words: median ? againstMedian(lines, columns, cell) : plain,
    }),
    parts ? note("* over a part of the column’s tasks.") : null,
  ];
}

function taskColumns(tasks, order, lines) {
  return inOrder(tasks, order, lines).map((task) => ({
    title: datasets[task].name,
    node: taskLink(task),
    go: taskAddress(task),
    reach: ({ entry, strategy }) => {
      const found = resultAt(entry, strategy, task);
      return isNumber(found.score) ? { ...found, scored: 1, total: 1 } : null;
    },
  }));
}

function meanColumns(tasks, key) {
  const values = bySection(tasks, key).filter(([value]) => value !== null);
  return values.map(([value, members]) => ({
    title: valueTitle(key, value),
    n: members.length,
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
  const scores = (task) => rows.map((row) => resultOf(row.entry, row.strategy, task, "score")).filter(isNumber);
  const level = new Map(byName.map((task) => [task, mean(scores(task))]));
  return byName.sort((one, other) => compareValues(level.get(one), level.get(other)));
}

function heatCell({ entry, strategy }, column, reached, middle) {
  if (!reached) return null;
  const { score, scored, total } = reached;
  const value = middle === null ? score : score - middle;
  const part = scored < total ? "*" : "";
  const tip = [
    `${fixed(score)} ${interval(reached)}`,
    middle === null ? null : `${signed(value)} from the median ${fixed(middle)}`,
    entries[entry].label,
    `${column.title} · ${strategies[strategy][1]}`,
    part ? `over ${scored} of ${plural(total, "task")}` : null,
    entries[entry].sample ? "SAMPLE: synthetic rows" : null,
  ];
  return { value, words: `${middle === null ? fixed(score) : signed(value)}${part}`, go: column.go, tip };
}

function againstMedian(lines, columns, cell) {
  const values = lines.flatMap((_, row) => columns.map((_, column) => Math.abs(cell(row, column)?.value ?? 0)));
  const sorted = values.sort((one, other) => one - other);
  // a few outliers must not pale the rest
  const most = Math.max(0.05, Math.ceil(20 * sorted[Math.floor(0.95 * (sorted.length - 1))]) / 20);
  return { colours: "diverging", domain: [-most, most], measure: "from the median", format: "+.2f" };
}
