// What the report says first: each name that was asked for and each suite, models beside each other; then what to know
// before reading on.

const MOST_SERIES = 8; // models in one picture

function drawOverview() {
  if (!entries.length) return [livePart(), caveats()]; // of a run that goes on, nothing has a score
  if (!ownEntries.length) return [...drawModels(), caveats(), howToRead()];
  return [livePart(), ...firstPart(), caveats(), missingPart(), howToRead()];
}

function firstPart() {
  const used = strategies.filter((_, strategy) => report.first.some((row) => row.strategy === strategy));
  if (!used.length) return [note("No task has a score yet.")];
  const current = choice("on", used.map(([id]) => id));
  const rows = report.first.filter((row) => strategies[row.strategy][0] === current);
  return [
    used.length > 1 ? switcher("Strategy", "on", used, current) : null,
    firstPicture(rows, strategies[strategyAt.get(current)][1]),
    extremesPart(strategyAt.get(current)),
    firstTable(rows),
    placesPart(rows.filter(({ place }) => place)),
  ];
}

// Of each model the groups of several tasks whose interval lies wholly above, or below, the score of their suite.
function extremesPart(strategy) {
  const rows = [...groups.entry.keys()].filter((row) => groups.beyond[row] && groups.strategy[row] === strategy);
  const said = (row) => {
    const { key, values } = axes[groups.axis[row]];
    const title = valueTitle(key, values[groups.value[row]][0]);
    return `${title} ${fixed(groups.score[row])} ${interval(ofGroup(row, {}, 0))} (${suiteTitle(groups.suite[row])})`;
  };
  const found = (entry, sign) =>
    rows
      .filter((row) => groups.entry[row] === entry && sign * groups.beyond[row] > 0)
      .sort((one, other) => sign * (groups.beyond[other] - groups.beyond[one]))
      .slice(0, 3)
      .map(said)
      .join(", ");
  const line = (entry) => {
    const [best, worst] = [found(entry, 1), found(entry, -1)];
    return best || worst ? [modelLink(entry), best ? ` Best: ${best}.` : "", worst ? ` Worst: ${worst}.` : ""] : null;
  };
  const lines = ownEntries.map(line).filter(Boolean);
  return lines.length ? titled("Best and worst groups", bullets(lines, "extremes")) : null;
}

// Where models stand among published ones: what is true of several is said once.
function placesPart(rows) {
  if (!rows.length) return null;
  const models = ownEntries.length;
  const items = grouped(rows, (row) => `${row.title}: ${row.place}`).map((some) => {
    const who = some.map(({ entry }) => entries[entry].label).join(", ");
    return `${some[0].title}${models > 1 ? `, ${some.length === models ? "all of them" : who}` : ""}: ${some[0].place}.`;
  });
  return titled("Among published models", bullets(items, "places"));
}

// A line for each name, a dot for each model, on one scale; chance, ceiling and published models as marks of the line.
function firstPicture(rows, strategy) {
  const models = [...new Set(rows.map((row) => row.entry))].slice(0, MOST_SERIES);
  const names = grouped(rows, (row) => row.title);
  const points = (some) =>
    some
      .filter((row) => models.includes(row.entry))
      .map((row) => ({ ...row, series: models.indexOf(row.entry), value: row.score, tip: [row.title, ...tipLines(row)] }));
  const marksOf = (some, line) => {
    const { chance, ceiling, quarters } = some.find((row) => row.quarters) ?? some[0];
    const [low, value, high] = quarters ?? [];
    return [
      isNumber(chance) ? { line, mark: "chance", value: chance, tip: `guessing scores ${fixed(chance)}` } : null,
      isNumber(ceiling) ? { line, mark: "ceiling", value: ceiling, tip: `at most ${fixed(ceiling)} can be reached` } : null,
      quarters ? { line, mark: "published", value, low, high, tip: `published models: median ${fixed(value)}` } : null,
    ].filter(Boolean);
  };
  const marks = names.flatMap(marksOf);
  const key = (mark, words) => (marks.some((item) => item.mark === mark) ? text("span", `key ${mark}`, words) : null);
  return make(
    "div",
    {},
    dots({
      heading: "What",
      label: `Scores with 95 % intervals, ${strategy}`,
      series: models.map(markedName),
      rows: names.map((some) => ({ title: some[0].title, points: points(some) })),
      words: { domain: [0, 1], measure: "score, 95 % interval", marks },
    }),
    marks.length
      ? make(
          "p",
          { className: "key-line" },
          key("chance", "what guessing scores"),
          key("ceiling", "the highest that can be reached"),
          key("published", "published models: median and middle half"),
        )
      : null,
  );
}

function firstTable(rows) {
  const columns = [
    wordColumn("title", "What", { head: true, value: (row) => rows.indexOf(row), cell: (row) => row.title }),
    { ...MODEL_COLUMN, head: false },
    numberColumn("score", "Score", { hint: "With its 95 % interval", cell: scoreText }),
    COVERAGE_COLUMN,
    ...withValues(
      [
        numberColumn("documents", "Documents", { format: count }),
        numberColumn("chance", "Chance", { hint: "What guessing scores" }),
        numberColumn("ceiling", "Highest", { hint: "The highest score that can be reached" }),
        ...SHARE_COLUMNS,
      ],
      rows,
    ),
  ];
  return table({ name: "first", caption: "Scores of own runs", columns, rows, sort: "title", limit: 24 });
}

function caveats() {
  const faults = report.faults.map(({ where, what, remedy }) => [
    make("code", { textContent: where }),
    ": ",
    what,
    remedy ? text("span", "remedy", `→ ${remedy}`) : null,
  ]);
  return make(
    "section",
    { id: "know" },
    make("h3", { textContent: "Caveats" }),
    report.differences.length ? bullets(report.differences, "differences") : note("None: everything here is under the same conditions."),
    faults.length ? titled("Faults in the runs", note("What could not be read, or was left out."), bullets(faults, "faults")) : null,
  );
}

// Why tasks that were asked for have no score.
function missingPart() {
  if (!report.missing.length) return null;
  const reasonOf = ({ state, reason }) => `${state}: ${reason || "no reason on record"}`;
  const named = ({ entry, strategy, dataset }) => {
    const title = strategies.length > 1 ? `, ${strategies[strategy][1]}` : "";
    return [taskLink(dataset), text("span", "soft", ` ${entries[entry].label}${title}`)];
  };
  const items = grouped(report.missing, reasonOf).map((some) => [
    text("span", "", reasonOf(some[0])),
    folded(plural(some.length, "task"), () => bullets(some.map(named), "columns")),
  ]);
  return titled("Why results are missing", bullets(items, "reasons"));
}

function howToRead() {
  const rules = report.mean_rules.length
    ? `, except where a suite averages in its own way (${report.mean_rules.join("; ")}).`
    : ".";
  const items = [
    ["Score", `the suite's own main measure of a task; higher is better. For several tasks it is their plain mean${rules}`],
    ["[low, high]", "the 95 % interval: how far the score depends on which documents happened to be in the test file."],
    ["≈", "an interval by the normal distribution: that of the difference between two strategies."],
    ["~", "behind an interval: a rough one, of clusters of documents with a score near 0 or 1."],
    ["p", "behind an interval: the paper’s own."],
    ["partial", "some of the tasks have no score for this model, so it is shown but not ranked."],
    ["limited", "of some tasks only some documents were asked (--limit, --samples): shown but not ranked."],
    ["readable", "share of answers in which an answer could be read at all."],
    ["truncated", "share of answers that used up their length limit: such a model might do better with a higher one."],
    ["published", "printed in a paper or on its leaderboard, with its own prompts, settings and, in part, data."],
  ];
  return folded("How to read this report", () => termList(items), { className: "plain" });
}
