// What the filters of a report select.

const KINDS = [
  ["own", "own runs"],
  ["published", "published"],
].filter(([kind]) => entries.some((_, entry) => isOwn(entry) === (kind === "own")));

// The suite that most is known about, own runs first: an average over suites is not what papers report.
function firstSuite() {
  const weight = new Map();
  results.entry.forEach((entry, row) => {
    const suite = homeOf(datasets[results.dataset[row]]);
    weight.set(suite, (weight.get(suite) ?? 0) + (isOwn(entry) ? 1e6 : 1));
  });
  return [...weight].sort((one, other) => other[1] - one[1])[0]?.[0];
}

function firstStrategy() {
  const used = new Set(results.strategy);
  return strategies.find((_, index) => used.has(index))?.[0];
}

Object.assign(DEFAULTS, { suite: firstSuite() ?? "", strategy: firstStrategy() ?? "" });

// Suite and strategy stand in sight. A count says how many tasks a value would give, the other filters being as they are.
function reportFilters() {
  const ofTasks = taskAxes.map(({ key, values }) => ({
    key,
    title: axisTitle(key),
    values,
    counts: () => {
      const tasks = selectedTasks(key);
      return (value) => tasks.filter((task) => valuesOf(datasets[task], key).includes(value)).length;
    },
  }));
  const suite = ofTasks.find(({ key }) => key === "suite");
  return [
    { ...suite, pills: true },
    { key: "strategy", title: "Strategy", values: strategies, pills: true },
    ...ofTasks.filter((filter) => filter !== suite),
    { key: "kind", title: "Origin", values: KINDS, fits: ({ own }, value) => own === (value === "own") },
    ...MODEL_FILTERS,
  ].map((filter) => ({ ...filter, values: filter.fits ? filter.values.filter(([value]) => entries.some((_, entry) => filter.fits(factsOf(entry), value))) : filter.values }));
}

const factsOf = (entry) => ({ ...entries[entry].facts, own: isOwn(entry) });

function matches(dataset, key, values) {
  return !values.length || valuesOf(dataset, key).some((value) => values.includes(value));
}

// Selected tasks, as sorted dataset indices.
function selectedTasks(without = null) {
  const filters = taskAxes.filter((axis) => axis.key !== without).map((axis) => [axis.key, chosen(axis.key)]);
  return counted.filter((task) => filters.every(([key, values]) => matches(datasets[task], key, values)));
}

function selectedStrategies() {
  const ids = chosen("strategy");
  return strategies.map((_, index) => index).filter((index) => !ids.length || ids.includes(strategies[index][0]));
}

function selectedEntries() {
  return entries
    .map((_, entry) => entry)
    .filter((entry) => fitsFilters(factsOf(entry)) && fitsSearch(`${entries[entry].label} ${entries[entry].facts.maker ?? ""}`));
}

// The lines of a leaderboard: {entry, strategy} with what they reached on the selected tasks.
function selectedRows() {
  const lines = [];
  let tasks = selectedTasks();
  const byGroup = groupsOf(tasks);
  for (const strategy of selectedStrategies()) for (const entry of selectedEntries()) lines.push({ entry, strategy });
  let rows = lines
    .map((line) => ({ ...line, ...aggregate(line.entry, line.strategy, tasks, byGroup) }))
    .filter((row) => row.score !== undefined);
  let left = [];
  if (option("common") === "1") {
    const withTasks = rows.filter((row) => !row.printed && row.scored > 0);
    tasks = sharedTasks(withTasks, tasks);
    left = rows.filter((row) => !withTasks.includes(row));
    const shared = groupsOf(tasks);
    rows = tasks.length
      ? withTasks.map((row) => ({ ...row, ...aggregate(row.entry, row.strategy, tasks, shared) }))
      : [];
  }
  return { tasks, rows, left };
}

function sectionOfRow(row, allSample, published) {
  if (row.score === null) return "unscored";
  if (row.scored < row.total) return "partial";
  if (row.pending) return "pending";
  if (published && isOwn(row.entry) && row.otherwise?.length) return "otherwise";
  if (entries[row.entry].limited) return "limited";
  return row.sample && !allSample ? "sample" : "ranked";
}

// Complete rows on real data are ranked; the others stand below, with the reason.
function rankedRows(rows) {
  const allSample = rows.every((row) => entries[row.entry].sample);
  const published = rows.some((row) => !isOwn(row.entry));
  for (const row of rows) {
    row.sample = entries[row.entry].sample;
    row.section = sectionOfRow(row, allSample, published);
    row.place = null;
  }
  for (const [strategy] of strategies.entries()) {
    const ranked = rows.filter((row) => row.section === "ranked" && row.strategy === strategy);
    const found = ranksOf(ranked.map((row) => row.score));
    ranked.forEach((row, index) => {
      row.place = found[index];
    });
  }
  return rows;
}

// The selection in words, for headings and for paper.
function selectionInWords() {
  const parts = filters.filter(({ key }) => chosen(key).length).map(({ key, title, values }) => {
    const titles = new Map(values);
    const words = chosen(key)
      .map((value) => titles.get(value))
      .join(", ");
    return ["suite", "strategy", "kind"].includes(key) ? words : `${axisAt.has(key) ? axisWords(key) : title.toLowerCase()}: ${words}`;
  });
  if (!chosen("suite").length) parts.unshift("all suites");
  if (option("q")) parts.push(`search: “${option("q")}”`);
  return parts.join(" · ");
}
