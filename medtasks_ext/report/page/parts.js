// The parts of a report, and where each of them has something to show.

const placeOfTask = (dataset, strategy) => ({ suites: valuesOf(datasets[dataset], "suite"), strategy });
const rowPlaces = results.entry.map((_, row) => placeOfTask(results.dataset[row], results.strategy[row]));
const scoredWith = (holds) => rowPlaces.filter((_, row) => isNumber(results.score[row]) && holds(results.entry[row], row));
const groupsWith = (holds) =>
  [...groups.entry.keys()]
    .filter((row) => groups.suite[row] && holds(groups.entry[row], row))
    .map((row) => ({ suites: [groups.suite[row]], strategy: groups.strategy[row] }));
const hasFacts = (entry) => entries[entry].facts.size !== null || dayOf(entries[entry].facts.date) !== null;
const isFurtherStrategy = (entry, row) =>
  strategies[results.strategy[row]][0] !== "zero_shot" &&
  resultRow(entry, strategyAt.get("zero_shot"), results.dataset[row]) >= 0;

// A part is offered where the report holds something for it: `places` are suites and strategies that do. A part
// without `places` has something everywhere.
const part = (id, title, draw, about, { filters: has = true, places: found } = {}) => ({ id, title, draw, about, filters: has, places: found });
const PARTS = [
  part(
    "overview",
    "Overview",
    drawOverview,
    ownEntries.length || !entries.length
      ? "How good each model is on what was asked, and what to know before reading on."
      : "Published models, by size, date and kind of model.",
    { filters: !ownEntries.length && entries.length > 0 },
  ),
  part("leaderboard", "Leaderboard", drawLeaderboard, "Models by their mean score over the selected tasks, with 95 % intervals."),
  part("heatmap", "Heat map", drawHeatMap, "Every model on the selected tasks. Point at a cell for its interval; a click opens its tasks."),
  part("profile", "Profiles", drawProfile, "A few models along one axis: where is a model strong, where weak? Lines are 95 % intervals."),
  part("pairs", "Pairs", drawPairs, "Each model against each other: how large the difference is, and whether it is more than chance.", {
    places: report.comparisons
      .filter(({ p }) => p.length)
      .map(({ suite, strategy }) => ({ suites: [suite], strategy: strategyAt.get(strategy) })),
  }),
  part(
    "models",
    "Models",
    drawModels,
    "Score by size, release date, cost and kind of model. The dashed line joins the models that nothing smaller, earlier or cheaper beats.",
    { places: [...scoredWith(hasFacts), ...groupsWith(hasFacts)] },
  ),
  part(
    "strategies",
    "Strategies",
    drawStrategies,
    "What reasoning step by step, or five worked examples, change against asking directly (zero-shot). Right of the zero line is better.",
    { places: scoredWith(isFurtherStrategy).map(({ suites: found }) => ({ suites: found, strategy: null })) },
  ),
  part(
    "labels",
    "Labels",
    drawLabels,
    "Scores on only the documents with one label: a level of difficulty, a department, seen in training or not.",
    { places: labelRows.map(({ suite, strategy }) => ({ suites: [suite], strategy })) },
  ),
  part("tasks", "Tasks", drawTasks, "All tasks, the lowest score first; each has a page with prompts, scoring rule, scores and answers."),
].filter(({ places: found }) => !found || found.length);

// Whether a part has something for the suites and strategies that are chosen.
function isHere({ places: found }) {
  const [wanted, asked] = [chosen("suite"), selectedStrategies()];
  const isChosen = ({ suites: of, strategy }) =>
    (!wanted.length || of.some((suite) => wanted.includes(suite))) && (strategy === null || asked.includes(strategy));
  return !found || found.some(isChosen);
}

// The address of a part: with the selection, or with the first one that it has something for.
function addressOfPart(part) {
  if (isHere(part)) return address(part.id);
  const [{ suites: [suite], strategy }] = part.places;
  return address(part.id, "", { suite, ...(strategy === null ? {} : { strategy: strategies[strategy][0] }) });
}

// That a part shows nothing for a selection, and where it does.
function nothing(words) {
  const part = PARTS.find(({ id }) => id === view);
  if (!part?.places || isHere(part)) return note(words);
  const [{ suites: [suite] }] = part.places;
  return note(`${words} `, link(addressOfPart(part), `Show ${suiteTitle(suite)}`));
}
