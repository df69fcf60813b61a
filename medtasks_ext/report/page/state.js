// What the filters of a report select.

const KINDS = [
  ["own", "own runs"],
  ["published", "published"],
].filter(([kind]) => entries.some((_, entry) => isOwn(entry) === (kind === "own")));

// The suite that most is known about, own runs first: an average over suites is not what papers report.
function firstSuite() {
  const weight = new Map();
  results.entry.forEach((entry, row) => {
    const suite = datasets[results.dataset[row]].suite;
    weight.set(suite, (weight.get(suite) ?? 0) + (isOwn(entry) ? 1e6 : 1));
  });
  return [...weight].sort((one, other) => other[1] - one[1])[0]?.[0];
}

const firstStrategy = () => strategies.find((_, index) => results.strategy.includes(index))?.[0];

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
  const ofModels = [
    { key: "kind", title: "Origin", values: KINDS, fits: ({ own }, value) => own === (value === "own") },
    ...MODEL_FILTERS,
  ];
  const isThere = (fits) => ([value]) => entries.some((_, entry) => fits(factsOf(entry), value));
  return [
    ...(suite ? [{ ...suite, pills: true }] : []), // none before a run has its first score
    { key: "strategy", title: "Strategy", values: strategies, pills: true },
    ...ofTasks.filter((filter) => filter !== suite),
    ...ofModels.map((filter) => ({ ...filter, values: filter.values.filter(isThere(filter.fits)) })),
  ];
}

const factsOf = (entry) => ({ ...entries[entry].facts, own: isOwn(entry) });

const matches = (dataset, key, values) => !values.length || valuesOf(dataset, key).some((value) => values.includes(value));

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
  const lines = selectedStrategies().flatMap((strategy) => selectedEntries().map((entry) => ({ entry, strategy })));
  const reached = (some, tasks, groups_) =>
    some.map((line) => ({ ...line, ...aggregate(line.entry, line.strategy, tasks, groups_) }));
  const tasks = selectedTasks();
  const rows = reached(lines, tasks, groupsOf(tasks)).filter((row) => row.score !== undefined);
  if (option("common") !== "1") return { tasks, rows, left: [] };
  const withTasks = rows.filter((row) => !row.printed && row.scored > 0);
  const shared = sharedTasks(withTasks, tasks);
  const left = rows.filter((row) => !withTasks.includes(row));
  return { tasks: shared, rows: shared.length ? reached(withTasks, shared, groupsOf(shared)) : [], left };
}

function sectionOfRow(row, allSample, published) {
  if (row.score === null) return "unscored";
  if (row.scored < row.total) return "partial";
  if (row.pending) return "pending";
  if (published && isOwn(row.entry) && row.otherwise?.length) return "otherwise";
  if (entries[row.entry].limited) return "limited";
  return row.sample && !allSample ? "sample" : "ranked";
}

// Complete rows on real data are ranked; the others stand below, with the reason. 1, 2, 2, 4: equal scores share a place.
function rankedRows(rows) {
  const allSample = rows.every((row) => entries[row.entry].sample);
  const published = rows.some((row) => !isOwn(row.entry));
  for (const row of rows) {
    row.sample = entries[row.entry].sample;
    row.section = sectionOfRow(row, allSample, published);
  }
  const ranked = rows.filter((row) => row.section === "ranked");
  for (const row of rows) {
    const better = ranked.filter((other) => other.strategy === row.strategy && other.score > row.score).length;
    row.place = row.section === "ranked" ? 1 + better : null;
  }
  return rows;
}

// The selection in words, for headings and for paper.
function selectionInWords() {
  const parts = filters.flatMap(({ key, title, values }) => {
    if (!chosen(key).length) return [];
    const titles = new Map(values);
    const words = chosen(key).map((value) => titles.get(value)).join(", ");
    if (["suite", "strategy", "kind"].includes(key)) return [words];
    return [`${axisAt.has(key) ? axisWords(key) : title.toLowerCase()}: ${words}`];
  });
  if (!chosen("suite").length) parts.unshift("all suites");
  if (option("q")) parts.push(`search: “${option("q")}”`);
  return parts.join(" · ");
}
