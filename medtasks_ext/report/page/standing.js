// Where own results stand among published models: one sentence and one picture for each suite and strategy.

const SHOWN_STANDINGS = 3;
const STRIP_AXES = ["language", "task_type", "specialties"];

function standingsPart() {
  const found = [...report.standings].sort(
    (one, other) => Number(other.placed) - Number(one.placed) || other.alike - one.alike,
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
    { className: item.placed ? "standing" : "standing beside" },
    make("h4", {}, modelLink(item.entry), ` · ${suiteTitle(item.suite)}, ${strategies[item.strategy][1]}`),
    text("p", "sentence", `${item.sentence}.`),
    placesPicture(item),
    howSure(item),
    strongAndWeak(item),
    folded("By language, kind of task and specialty", () => [byValue(item)], { open: onPaper || item === report.standings[0] }),
  );
}

// Every published model a line on the scale of scores, those of the own size longer; the own score above them.
function placesPicture(item) {
  const scores = item.rivals.map(([, score]) => score);
  const ends = [item.low, item.high, item.on_alike].filter(isNumber);
  const low = Math.min(...scores, ...ends);
  const high = Math.max(...scores, ...ends);
  const room = (high - low || 0.1) * 0.04;
  const domain = [low - room, high + room];
  const at = (score) => shareOf(score, domain);
  const sorted = [...scores].sort((one, other) => one - other);
  const quantile = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const peers = new Set(item.peers);
  const x = (item.on_alike - domain[0]) / (domain[1] - domain[0]);
  const anchor = x < 0.25 ? "start" : x > 0.75 ? "end" : "middle";
  const own = `${entries[item.entry].model} ${fixed(item.on_alike, 2)}`;
  const lines = item.rivals.map(([entry, score]) =>
    svg(
      "line",
      { x1: at(score), x2: at(score), y1: peers.has(entry) ? 36 : 44, y2: 62, class: peers.has(entry) ? "peer" : "rival" },
      svg("title", {}, `${entries[entry].label} ${fixed(score)}`),
    ),
  );
  const picture = svg(
    "svg",
    { class: "places", width: "100%", height: 96, role: "img", "aria-label": item.sentence },
    svg("rect", { x: at(quantile(0.25)), width: `${100 * (quantile(0.75) - quantile(0.25)) / (domain[1] - domain[0])}%`, y: 58, height: 8, class: "middle-half" }),
    svg("line", { x1: at(sorted[0]), x2: at(sorted.at(-1)), y1: 62, y2: 62, class: "axis" }),
    ...lines,
    svg("line", { x1: at(quantile(0.5)), x2: at(quantile(0.5)), y1: 54, y2: 70, class: "median" }),
    isNumber(item.low)
      ? svg("line", { x1: at(item.low), x2: at(item.high), y1: 26, y2: 26, class: "own-range" })
      : null,
    svg("circle", { cx: at(item.on_alike), cy: 26, r: 6, class: "own" }),
    svg("line", { x1: at(item.on_alike), x2: at(item.on_alike), y1: 32, y2: 66, class: "own-line" }),
    svg("text", { x: at(item.on_alike), y: 13, "text-anchor": anchor, class: "own-name" }, own),
    svg("text", { x: at(sorted[0]), y: 88, "text-anchor": "start" }, fixed(sorted[0], 2)),
    svg("text", { x: at(sorted.at(-1)), y: 88, "text-anchor": "end" }, fixed(sorted.at(-1), 2)),
  );
  return make("div", { className: "places-box" }, picture, placesLegend(item, quantile(0.5)));
}

function placesLegend(item, median) {
  const n = item.rivals.length;
  const parts = [text("span", "key rival", plural(n, "published model"))];
  if (item.peers.length) parts.push(text("span", "key peer", `${count(item.peers.length)} of its size (about ${item.size} B)`));
  parts.push(text("span", "key median", `median ${fixed(median, 2)}, with the middle half`));
  parts.push(text("span", "key own", item.placed ? "this model, 95 % interval" : "this model, asked otherwise: no place"));
  return make("p", { className: "key-line" }, ...parts);
}

function howSure(item) {
  const lines = [];
  if (item.placed) {
    const [first, last] = item.places ?? [];
    const range = isNumber(first) && first !== last ? `; ${first} to ${last} within the 95 % interval` : "";
    lines.push(["Place", `${item.place} of ${item.of}${range}`]);
  }
  if (item.among_peers) lines.push(["Of its size", item.among_peers.replace(/ among .*/, "")]);
  lines.push(["In the suite's own words", `${item.official} of ${plural(item.tasks, "task")}`]);
  const reasons = Object.entries(item.reasons).map(([reason, n]) => `${reason} in ${n}`);
  if (reasons.length) lines.push(["Not comparable", `${reasons.join(", ")} of ${plural(item.tasks, "task")}`]);
  return make(
    "dl",
    { className: "standing-facts" },
    ...lines.map(([term, meaning]) =>
      make("div", {}, make("dt", { textContent: term }), make("dd", { textContent: meaning })),
    ),
  );
}

// A strip of the payload: axis, value, tasks, score, five marks of the published models, share of them below.
const stripOf = ([axis, value, n, score, , , middle, , , below]) => ({ axis, value, n, score, lead: score - middle, below });

function strongAndWeak(item) {
  if (item.strips.length < 2) return null;
  const known = new Map(item.strips.map((strip) => [`${strip[0]} ${strip[1]}`, stripOf(strip)]));
  const list = (title, className, keys) =>
    make(
      "div",
      { className },
      text("h5", "", title),
      make(
        "ul",
        {},
        ...keys.map((key) => {
          const { axis, value, lead, below } = known.get(key.join(" "));
          const tasks = link(address("tasks", "", { suite: item.suite, [axis]: value }), valueTitle(axis, value));
          return make("li", {}, tasks, text("b", "", ` ${signed(lead, 2)} `), text("span", "soft", share(item, below)));
        }),
      ),
    );
  return make(
    "div",
    { className: "strong-weak" },
    list("Strongest: from the median of the published", "strong", item.strong),
    list("Weakest: from the median of the published", "weak", item.weak),
  );
}

const share = (item, below) => (item.placed ? `above ${Math.round(100 * below)} %` : "");

function byValue(item) {
  const rows = STRIP_AXES.flatMap((axis) => {
    const rank = axisRank.get(axis) ?? new Map();
    const found = item.strips
      .filter(([key]) => key === axis)
      .map(stripOf)
      .sort((one, other) => (rank.get(one.value) ?? 0) - (rank.get(other.value) ?? 0));
    return found.length ? [text("h5", "strip-axis", axisTitle(axis)), ...found.map((strip) => percentileRow(item, strip))] : [];
  });
  return make(
    "div",
    { className: "percentiles" },
    note("Left: no published model scores less; right: all do. The lines are the quarters. On the tasks of the picture."),
    ...rows,
  );
}

function percentileRow(item, { axis, value, n, score, lead, below }) {
  const x = `${2 + 96 * below}%`;
  const words = `${valueTitle(axis, value)}: ${fixed(score)} on ${plural(n, "task")}, ${signed(lead)} from the median`;
  const quarters = [0.25, 0.5, 0.75].map((part) =>
    svg("line", { x1: `${2 + 96 * part}%`, x2: `${2 + 96 * part}%`, y1: 3, y2: 17, class: "rule" }),
  );
  return make(
    "div",
    { className: "percentile" },
    make("span", {}, valueTitle(axis, value), text("span", "soft", ` ${n}`)),
    svg(
      "svg",
      { width: "100%", height: 20, role: "img", "aria-label": words },
      svg("title", {}, words),
      svg("line", { x1: "2%", x2: "98%", y1: 10, y2: 10, class: "axis" }),
      ...quarters,
      svg("circle", { cx: x, cy: 10, r: 5, class: "own" }),
    ),
    text("span", "figure", `${fixed(score, 2)} `),
    text("span", `figure ${lead >= 0 ? "up" : "down"}`, signed(lead, 2)),
  );
}
