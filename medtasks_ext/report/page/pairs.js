// Every model against every other: is a difference more than chance?

function drawPairs() {
  const isWanted = (key, value) => !chosen(key).length || chosen(key).includes(value);
  const fits = report.comparisons.filter(({ suite, strategy }) => isWanted("suite", suite) && isWanted("strategy", strategy));
  if (!fits.length)
    return [nothing("No comparison for this suite and strategy: it needs at least two models with scores on the same tasks.")];
  return [
    ...fits.map(comparisonPart),
    note(
      "Filters of tasks other than suite and strategy do not apply here: tests are made over all tasks of a suite that the " +
        "compared models share; medtasks compare tests any group.",
    ),
  ];
}

const matrixValue = (comparison, name, row, column) => comparison[name]?.[row]?.[column] ?? null;

function comparisonPart(comparison) {
  const { suite, strategy, sample, entries: models, tasks, left_out, rank } = comparison;
  const title = `${suiteTitle(suite)}, ${strategies[strategyAt.get(strategy)][1]}`;
  const kept = new Set(selectedEntries());
  const isTested = (place) => models.some((_, other) => matrixValue(comparison, "p", place, other) !== null);
  const places = [...models.keys()].filter((place) => kept.has(models[place]) && isTested(place));
  places.sort((one, other) => rank[one] - rank[other]);
  const detail = make("div", { className: "detail", role: "status" });
  const heading = make("h3", {}, title, " ", sample ? tag("sample", "SAMPLE") : null);
  if (places.length < 2) {
    return make("section", {}, heading, note("No two of the shown models have scores per document here, which tests need."));
  }
  const names = places.map((place) => ({
    title: shortName(markedName(models[place])),
    own: isOwn(models[place]),
    node: link(modelAddress(models[place]), entries[models[place]].label),
  }));
  const size = (row, column) => Math.abs(matrixValue(comparison, "difference", row, column) ?? 0);
  const most = Math.max(0.01, ...places.flatMap((row) => places.map((column) => size(row, column))));
  const all = tasksOfSuite(suite).length;
  const some = tasks < all ? ` (of ${all} in the suite)` : "";
  const leftOut = left_out.map((entry) => entries[entry].label).join(", ");
  const ranked = (place) => {
    const [low, high] = [comparison.rank_low[place], comparison.rank_high[place]];
    return [modelLink(models[place]), ` ${rank[place]} [${low}, ${high}]`];
  };
  return make(
    "section",
    {},
    heading,
    note(
      `Row minus column, mean over the ${plural(tasks, "task")} that all compared models share${some}. A dot marks ` +
        "p < 0.05 after Holm’s correction for all pairs.",
    ),
    leftOut ? note(`Left out, since they share too few tasks with the others: ${leftOut}.`) : null,
    heat({
      label: `Difference of mean scores, ${title}`,
      heading: "Row against column",
      rows: names,
      columns: names,
      words: { colours: "diverging", domain: [-most, most], measure: "row minus column", format: "+.4~f" },
      cell: (row, column) => pairCell(comparison, places[row], places[column], detail),
    }),
    detail,
    note("Ranks, and the best and worst rank on redrawn sets of documents: where these overlap, the order is not settled."),
    bullets(places.map(ranked), "ranks"),
  );
}

function pairCell(comparison, row, column, detail) {
  const get = (name) => matrixValue(comparison, name, row, column);
  const value = get("difference");
  if (row === column || value === null) return null;
  const p = get("p_holm");
  const range = interval({ low: get("low"), high: get("high") }, signed);
  const [one, other] = [row, column].map((place) => entries[comparison.entries[place]].label);
  const [plain, holm, bh] = ["p", "p_holm", "p_bh"].map((name) => probability(get(name)));
  const tip = [
    `${one} against ${other}`,
    `Difference ${signed(value)} ${range}`,
    p === null ? "No test: one of them has no scores per document" : `p = ${plain}; Holm ${holm}; Benjamini–Hochberg ${bh}`,
    `Wins ${percent(get("wins"))} of the tasks, ties counting half`,
  ];
  return {
    value,
    words: `${signed(value)}${p !== null && p < 0.05 ? " ●" : ""}`,
    said: p === null ? null : `${signed(value)} ${range}, p ${probability(p)}`,
    tip,
    pick: () => detail.replaceChildren(...tip.map((line, place) => text(place ? "p" : "h4", "", line))),
  };
}
