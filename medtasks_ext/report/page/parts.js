// The parts of a report, and where each of them has something to show.

const placeOfTask = (dataset, strategy) => ({ suites: valuesOf(datasets[dataset], "suite"), strategy });
const rowPlaces = results.entry.map((_, row) => placeOfTask(results.dataset[row], results.strategy[row]));
const placesOfTasks = (items) => items.map(({ dataset, strategy }) => placeOfTask(dataset, strategy));
const scoredWith = (holds) => rowPlaces.filter((_, row) => isNumber(results.score[row]) && holds(results.entry[row], row));
const groupsWith = (holds) =>
  [...groups.entry.keys()]
    .filter((row) => groups.suite[row] && holds(groups.entry[row], row))
    .map((row) => ({ suites: [groups.suite[row]], strategy: groups.strategy[row] }));
const hasFacts = (entry) => entries[entry].facts.size !== null || dayOf(entries[entry].facts.date) !== null;
const hasShares = (_, row) => FAULT_SHARES.some(([key]) => isNumber(valueAt(row, key)));
const hasCost = (entry, row) => isNumber(valueAt(row, "usd")) || (!isOwn(entry) && isNumber(entries[entry].usd));
const isFurtherStrategy = (entry, row) =>
  strategies[results.strategy[row]][0] !== "zero_shot" &&
  resultRow(entry, strategyAt.get("zero_shot"), results.dataset[row]) >= 0;

// A part is offered where the report holds something for it: `places` are suites and strategies that do. A part
// without `places` has something everywhere.
const PARTS = [
  {
    id: "overview",
    title: "Overview",
    draw: drawOverview,
    filters: !ownEntries.length && entries.length > 0,
    about: ownEntries.length || !entries.length
      ? "Where each model stands, how complete its results are, and its caveats."
      : "The best published models, by size, date and kind of task.",
  },
  {
    id: "leaderboard",
    title: "Leaderboard",
    draw: drawLeaderboard,
    filters: true,
    about:
      "Models by their mean score over the selected tasks. The bar starts at 0; the dark line on it is the 95 " +
        "% interval.",
  },
  {
    id: "heatmap",
    title: "Heat map",
    draw: drawHeatMap,
    filters: true,
    about: "Every model on the selected tasks, own runs first. Point at a cell for its interval; a click opens its tasks.",
  },
  {
    id: "profile",
    title: "Profiles",
    draw: drawProfile,
    filters: true,
    about:
      "A few models along one axis, such as language or specialty: where is a model strong, where weak? Lines " +
        "are 95 % intervals.",
  },
  {
    id: "pairs",
    title: "Pairs",
    draw: drawPairs,
    filters: true,
    places: report.comparisons.map(({ suite, strategy }) => ({ suites: [suite], strategy: strategyAt.get(strategy) })),
    about: "Each model against each other: how large the difference is, and whether it is more than chance.",
  },
  {
    id: "models",
    title: "Models",
    draw: drawModels,
    filters: true,
    places: [...scoredWith(hasFacts), ...groupsWith(hasFacts)],
    about:
      "Score by size, release date, family and kind of model. The dashed line joins the models that nothing " +
        "smaller, or earlier, beats.",
  },
  {
    id: "cost",
    title: "Cost",
    draw: drawCost,
    filters: true,
    places: scoredWith(hasCost),
    about:
      "What a score costs: upwards is better, leftwards is cheaper. The dashed line joins the models that " +
        "nothing cheaper beats.",
  },
  {
    id: "strategies",
    title: "Strategies",
    draw: drawStrategies,
    filters: true,
    places: scoredWith(isFurtherStrategy).map(({ suites: found }) => ({ suites: found, strategy: null })),
    about:
      "What reasoning step by step, or five worked examples, change against asking directly (zero-shot). Right " +
        "of the zero line is better.",
  },
  {
    id: "labels",
    title: "Labels",
    draw: drawLabels,
    filters: true,
    places: labelRows.map(({ suite, strategy }) => ({ suites: [suite], strategy })),
    about:
      "Scores on only the documents with one label: a level of difficulty, a department, seen in training or " +
        "not. Beside each stands the score on all documents of the same tasks.",
  },
  {
    id: "validity",
    title: "Validity",
    draw: drawValidity,
    filters: true,
    places: [...scoredWith(hasShares), ...groupsWith((_, row) => isNumber(groups.valid?.[row]))],
    about:
      "How many answers could be read at all, and how many were cut off. A low share means that the score says " +
        "as much about the format as about the medicine.",
  },
  {
    id: "calibration",
    title: "Calibration",
    draw: drawCalibration,
    filters: true,
    places: placesOfTasks(report.calibration),
    about:
      "Of answers taken by likelihood: how probable the model calls its answer among the possible ones, and " +
        "how often it is right then.",
  },
  {
    id: "judges",
    title: "Judges",
    draw: drawJudges,
    filters: true,
    places: placesOfTasks(report.judges),
    about: "Open answers are scored by other models. How far these judges agree says how far their scores can be trusted.",
  },
  {
    id: "coverage",
    title: "Coverage",
    draw: drawCoverage,
    filters: true,
    places: ownEntries.length ? [{ suites, strategy: null }] : [],
    about: "Which tasks were run with which strategy, which were not, and why.",
  },
  {
    id: "answers",
    title: "Answers",
    draw: drawAnswers,
    filters: true,
    places: [
      ...heldTasks.map((task) => ({ suites: valuesOf(datasets[task], "suite"), strategy: null })),
      ...(live?.runs.length ? [{ suites, strategy: null }] : []),
    ],
    about: "What was asked, what was answered, and why an answer is not right. A dataset leads to its documents.",
  },
  {
    id: "tasks",
    title: "Tasks",
    draw: drawTasks,
    filters: true,
    about: "All tasks with what they ask; each has a page with prompts, scoring rule, scores and answers.",
  },
].filter((part) => !part.places || part.places.length);

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
