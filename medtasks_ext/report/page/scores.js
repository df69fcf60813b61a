// Means over any set of tasks, each task counting once.
//
// Where the set is one of the report's groups, score and interval are those that the report computed. Elsewhere the page
// works them out by the same rule, `of_tasks` of medtasks_ext/stats/intervals.py.

// A group is the tasks of one value of an axis, inside a suite or (suite null) across suites.
const groupRow = new Map(); // "entry strategy axis value suite" -> row of `groups`
groups.entry.forEach((entry, row) => {
  groupRow.set([entry, groups.strategy[row], groups.axis[row], groups.value[row], groups.suite[row]].join(" "), row);
});

const groupSets = new Map(); // dataset indices joined -> [{axis, value, suite}, ..]
axes.forEach((axis, axisIndex) =>
  axis.values.forEach(([value], valueIndex) => {
    const members =
      axis.key === "all" ? counted : counted.filter((task) => valuesOf(datasets[task], axis.key).includes(value));
    for (const suite of [null, ...suites]) {
      const inside = (task) => (suite ? datasets[task].suite === suite : datasets[task].in_totals);
      const key = members.filter(inside).join();
      if (!key) continue;
      if (!groupSets.has(key)) groupSets.set(key, []);
      groupSets.get(key).push({ axis: axisIndex, value: valueIndex, suite });
    }
  }),
);

// The groups that hold exactly these tasks, first those of the axes that the tasks were chosen by: the same
// tasks may be averaged in two ways (a suite over its dimensions, its language over tasks).
function groupsOf(tasks, keys = filters.map(({ key }) => key).filter((key) => chosen(key).length)) {
  const wanted = ({ axis }) => (keys.includes(axes[axis].key) ? 0 : 1);
  return [...(groupSets.get(together(tasks).join()) ?? [])].sort(
    (one, other) => wanted(one) - wanted(other) || one.axis - other.axis,
  );
}

const withResults = new Set(results.dataset);
// The tasks of the package, and of suites that stand apart those that were run.
const expected = counted.filter((task) => datasets[task].in_totals || withResults.has(task));

// Suites that stand apart count in no mean with other suites' tasks.
function together(tasks) {
  const among = tasks.filter((task) => datasets[task].in_totals);
  return among.some((task) => withResults.has(task)) ? among : tasks;
}

// A suite may leave data sets out of the means of an axis; its own groups are means over its paper's data sets,
// unless they hold others only.
function averaged(selected, [group]) {
  const tasks = together(selected);
  if (!group) return tasks;
  const { suite } = group;
  const ofPaper = suite ? tasks.filter((task) => !datasets[task].added.includes(suite)) : tasks;
  const isLeftOut = (task) =>
    Object.entries(datasets[task].left_out).some(
      ([by, keys]) => (!suite || by === suite) && keys.includes(axes[group.axis].key),
    );
  return (ofPaper.length ? ofPaper : tasks).filter((task) => !isLeftOut(task));
}

// Wilson's interval of a score on 0-1 of so many documents.
const Z = 1.959963984540054;
function wilsonInterval(score, size) {
  const a = Z ** 2 / size;
  const middle = (score + a / 2) / (1 + a);
  const half = Math.sqrt(a * (score * (1 - score) + a / 4)) / (1 + a);
  return { low: Math.min(Math.max(middle - half, 0), score), high: Math.max(Math.min(middle + half, 1), score) };
}

// Of the mean over tasks; each has a score, and the number of documents that its interval is worth.
function meanInterval(scores, sizes) {
  const inside = scores.map((score) => Math.min(Math.max(score, 0), 1));
  const shrunk = inside.map((score, place) => (score * sizes[place] + 0.5) / (sizes[place] + 1));
  const middle = mean(shrunk);
  const least = scores.length > 1 ? 1 : 0;
  const variances = shrunk.map((score, place) => (score * (1 - score)) / Math.max(sizes[place], least));
  return wilsonInterval(mean(inside), (middle * (1 - middle) * scores.length ** 2) / sum(variances));
}

// What one entry reached on tasks (sorted dataset indices) with one strategy; null if it did none of them.
// {score, low, high, rough, group, scored, total, valid, cut, unclosed, inputs_cut, usd}
function aggregate(entry, strategy, all, asGroups = groupsOf(all)) {
  const tasks = averaged(all, asGroups);
  const rows = tasks.map((task) => resultRow(entry, strategy, task)).filter((row) => row >= 0);
  const given = (column) => rows.map((row) => valueAt(row, column)).filter(isGiven);
  const shares = Object.fromEntries(["valid", "cut", "unclosed", "inputs_cut"].map((name) => [name, mean(given(name))]));
  const rest = { ...shares, usd: costOf(entry, rows), pending: given("judged").length, otherwise: given("otherwise") };
  const found = asGroups.map(({ axis, value, suite }) => groupRow.get([entry, strategy, axis, value, suite].join(" ")));
  const row = found.find((place) => place !== undefined && isNumber(groups.score[place]));
  if (row !== undefined) return { ...rest, ...ofGroup(row, rest, tasks.length), printed: !rows.length }; // by a paper alone
  if (!rows.length) return null;
  const scored = rows.filter((place) => isNumber(results.score[place]));
  const total = tasks.length;
  return { ...rest, ...meanOf(scored, total), group: false, printed: false, scored: scored.length, total };
}

const tasksOfSuite = (suite) => counted.filter((task) => datasets[task].suite === suite);

// What the report worked out of a group.
function ofGroup(row, { valid, cut }, n) {
  const get = (name) => groups[name]?.[row] ?? null;
  const ofPaper = !isNumber(get("low")) && isNumber(get("paper_low"));
  const total = get("tasks") ?? n;
  return {
    score: get("score"),
    low: get(ofPaper ? "paper_low" : "low"),
    high: get(ofPaper ? "paper_high" : "high"),
    rough: get("rough"),
    ofPaper,
    valid: valid ?? get("valid"),
    cut: cut ?? get("cut"),
    group: true,
    scored: get("scored") ?? total,
    total,
  };
}

// The mean over rows with a score, with its interval; that of a single task is its own. Tasks of some suites have no mean.
function meanOf(scored, n) {
  const score = mean(scored.map((row) => results.score[row]));
  const sizes = scored.map((row) => results.size[row]);
  const rough = scored.some((row) => valueAt(row, "rough"));
  if (scored.length > 1 && scored.some((row) => !datasets[results.dataset[row]].averaged)) return { score: null };
  if (!scored.length || !sizes.every(isNumber)) return { score };
  if (n === 1) return { score, low: results.low[scored[0]], high: results.high[scored[0]], rough };
  return { score, rough, ...meanInterval(scored.map((row) => results.score[row]), sizes) };
}

const rowsOfEntry = entries.map(() => 0);
results.entry.forEach((entry) => {
  rowsOfEntry[entry] += 1;
});

// Cost of some experiments of an entry in USD, or null: the sum of their own; published costs are of all of them.
function costOf(entry, rows) {
  const own = rows.map((row) => results.usd?.[row] ?? null);
  if (rows.length && own.every(isNumber)) return sum(own);
  return rows.length && !isOwn(entry) && rows.length === rowsOfEntry[entry] ? entries[entry].usd : null;
}

// Tasks that everyone in `rows` ({entry, strategy}) has a score for.
function sharedTasks(rows, tasks) {
  return tasks.filter((task) => rows.every((row) => isNumber(resultOf(row.entry, row.strategy, task, "score"))));
}
