// Where own results stand among published models: one sentence and one picture for each suite and strategy.

const SHOWN_STANDINGS = 3;

function standingsPart() {
  const found = [...report.standings].sort(
    (one, other) => Number(other.ranked) - Number(one.ranked) || other.comparable - one.comparable,
  );
  if (!found.length) return null;
  return make(
    "section",
    { className: "standings" },
    make("h3", { textContent: "Where it stands" }),
    ...found.slice(0, SHOWN_STANDINGS).map(standingCard),
    found.length > SHOWN_STANDINGS
      ? folded(
          plural(found.length - SHOWN_STANDINGS, "more suite or model", "more suites or models"),
          () => found.slice(SHOWN_STANDINGS).map(standingCard),
          { open: onPaper },
        )
      : null,
  );
}

function standingCard(item) {
  return make(
    "article",
    { className: item.ranked ? "standing" : "standing beside" },
    make("h4", {}, modelLink(item.entry), ` · ${suiteTitle(item.suite)}, ${strategies[item.strategy][1]}`),
    text("p", "sentence", `${item.sentence}.`),
    placesPicture(item),
    make("ul", { className: "remarks" }, ...item.remarks.map((line) => make("li", { textContent: line }))),
  );
}

// Every published model a line on the scale of scores; the own score above them.
function placesPicture(item) {
  const sorted = item.rivals.map(([, score]) => score).sort((one, other) => one - other);
  const quantile = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const reach = [sorted[0], sorted.at(-1)];
  const mark = { value: item.score_comparable, low: item.low ?? null, high: item.high ?? null };
  const place = (mark.value - reach[0]) / (reach[1] - reach[0] || 1);
  const own = entries[item.entry].model;
  const rows = item.rivals.map(([entry, score]) => ({
    role: "rival",
    value: score,
    tip: `${entries[entry].label}\n${fixed(score)}`,
  }));
  rows.push({
    role: "own",
    ...mark,
    name: `${own} ${fixed(mark.value, 2)}`,
    tip: `${own}\n${fixed(mark.value)} ${interval(mark)}`,
  });
  const { ground, own: colour } = report.pictures.themes[isDark() ? "dark" : "light"];
  return make(
    "div",
    { className: "places-box" },
    picture({
      kind: "places",
      label: item.sentence,
      rows,
      words: {
        width: roomOf() - (isNarrow() ? 34 : 44),
        quarters: [{ q1: quantile(0.25), q2: quantile(0.5), q3: quantile(0.75) }],
        align: place < 0.25 ? "left" : place > 0.75 ? "right" : "center",
        own_fill: item.ranked ? colour : ground,
      },
    }),
    placesLegend(item, quantile(0.5)),
  );
}

function placesLegend(item, median) {
  const n = item.rivals.length;
  const parts = [text("span", "key rival", plural(n, "published model"))];
  parts.push(text("span", "key median", `median ${fixed(median, 2)}, with the middle half`));
  if (item.ranked) parts.push(text("span", "key own", "this model, 95 % interval"));
  else parts.push(text("span", "key own open", item.comparable ? "this model: not ranked" : "this model, other conditions: not ranked"));
  return make("p", { className: "key-line" }, ...parts);
}
