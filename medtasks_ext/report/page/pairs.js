// Every model against every other: is a difference more than chance?

const ADJUSTMENTS = [
  ["holm", "Holm"],
  ["bh", "Benjamini–Hochberg"],
  ["none", "none"],
];
const P_COLUMN = { holm: "p_holm", bh: "p_bh", none: "p" };

function drawPairs() {
  const wanted = [chosen("suite"), chosen("strategy")];
  const fits = report.comparisons.filter(
    (item) =>
      (!wanted[0].length || wanted[0].includes(item.suite)) && (!wanted[1].length || wanted[1].includes(item.strategy)),
  );
  if (!fits.length)
    return [nothing("No comparison for this suite and strategy: it needs at least two models with scores on the same tasks.")];
  return [
    make(
      "div",
      { className: "controls" },
      switcher(
        "Show",
        "matrix",
        [
          ["difference", "differences with tests"],
          ["wins", "share of tasks won"],
        ],
        choice("matrix", ["difference", "wins"]),
      ),
      switcher("Correction for many tests", "adjust", ADJUSTMENTS, choice("adjust", ["holm", "bh", "none"])),
    ),
    ...fits.map(comparisonPart),
    note("Filters of tasks other than suite and strategy do not apply here: tests are made over all tasks of a suite that the compared models share."),
  ];
}

const matrixValue = (comparison, name, row, column) => comparison[name]?.[row]?.[column] ?? null;

function comparisonPart(comparison) {
  const title = `${suiteTitle(comparison.suite)}, ${strategies[strategyAt.get(comparison.strategy)][1]}`;
  const kept = new Set(selectedEntries());
  const tested = (place) => comparison.entries.some((_, other) => matrixValue(comparison, "p", place, other) !== null);
  const visible = comparison.entries.map((_, place) => place).filter((place) => kept.has(comparison.entries[place]));
  const withTests = visible.filter(tested);
  const wins = choice("matrix", ["difference", "wins"]) === "wins";
  const places = (wins ? visible : withTests).sort(
    (one, other) => comparisonRank(comparison, one) - comparisonRank(comparison, other),
  );
  const { sample } = comparison;
  const leftOut = (comparison.left_out ?? []).map((entry) => entries[entry].label);
  const detail = make("div", { className: "detail", role: "status" });
  const heading = make("h3", {}, title, " ", sample ? tag("sample", "SAMPLE") : null);
  if (places.length < 2) {
    return make(
      "section",
      {},
      heading,
      note(
        "No two of the shown models have scores per document here, which tests need. ",
        visible.length > 1 ? smallButton("Show shares of tasks won", { matrix: "wins" }) : "",
      ),
    );
  }
  const name = (place) => ({
    title: shortName(markedName(comparison.entries[place])),
    own: isOwn(comparison.entries[place]),
    node: link(modelAddress(comparison.entries[place]), entries[comparison.entries[place]].label),
  });
  return make(
    "section",
    {},
    heading,
    note(
      wins
        ? `Share of the tasks that both have on which the row's model scores higher than the column's, ties counting half.`
        : `Row minus column, mean over the ${plural(comparison.tasks, "task")} that all compared models share${comparison.tasks < tasksOfSuite(comparison.suite).length ? ` (of ${tasksOfSuite(comparison.suite).length} in the suite)` : ""}. A dot marks p < 0.05 ${adjustmentInWords()}.`,
    ),
    leftOut.length ? note(`Left out, since they share too few tasks with the others: ${leftOut.join(", ")}.`) : null,
    heat({
      label: `${wins ? "Share of tasks won" : "Difference of mean scores"}, ${title}`,
      heading: "Row against column",
      rows: places.map(name),
      columns: places.map(name),
      words: {
        colours: "diverging",
        domain: wins ? [0, 1] : [-largest(comparison, places), largest(comparison, places)],
        measure: wins ? "share of tasks that the row wins" : "row minus column",
        format: wins ? ".0%" : "+.4~f",
      },
      cell: (row, column) => pairCell(comparison, places[row], places[column], wins, detail),
    }),
    detail,
    wins ? null : rankPlot(comparison, places, title),
  );
}

function adjustmentInWords() {
  return {
    holm: "after Holm’s correction for all pairs",
    bh: "after Benjamini and Hochberg’s correction for all pairs",
    none: "without correction for the number of pairs: some of them arise by chance",
  }[choice("adjust", ["holm", "bh", "none"])];
}

function comparisonRank(comparison, place) {
  const rank = comparison.rank?.[place];
  if (isNumber(rank)) return rank;
  return 1e3 * (1 - (mean((comparison.wins?.[place] ?? []).filter(isNumber)) ?? 0)); // without a rank: by share of tasks won
}

const largestOf = new WeakMap();
function largest(comparison, places) {
  if (!largestOf.has(comparison))
    largestOf.set(
      comparison,
      Math.max(
        0.01,
        ...places.flatMap((row) =>
          places.map((column) => Math.abs(matrixValue(comparison, "difference", row, column) ?? 0)),
        ),
      ),
    );
  return largestOf.get(comparison);
}

function pairCell(comparison, row, column, wins, detail) {
  if (row === column) return null;
  const value = matrixValue(comparison, wins ? "wins" : "difference", row, column);
  if (value === null) return null;
  const p = matrixValue(comparison, P_COLUMN[choice("adjust", ["holm", "bh", "none"])], row, column);
  const lines = pairInWords(comparison, row, column);
  return {
    value,
    words: wins ? fixed(value, 2) : `${signed(value)}${p !== null && p < 0.05 ? " ●" : ""}`,
    said: wins || p === null ? null : `${signed(value)} ${pairInterval(comparison, row, column)}, p ${probability(p)}`,
    tip: lines,
    pick: () => detail.replaceChildren(...lines.map((line, index) => text(index ? "p" : "h4", "", line))),
  };
}

function pairInterval(comparison, row, column) {
  const [low, high] = ["low", "high"].map((name) => matrixValue(comparison, name, row, column));
  return interval({ low, high }, signed);
}

function pairInWords(comparison, row, column) {
  const [one, other] = [row, column].map((place) => entries[comparison.entries[place]].label);
  const get = (name) => matrixValue(comparison, name, row, column);
  const [difference, won] = [get("difference"), get("wins")];
  return [
    `${one} against ${other}`,
    difference === null
      ? null
      : `Difference ${signed(difference)} ${pairInterval(comparison, row, column)}`,
    get("p") === null
      ? "No test: one of them has no scores per document"
      : `p = ${probability(get("p"))}; Holm ${probability(get("p_holm"))}; Benjamini–Hochberg ${probability(get("p_bh"))}`,
    won === null ? null : `Wins ${percent(won)} of the tasks, ties counting half`,
  ].filter(Boolean);
}

function rankPlot(comparison, places, title) {
  const ranked = places.filter((place) => isNumber(comparison.rank?.[place]));
  if (ranked.length < 2) return null;
  const rows = ranked.map((place) => {
    const entry = comparison.entries[place];
    const point = {
      series: 0,
      value: comparison.rank[place],
      low: comparison.rank_low?.[place],
      high: comparison.rank_high?.[place],
    };
    const format = (value) => fixed(value, Number.isInteger(value) ? 0 : 1);
    return {
      title: shortName(markedName(entry)),
      node: modelLink(entry),
      own: isOwn(entry),
      points: [{ ...point, tip: [entries[entry].label, `rank ${format(point.value)} ${interval(point, format)}`] }],
    };
  });
  return make(
    "div",
    {},
    text("h4", "", "Ranks with intervals"),
    note(
      "The rank of each model on every redrawn set of documents: where intervals overlap, the order is not settled.",
    ),
    dots({
      label: `Ranks, ${title}`,
      series: ["rank"],
      rows,
      format: (value) => fixed(value, Number.isInteger(value) ? 0 : 1),
      words: { domain: [1, Math.max(2, comparison.rank.length)], measure: "rank (1 is best), 95 % interval", format: "~f" },
    }),
  );
}
