// Every model against every other: is a difference more than chance?

// [id, title, column of p-values, in words]
const ADJUSTMENTS = [
  ["holm", "Holm", "p_holm", "after Holm’s correction for all pairs"],
  ["bh", "Benjamini–Hochberg", "p_bh", "after Benjamini and Hochberg’s correction for all pairs"],
  ["none", "none", "p", "without correction for the number of pairs: some of them arise by chance"],
];
const MATRICES = [["difference", "differences with tests"], ["wins", "share of tasks won"]];

const adjustment = () => ADJUSTMENTS.find(([id]) => id === choice("adjust", ADJUSTMENTS.map(([name]) => name)));
const showsWins = () => choice("matrix", MATRICES.map(([id]) => id)) === "wins";

function drawPairs() {
  const isWanted = (key, value) => !chosen(key).length || chosen(key).includes(value);
  const fits = report.comparisons.filter(({ suite, strategy }) => isWanted("suite", suite) && isWanted("strategy", strategy));
  if (!fits.length)
    return [nothing("No comparison for this suite and strategy: it needs at least two models with scores on the same tasks.")];
  return [
    controls(
      switcher("Show", "matrix", MATRICES, showsWins() ? "wins" : "difference"),
      switcher("Correction for many tests", "adjust", ADJUSTMENTS, adjustment()[0]),
    ),
    ...fits.map(comparisonPart),
    note(
      "Filters of tasks other than suite and strategy do not apply here: tests are made over all tasks of a suite that the " +
        "compared models share.",
    ),
  ];
}

const matrixValue = (comparison, name, row, column) => comparison[name]?.[row]?.[column] ?? null;

function comparisonPart(comparison) {
  const { suite, strategy, sample, entries: models, tasks, left_out } = comparison;
  const title = `${suiteTitle(suite)}, ${strategies[strategyAt.get(strategy)][1]}`;
  const kept = new Set(selectedEntries());
  const isTested = (place) => models.some((_, other) => matrixValue(comparison, "p", place, other) !== null);
  const visible = [...models.keys()].filter((place) => kept.has(models[place]));
  const wins = showsWins();
  const rank = (place) => comparisonRank(comparison, place);
  const places = (wins ? visible : visible.filter(isTested)).sort((one, other) => rank(one) - rank(other));
  const detail = make("div", { className: "detail", role: "status" });
  const heading = make("h3", {}, title, " ", sample ? tag("sample", "SAMPLE") : null);
  if (places.length < 2) {
    const more = visible.length > 1 ? smallButton("Show shares of tasks won", { matrix: "wins" }) : "";
    const said = "No two of the shown models have scores per document here, which tests need. ";
    return make("section", {}, heading, note(said, more));
  }
  const names = places.map((place) => ({
    title: shortName(markedName(models[place])),
    own: isOwn(models[place]),
    node: link(modelAddress(models[place]), entries[models[place]].label),
  }));
  const most = wins ? null : largest(comparison, places);
  const all = tasksOfSuite(suite).length;
  const some = tasks < all ? ` (of ${all} in the suite)` : "";
  const won = "Share of the tasks that both have on which the row's model scores higher than the column's, ties counting half.";
  const differ =
    `Row minus column, mean over the ${plural(tasks, "task")} that all compared models share${some}. ` +
    `A dot marks p < 0.05 ${adjustment()[3]}.`;
  const leftOut = left_out.map((entry) => entries[entry].label).join(", ");
  return make(
    "section",
    {},
    heading,
    note(wins ? won : differ),
    leftOut ? note(`Left out, since they share too few tasks with the others: ${leftOut}.`) : null,
    heat({
      label: `${wins ? "Share of tasks won" : "Difference of mean scores"}, ${title}`,
      heading: "Row against column",
      rows: names,
      columns: names,
      words: {
        colours: "diverging",
        domain: wins ? [0, 1] : [-most, most],
        measure: wins ? "share of tasks that the row wins" : "row minus column",
        format: wins ? ".0%" : "+.4~f",
      },
      cell: (row, column) => pairCell(comparison, places[row], places[column], detail),
    }),
    detail,
    wins ? null : rankPlot(comparison, places, title),
  );
}

// Without a rank: by the share of tasks won.
function comparisonRank({ rank, wins }, place) {
  return rank?.[place] ?? 1e3 * (1 - (mean((wins?.[place] ?? []).filter(isNumber)) ?? 0));
}

function largest(comparison, places) {
  const size = (row, column) => Math.abs(matrixValue(comparison, "difference", row, column) ?? 0);
  return Math.max(0.01, ...places.flatMap((row) => places.map((column) => size(row, column))));
}

function pairCell(comparison, row, column, detail) {
  const wins = showsWins();
  const value = matrixValue(comparison, wins ? "wins" : "difference", row, column);
  if (row === column || value === null) return null;
  const p = matrixValue(comparison, adjustment()[2], row, column);
  const tip = pairInWords(comparison, row, column);
  const said = `${signed(value)} ${pairInterval(comparison, row, column)}, p ${probability(p)}`;
  return {
    value,
    words: wins ? fixed(value, 2) : `${signed(value)}${p !== null && p < 0.05 ? " ●" : ""}`,
    said: wins || p === null ? null : said,
    tip,
    pick: () => detail.replaceChildren(...tip.map((line, place) => text(place ? "p" : "h4", "", line))),
  };
}

function pairInterval(comparison, row, column) {
  const [low, high] = ["low", "high"].map((name) => matrixValue(comparison, name, row, column));
  return interval({ low, high }, signed);
}

function pairInWords(comparison, row, column) {
  const [one, other] = [row, column].map((place) => entries[comparison.entries[place]].label);
  const get = (name) => matrixValue(comparison, name, row, column);
  const [p, byHolm, byBh] = ["p", "p_holm", "p_bh"].map((name) => probability(get(name)));
  return [
    `${one} against ${other}`,
    get("difference") === null ? null : `Difference ${signed(get("difference"))} ${pairInterval(comparison, row, column)}`,
    get("p") === null
      ? "No test: one of them has no scores per document"
      : `p = ${p}; Holm ${byHolm}; Benjamini–Hochberg ${byBh}`,
    get("wins") === null ? null : `Wins ${percent(get("wins"))} of the tasks, ties counting half`,
  ].filter(Boolean);
}

function rankPlot(comparison, places, title) {
  const ranked = places.filter((place) => isNumber(comparison.rank?.[place]));
  if (ranked.length < 2) return null;
  const format = (value) => fixed(value, Number.isInteger(value) ? 0 : 1);
  const rows = ranked.map((place) => {
    const entry = comparison.entries[place];
    const [value, low, high] = ["rank", "rank_low", "rank_high"].map((name) => comparison[name][place]);
    const tip = [entries[entry].label, `rank ${format(value)} ${interval({ low, high }, format)}`];
    const points = [{ series: 0, value, low, high, tip }];
    return { title: shortName(markedName(entry)), node: modelLink(entry), own: isOwn(entry), points };
  });
  const domain = [1, Math.max(2, comparison.rank.length)];
  return make(
    "div",
    {},
    text("h4", "", "Ranks with intervals"),
    note("The rank of each model on every redrawn set of documents: where intervals overlap, the order is not settled."),
    dots({
      label: `Ranks, ${title}`,
      series: ["rank"],
      rows,
      format,
      words: { domain, measure: "rank (1 is best), 95 % interval", format: "~f" },
    }),
  );
}
