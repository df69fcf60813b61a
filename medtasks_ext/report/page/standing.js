// Where own results stand among published models: one sentence and one picture for each suite and strategy.

const SHOWN_STANDINGS = 3;

function standingsPart() {
  const byRank = (one, other) => Number(other.ranked) - Number(one.ranked) || other.comparable - one.comparable;
  const found = [...report.standings].sort(byRank);
  if (!found.length) return null;
  const [shown, rest] = [found.slice(0, SHOWN_STANDINGS), found.slice(SHOWN_STANDINGS)];
  const words = plural(rest.length, "more suite or model", "more suites or models");
  const more = () => folded(words, () => rest.map(standingCard), { open: onPaper });
  const heading = make("h3", { textContent: "Where it stands" });
  return make("section", { className: "standings" }, heading, ...shown.map(standingCard), rest.length ? more() : null);
}

function standingCard(item) {
  return make(
    "article",
    { className: item.ranked ? "standing" : "standing beside" },
    make("h4", {}, modelLink(item.entry), ` · ${suiteTitle(item.suite)}, ${strategies[item.strategy][1]}`),
    text("p", "sentence", `${item.sentence}.`),
    placesPicture(item),
    bullets(item.remarks, "remarks"),
  );
}

// Every published model a line on the scale of scores; the own score above them.
function placesPicture(item) {
  const { score_comparable: value, quarters, ranked, rivals, entry, sentence: label } = item;
  const scores = rivals.map(([, score]) => score);
  const [least, most] = [Math.min(...scores), Math.max(...scores)];
  const place = (value - least) / (most - least || 1);
  const own = entries[entry].model;
  const mark = { value, low: item.low ?? null, high: item.high ?? null };
  const rows = rivals.map(([other, score]) => ({
    role: "rival",
    value: score,
    tip: `${entries[other].label}\n${fixed(score)}`,
  }));
  const tip = `${own}\n${fixed(value)} ${interval(mark)}`;
  rows.push({ role: "own", ...mark, name: `${own} ${fixed(value, 2)}`, tip });
  const { ground, own: colour } = report.pictures.themes[isDark() ? "dark" : "light"];
  const [q1, q2, q3] = quarters;
  const words = {
    width: roomOf() - (isNarrow() ? 34 : 44),
    quarters: [{ q1, q2, q3 }],
    align: place < 0.25 ? "left" : place > 0.75 ? "right" : "center",
    own_fill: ranked ? colour : ground,
  };
  const conditions = item.comparable ? "this model: not ranked" : "this model, other conditions: not ranked";
  return make(
    "div",
    { className: "places-box" },
    picture({ kind: "places", label, rows, words }),
    make(
      "p",
      { className: "key-line" },
      text("span", "key rival", plural(rivals.length, "published model")),
      text("span", "key median", `median ${fixed(q2, 2)}, with the middle half`),
      ranked ? text("span", "key own", "this model, 95 % interval") : text("span", "key own open", conditions),
    ),
  );
}
