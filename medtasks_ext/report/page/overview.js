// What was evaluated, and what to know before reading on.

function drawOverview() {
  return [
    ...(ownEntries.length ? [standingsPart(), evaluated(), atAGlance()] : drawPublished()),
    thingsToKnow(),
    publishedPart(),
    howToRead(),
  ];
}

function evaluated() {
  const all = expected.length * strategies.length;
  const columns = [
    { key: "model", title: "Model", head: true, value: (entry) => entries[entry].label, cell: modelLink },
    {
      key: "kind",
      title: "Run with",
      value: (entry) => entries[entry].kind,
      cell: (entry) => ({ medtasks: "medtasks run", lm_eval: "plain lm_eval" })[entries[entry].kind],
    },
    {
      key: "rows",
      title: "Rows",
      value: (entry) => String(entries[entry].sample),
      cell: (entry) => (entries[entry].sample ? "synthetic (SAMPLE)" : "real"),
    },
    {
      key: "scored",
      title: "Scored",
      numeric: true,
      hint: "Tasks with a score, each strategy counting, of all that this package has",
      value: scoredOf,
      cell: (entry) => `${count(scoredOf(entry))}/${count(all)}`,
    },
    {
      key: "tokens",
      title: "Tokens in / out",
      numeric: true,
      value: (entry) => entries[entry].tokens?.output ?? null,
      cell: (entry) => tokensOf(entries[entry]),
    },
    { key: "usd", title: "Cost", numeric: true, value: (entry) => entries[entry].usd, cell: wholeCost },
  ];
  return titled(
    "What was evaluated",
    table({
      name: "evaluated",
      caption: "Own runs in this report",
      columns,
      rows: ownEntries,
      sort: "model",
      limit: 12,
    }),
  );
}

function wholeCost(entry) {
  const { usd, usd_tasks: [n, all] = [], price } = entries[entry];
  return make(
    "span",
    { title: price ?? "" },
    dollars(usd),
    isNumber(usd) && n < all ? text("span", "soft", ` for ${n} of ${all} tasks`) : null,
  );
}

const tasksOfSuite = (suite) => counted.filter((task) => isOfSuite(datasets[task], suite));
const suiteGroup = (suite) => groupsOf(tasksOfSuite(suite), ["suite"]);

const scoredByEntry = entries.map(() => 0);
results.entry.forEach((entry, row) => {
  if (isNumber(results.score[row]) && isGrouped(datasets[results.dataset[row]])) scoredByEntry[entry] += 1;
});
const scoredOf = (entry) => scoredByEntry[entry];

function tokensOf({ tokens }) {
  return tokens ? `${compact(tokens.input)} / ${compact(tokens.output)}` : NONE;
}

function compact(n) {
  return isNumber(n)
    ? new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 }).format(n)
    : NONE;
}

// Own entries by suite and strategy: score, interval, coverage.
function atAGlance() {
  const rows = [];
  for (const entry of ownEntries)
    for (const strategy of strategies.keys()) {
      const bySuite = suites.map((suite) => aggregate(entry, strategy, tasksOfSuite(suite), suiteGroup(suite)));
      if (bySuite.some(Boolean)) rows.push({ entry, strategy, bySuite });
    }
  const columns = [
    MODEL_COLUMN,
    STRATEGY_COLUMN,
    ...suites.map((suite, index) => ({
      key: suite,
      title: suiteTitle(suite),
      numeric: true,
      value: (row) => row.bySuite[index]?.score ?? null,
      cell: (row) => scoreWithCoverage(row.bySuite[index]),
    })),
  ];
  return titled(
    "Scores at a glance",
    note(
      "The mean over a suite's tasks, each task counting once, with its 95 % interval. Below it: how many of the suite's tasks have a score. A mean over a part of the tasks (",
      tag("partial", "partial"),
      ") must not be compared with one over all of them.",
    ),
    table({ name: "glance", caption: "Scores of own runs by suite", columns, rows, sort: "model", limit: 15 }),
  );
}

function scoreWithCoverage(reached) {
  if (!reached || reached.score === null) return NONE;
  const partial = reached.scored < reached.total;
  return make(
    "span",
    { className: "stacked" },
    make("span", {}, text("b", "", fixed(reached.score)), " ", text("span", "interval", interval(reached))),
    make(
      "span",
      { className: "soft" },
      `${reached.scored}/${reached.total} tasks `,
      partial ? tag("partial", "partial") : null,
    ),
  );
}

function thingsToKnow() {
  const differences = report.differences.map((item) => make("li", { textContent: item.text }));
  const faults = report.faults.map((fault) =>
    make(
      "li",
      {},
      make("code", { textContent: fault.where }),
      ": ",
      fault.what,
      fault.remedy ? text("span", "remedy", `→ ${fault.remedy}`) : null,
    ),
  );
  return make(
    "section",
    { id: "know" },
    make("h3", { textContent: "Know before comparing" }),
    differences.length
      ? make("ul", { className: "differences" }, ...differences)
      : note("No differences in settings were found between entries of one model, or between tasks of one group."),
    faults.length
      ? make(
          "div",
          {},
          text("h4", "", "Faults in the runs"),
          note("What could not be read, or was left out, and how to mend it."),
          make("ul", { className: "faults" }, ...faults),
        )
      : ownEntries.length
        ? note("All runs could be read in full.")
        : null,
  );
}

// Which suites' models stand in the report; what to know of them stands above.
function publishedPart() {
  const n = (suite) => entries.filter((entry) => entry.kind === "published" && entry.suite === suite).length;
  const found = suites.filter((suite) => n(suite));
  if (!found.length) return null;
  return titled(
    ownEntries.length ? "Published results beside them" : "Published results",
    make(
      "ul",
      { className: "suites" },
      ...found.map((suite) =>
        make("li", {}, link(address("leaderboard", "", { suite }), `${suiteTitle(suite)}: ${plural(n(suite), "model")}`)),
      ),
    ),
  );
}

function howToRead() {
  const items = [
    [
      "Score",
      "the suite's own main measure of a task on a scale from 0 to 1; higher is better. For several tasks it is their plain mean" +
        (report.mean_rules.length ? `, except where a suite averages in its own way (${report.mean_rules.join("; ")}).` : "."),
    ],
    [
      "[low, high]",
      "the 95 % interval. It says how far the score depends on which documents happened to be in the test file. It knows nothing of other prompts or other tasks.",
    ],
    [
      "≈",
      "an interval that this page worked out for a selection of tasks of your own, from the spread of each task (normal approximation, tasks taken as independent). Intervals without the sign are those of the report.",
    ],
    [
      "~",
      "behind an interval: a rough one, of clusters of documents with a score near 0 or 1. It may hold the truth in less than 90 %.",
    ],
    ["p", "behind an interval: the one that the suite’s paper prints."],
    [
      "partial",
      "some of the selected tasks have no score for this model. Its mean is over other tasks than that of its neighbours, so it is shown but not ranked.",
    ],
    [
      "limited",
      "of some tasks, or of all, only some documents were asked (--limit, --samples): a trial, whose scores are shown but not ranked.",
    ],
    ["valid", "share of answers in which an answer could be read at all."],
    ["truncated", "share of answers that used up their length limit: such a model might do better with a higher one."],
    ["SAMPLE", "synthetic rows that show how the software works. Such a score says nothing about a model."],
    [
      "published",
      "printed in a paper or on its leaderboard, with its own prompts, settings and, in part, data. Papers print no intervals of single tasks.",
    ],
  ];
  return folded(
    "How to read this report",
    () =>
      make(
        "dl",
        { className: "words" },
        ...items.flatMap(([term, meaning]) => [
          make("dt", { textContent: term }),
          make("dd", { textContent: meaning }),
        ]),
      ),
    { open: onPaper, className: "plain" },
  );
}
