// Means over any set of tasks, each task counting once.
//
// Where the set is one of the report's groups, score and interval are those that the report computed.
// Elsewhere the interval is 1.96 standard deviations of the
// mean to each side, the tasks taken as independent: an approximation, marked "≈".

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
      const inside = (task) => (suite ? isOfSuite(datasets[task], suite) : datasets[task].in_totals);
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

const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => (values.length ? sum(values) / values.length : null);

// Scores are on 0-1, and so are their intervals, unless a metric itself goes further.
function normalInterval(score, deviation) {
  const within = score >= 0 && score <= 1;
  const [low, high] = [score - 1.96 * deviation, score + 1.96 * deviation];
  return { low: within ? Math.max(low, 0) : low, high: within ? Math.min(high, 1) : high };
}

// Of a share of n documents, taken as independent.
function wilsonInterval(share, n) {
  const square = 1.96 ** 2 / n;
  const middle = (share + square / 2) / (1 + square);
  const half = Math.sqrt((square * share * (1 - share)) + square ** 2 / 4) / (1 + square);
  return { low: Math.max(middle - half, 0), high: Math.min(middle + half, 1) };
}

// What one entry reached on tasks (sorted dataset indices) with one strategy; null if it did none of them.
// {score, low, high, approximate, group, scored, total, valid, cut, unclosed, inputsCut, usd}
function aggregate(entry, strategy, all, asGroups = groupsOf(all)) {
  const tasks = averaged(all, asGroups);
  const rows = tasks.map((task) => resultRow(entry, strategy, task)).filter((row) => row >= 0);
  const shares = (column) => mean(rows.map((row) => results[column]?.[row]).filter(isNumber));
  const scored = rows.filter((row) => isNumber(results.score[row]));
  const rest = {
    valid: shares("valid"),
    cut: shares("cut"),
    unclosed: shares("unclosed"),
    inputsCut: shares("inputs_cut"),
    usd: costOf(entry, rows),
    pending: rows.filter((row) => isNumber(results.judged?.[row])).length,
    otherwise: rows.filter((row) => results.otherwise?.[row]).map((row) => results.otherwise[row]),
  };
  for (const { axis, value, suite } of asGroups) {
    const row = groupRow.get([entry, strategy, axis, value, suite].join(" "));
    if (row === undefined || !isNumber(groups.score[row])) continue;
    const names = ["score", "low", "high", "rough", "paper_low", "paper_high", "valid", "cut"];
    const { score, rough, ...found } = Object.fromEntries(names.map((name) => [name, groups[name]?.[row] ?? null]));
    const ofPaper = !isNumber(found.low) && isNumber(found.paper_low);
    const printed = !rows.length; // a paper's own average, without its tasks
    const total = groups.tasks[row] ?? tasks.length;
    return {
      ...rest,
      score,
      low: ofPaper ? found.paper_low : found.low,
      high: ofPaper ? found.paper_high : found.high,
      rough,
      ofPaper,
      valid: rest.valid ?? found.valid,
      cut: rest.cut ?? found.cut,
      approximate: false,
      group: true,
      printed,
      scored: groups.scored[row] ?? total,
      total,
    };
  }
  if (!rows.length) return null;
  const unlike = scored.length > 1 && scored.some((row) => !datasets[results.dataset[row]].averaged);
  const score = unlike ? null : mean(scored.map((row) => results.score[row]));
  const deviations = scored.map((row) => results.sd[row]);
  const known = !unlike && scored.length > 0 && deviations.every(isNumber);
  const deviation = known ? Math.sqrt(sum(deviations.map((sd) => sd * sd))) / scored.length : null;
  const one = scored.length === 1 && tasks.length === 1 ? scored[0] : null;
  const range =
    one !== null
      ? { low: results.low[one], high: results.high[one], rough: results.rough?.[one] }
      : known
        ? normalInterval(score, deviation)
        : { low: null, high: null };
  return {
    ...rest,
    score,
    ...range,
    approximate: known && one === null,
    group: false,
    printed: false,
    scored: scored.length,
    total: tasks.length,
  };
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

// 1, 2, 2, 4: places by descending score.
function ranksOf(scores) {
  return scores.map((score) => 1 + scores.filter((other) => other > score).length);
}
