// Every model on every task, or on the means of an axis.

const MOST_SINGLE = 24; // tasks that are shown one by one unless asked for

function drawHeatMap() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  const lines = heatLines(rows);
  const keys = columnAxes(tasks, lines);
  const key = keys.find((axis) => axis === option("group")) ?? keys[0];
  const shows = [...(keys.length ? ["means"] : []), ...(lines.some((line) => !line.printed) ? ["tasks"] : [])];
  if (tasks.length <= MOST_SINGLE) shows.reverse();
  const titles = { means: "means over tasks", tasks: "single tasks" };
  const means = choice("show", shows) === "means";
  const columns = means ? meanColumns(tasks, key) : taskColumns(tasks);
  const found = lines.map((line) => ({ line, reached: columns.map((column) => column.reach(line)) }));
  const shown = found.filter(({ reached }) => reached.some(Boolean));
  const across = [...columns.keys()].filter((place) => shown.some(({ reached }) => reached[place]));
  const several = severalStrategies(lines);
  return [
    controls(
      shows.length > 1 ? switcher("Columns", "show", shows.map((id) => [id, titles[id]]), means ? "means" : "tasks") : null,
      means ? selector("by", "group", keys.map((axis) => [axis, axisTitle(axis)]), key) : null,
    ),
    heat({
      label: `Score of each model on each ${means ? axisWords(key) : "task"}: ${selectionInWords()}`,
      heading: "Model",
      rows: shown.map(({ line }) => ({
        title: nameInPicture(line, several),
        node: namedWithStrategy(line, several),
        own: isOwn(line.entry),
      })),
      columns: across.map((place) => columns[place]),
      cell: (row, column) => heatCell(shown[row].line, columns[across[column]], shown[row].reached[across[column]]),
      words: { colours: "sequential", domain: [0, 1], measure: "score", format: ".1f" },
    }),
    shown.some(({ reached }) => reached.some((item) => item && item.scored < item.total)) ? note("* over a part of the column’s tasks.") : null,
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

// Columns: {title, node, go, reach(line)}.
function taskColumns(tasks) {
  const byName = [...tasks].sort((one, other) => compareValues(datasets[one].name, datasets[other].name));
  return byName.map((task) => ({
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

function heatCell(row, column, reached) {
  if (!reached) return null;
  const part = reached.scored < reached.total ? "*" : "";
  const tip = [column.title, ...tipLines({ ...row, ...reached })];
  return { value: reached.score, words: `${fixed(reached.score)}${part}`, go: column.go, tip };
}
