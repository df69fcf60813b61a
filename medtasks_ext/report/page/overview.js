// What was evaluated, and what to know before reading on.

function drawOverview() {
  if (!entries.length) return [livePart(), thingsToKnow()]; // of a run that goes on, nothing has a score
  return [
    livePart(),
    ...(ownEntries.length ? [standingsPart(), evaluated(), atAGlance()] : drawPublished()),
    thingsToKnow(),
    publishedPart(),
    howToRead(),
  ];
}

const KINDS_OF_RUN = { medtasks: "medtasks run", lm_eval: "plain lm_eval" };

function evaluated() {
  const all = expected.length * strategies.length;
  const hint = "Tasks with a score, each strategy counting, of all that this package has";
  const of = (entry) => entries[entry];
  const columns = [
    wordColumn("model", "Model", { head: true, value: (entry) => of(entry).label, cell: modelLink }),
    wordColumn("kind", "Run with", { value: (entry) => KINDS_OF_RUN[of(entry).kind] }),
    wordColumn("rows", "Rows", { value: (entry) => (of(entry).sample ? "synthetic (SAMPLE)" : "real") }),
    numberColumn("scored", "Scored", { hint, value: scoredOf, format: (n) => `${count(n)}/${count(all)}` }),
    numberColumn("tokens", "Tokens in / out", { value: (entry) => of(entry).tokens?.output ?? null, cell: tokensOf }),
    numberColumn("usd", "Cost", { value: (entry) => of(entry).usd, cell: wholeCost }),
  ];
  const caption = "Own runs in this report";
  return titled("What was evaluated", table({ name: "evaluated", caption, columns, rows: ownEntries, sort: "model", limit: 12 }));
}

function wholeCost(entry) {
  const { usd, usd_tasks: [n, all] = [], price } = entries[entry];
  const part = isNumber(usd) && n < all ? text("span", "soft", ` for ${n} of ${all} tasks`) : null;
  return make("span", { title: price ?? "" }, dollars(usd), part);
}

const tasksOfSuite = (suite) => counted.filter((task) => isOfSuite(datasets[task], suite));
const reachedOn = (entry, strategy, suite) =>
  aggregate(entry, strategy, tasksOfSuite(suite), groupsOf(tasksOfSuite(suite), ["suite"]));

const scoredByEntry = entries.map(() => 0);
results.entry.forEach((entry, row) => {
  if (isNumber(results.score[row]) && isGrouped(datasets[results.dataset[row]])) scoredByEntry[entry] += 1;
});
const scoredOf = (entry) => scoredByEntry[entry];

function tokensOf(entry) {
  const { tokens } = entries[entry];
  const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
  const words = (n) => (isNumber(n) ? short.format(n) : NONE);
  return tokens ? `${words(tokens.input)} / ${words(tokens.output)}` : NONE;
}

// Own entries by suite and strategy: score, interval, coverage.
function atAGlance() {
  const rows = ownEntries
    .flatMap((entry) => [...strategies.keys()].map((strategy) => ({ entry, strategy })))
    .map((row) => ({ ...row, bySuite: suites.map((suite) => reachedOn(row.entry, row.strategy, suite)) }))
    .filter(({ bySuite }) => bySuite.some(Boolean));
  const ofSuites = suites.map((suite, place) =>
    numberColumn(suite, suiteTitle(suite), {
      value: ({ bySuite }) => bySuite[place]?.score ?? null,
      cell: ({ bySuite }) => scoreWithCoverage(bySuite[place]),
    }),
  );
  const columns = [MODEL_COLUMN, STRATEGY_COLUMN, ...ofSuites];
  return titled(
    "Scores at a glance",
    note(
      "The mean over a suite's tasks, each task counting once, with its 95 % interval. Below it: how many of the suite's " +
        "tasks have a score. A mean over a part of the tasks (",
      tag("partial", "partial"),
      ") must not be compared with one over all of them.",
    ),
    table({ name: "glance", caption: "Scores of own runs by suite", columns, rows, sort: "model", limit: 15 }),
  );
}

function thingsToKnow() {
  const faults = report.faults.map(({ where, what, remedy }) => [
    make("code", { textContent: where }),
    ": ",
    what,
    remedy ? text("span", "remedy", `→ ${remedy}`) : null,
  ]);
  const none = ownEntries.length ? note("All runs could be read in full.") : null;
  return make(
    "section",
    { id: "know" },
    make("h3", { textContent: "Caveats" }),
    report.differences.length
      ? bullets(report.differences, "differences")
      : note("No differences in settings were found between entries of one model, or between tasks of one group."),
    faults.length
      ? make(
          "div",
          {},
          text("h4", "", "Faults in the runs"),
          note("What could not be read, or was left out, and how to mend it."),
          bullets(faults, "faults"),
        )
      : none,
  );
}

// Which suites' models stand in the report; what to know of them stands above.
function publishedPart() {
  const n = (suite) => entries.filter((entry) => entry.kind === "published" && entry.suite === suite).length;
  const words = (suite) => `${suiteTitle(suite)}: ${plural(n(suite), "model")}`;
  const found = suites.filter(n).map((suite) => link(address("leaderboard", "", { suite }), words(suite)));
  if (!found.length) return null;
  return titled(ownEntries.length ? "Published results beside them" : "Published results", bullets(found, "suites"));
}

function howToRead() {
  const rules = report.mean_rules.length
    ? `, except where a suite averages in its own way (${report.mean_rules.join("; ")}).`
    : ".";
  const items = [
    [
      "Score",
      "the suite's own main measure of a task on a scale from 0 to 1; higher is better. For several tasks it is their " +
        `plain mean${rules}`,
    ],
    [
      "[low, high]",
      "the 95 % interval. It says how far the score depends on which documents happened to be in the test file. It knows " +
        "nothing of other prompts or other tasks.",
    ],
    ["≈", "an interval by the normal distribution: that of the difference between two strategies."],
    [
      "~",
      "behind an interval: a rough one, of clusters of documents with a score near 0 or 1. It may hold the truth in less " +
        "than 90 %.",
    ],
    ["p", "behind an interval: the one that the suite’s paper prints."],
    [
      "partial",
      "some of the selected tasks have no score for this model. Its mean is over other tasks than that of its neighbours, " +
        "so it is shown but not ranked.",
    ],
    [
      "limited",
      "of some tasks, or of all, only some documents were asked (--limit, --samples): a trial, whose scores are shown but " +
        "not ranked.",
    ],
    ["valid", "share of answers in which an answer could be read at all."],
    ["truncated", "share of answers that used up their length limit: such a model might do better with a higher one."],
    ["SAMPLE", "synthetic rows that show how the software works. Such a score says nothing about a model."],
    [
      "published",
      "printed in a paper or on its leaderboard, with its own prompts, settings and, in part, data. Papers print no " +
        "intervals of single tasks.",
    ],
  ];
  return folded("How to read this report", () => termList(items), { open: onPaper, className: "plain" });
}
