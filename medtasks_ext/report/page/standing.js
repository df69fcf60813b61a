// Where own results stand among published models: one sentence and one picture for each suite and strategy.

const SHOWN_STANDINGS = 3;
const STRIP_AXES = ["language", "task_type", "specialties"];

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

// Where the own score stands in the picture: on the whole suite, where its tasks stand for that.
const markOf = (item) =>
  isNumber(item.equivalent)
    ? { value: item.equivalent, low: item.equivalent - item.equivalent_error, high: item.equivalent + item.equivalent_error }
    : { value: item.score_comparable, low: item.low ?? null, high: item.high ?? null };

function standingCard(item) {
  return make(
    "article",
    { className: item.ranked ? "standing" : "standing beside" },
    make("h4", {}, modelLink(item.entry), ` · ${suiteTitle(item.suite)}, ${strategies[item.strategy][1]}`),
    text("p", "sentence", `${item.sentence}.`),
    placesPicture(item),
    make("ul", { className: "remarks" }, ...item.remarks.map((line) => make("li", { textContent: line }))),
    item.strips.some(([axis]) => STRIP_AXES.includes(axis))
      ? folded("By language, kind of task and specialty", () => [byValue(item)], { open: onPaper || item === report.standings[0] })
      : null,
  );
}

// Every published model a line on the scale of scores, those of the own size longer; the own score above them.
function placesPicture(item) {
  const sorted = item.rivals.map(([, score]) => score).sort((one, other) => one - other);
  const quantile = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const peers = new Set(item.peers);
  const reach = [sorted[0], sorted.at(-1)];
  const mark = markOf(item);
  const place = (mark.value - reach[0]) / (reach[1] - reach[0] || 1);
  const own = entries[item.entry].model;
  const rows = item.rivals.map(([entry, score]) => ({
    role: peers.has(entry) ? "peer" : "rival",
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
  if (item.peers.length) parts.push(text("span", "key peer", `${count(item.peers.length)} of its size (about ${item.size} B)`));
  parts.push(text("span", "key median", `median ${fixed(median, 2)}, with the middle half`));
  if (item.ranked) parts.push(text("span", "key own", "this model, 95 % interval"));
  else parts.push(text("span", "key own open", item.comparable ? "this model: not ranked" : "this model, other conditions: not ranked"));
  return make("p", { className: "key-line" }, ...parts);
}

// A strip of the payload: axis, value, tasks, score, five marks of the published models, share of them below.
const stripOf = ([axis, value, n, score, , , , , middle, , , below]) => ({ axis, value, n, score, lead: score - middle, below });

function byValue(item) {
  const drawn = STRIP_AXES.flatMap((axis) => {
    const rank = axisRank.get(axis) ?? new Map();
    const strips = item.strips
      .filter(([key]) => key === axis)
      .map(stripOf)
      .sort((one, other) => (rank.get(one.value) ?? 0) - (rank.get(other.value) ?? 0));
    return strips.length ? [axisPicture(item, axis, strips)] : [];
  });
  return make(
    "div",
    {},
    note(
      "Where the own score stands: at 0 % no published model scores less, at 100 % all do. Beside it the score, and how far it is from the median. On the tasks of the picture.",
    ),
    make("div", { className: "percentiles" }, ...drawn),
  );
}

function axisPicture(item, axis, strips) {
  const label = `${axisTitle(axis)}: share of the published models that ${entries[item.entry].model} is above`;
  return percentiles({
    label,
    heading: axisTitle(axis),
    rows: strips.map(({ value, n, score, lead, below }) => ({
      title: `${valueTitle(axis, value)} (${n})`,
      value: below,
      lead,
      words: `${fixed(score, 2)}  ${signed(lead, 2)}`,
      tip: `${valueTitle(axis, value)}\n${fixed(score)} on ${plural(n, "task")}, ${signed(lead)} from the median`,
    })),
    beside: 92,
    values: () =>
      matrixTable({
        label,
        heading: axisTitle(axis),
        rows: strips.map(({ value }) => ({ title: valueTitle(axis, value) })),
        columns: ["score", "from the median", "published models below", "tasks"].map((title) => ({ title })),
        cell: (row, column) => {
          const { score, lead, below, n } = strips[row];
          return [fixed(score), signed(lead), percent(below), count(n)][column];
        },
      }),
  });
}
