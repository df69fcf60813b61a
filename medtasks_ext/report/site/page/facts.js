// Scores against what is known of models: one picture, with the line of the best, and a table of groups.

const AGAINST = [
  { ...SIZE, heading: "by size", value: ({ size }) => size },
  { ...DATE, heading: "by date", value: ({ date }) => dayOf(date) },
  {
    ...PRICE,
    key: "price",
    name: "price",
    heading: "by price",
    title: "USD per million tokens of output, logarithmic",
    value: ({ price }) => price,
  },
];
const COLOURS = [
  ["domain", "domain", { general: "general", medical: "medical" }],
  ["access", "weights", { open: "open", proprietary: "proprietary" }],
  ["reasoning", "reasoning", { yes: "reasoning", no: "no reasoning" }],
];

// The picture of a column, what it stands against, and the groups that its colours mean.
function part(shown, strategy, by, width) {
  const scored = scoredRows(shown, strategy, by);
  const fact = againstWhat(scored);
  const colour = COLOURS.find(([key]) => key === choice("colour", COLOURS.map(([key_]) => key_)));
  const chosen = controls(
    switcher("Against", "against", AGAINST.map(({ key }) => [key, key]), fact.key),
    switcher("Colour", "colour", COLOURS.map(([key, title]) => [key, title]), colour[0]),
  );
  const [drawn, caption] = modelPicture(scored, strategy, by, fact, colour, width);
  return make(
    "section",
    { className: "against", id: "pictures", "aria-label": "Picture" },
    text("h3", "", `${columnTitle(by)} ${fact.heading}`),
    make(
      "div",
      { className: "beside-it" },
      make("div", {}, chosen, drawn),
      make("div", {}, groupsPart(scored, by, colour), note(caption)),
    ),
  );
}

// What is chosen, else the first fact that is known of most models, else the one that is known of the most.
function againstWhat(scored) {
  const n = ({ value }) => scored.filter((point) => value(point) !== null).length;
  const most = AGAINST.reduce((one, other) => (n(other) > n(one) ? other : one));
  const usual = AGAINST.find((fact) => n(fact) > scored.length / 2) ?? most;
  const keys = [usual, ...AGAINST].map(({ key }) => key);
  return AGAINST.find(({ key }) => key === choice("against", keys));
}

const groupOf = ({ entry }, [key, , words]) => words[site.entries[key][entry]] ?? UNKNOWN;

// Numbers that stand on all tasks, of published models and of what was asked as the paper asked.
function scoredRows(rows, strategy, by) {
  const cells = site.scores[strategy][by];
  const found = site.intervals[strategy][by] ?? [];
  const { size, price, date } = site.entries;
  const dates = site.dates?.[strategy][by] ?? date;
  return rows
    .filter(({ entry, section }) => section === ALIKE && isRanked(cells[entry]))
    .map(({ entry, rank, of }) => ({
      entry,
      rank,
      of,
      size: size[entry] ?? null,
      price: price[entry] ?? null,
      date: dates[entry],
      score: nearest(cells[entry]),
      low: found[entry] ? nearest(found[entry][0]) : null,
      high: found[entry] ? nearest(found[entry][1]) : null,
      scored: 1,
      total: 1,
    }));
}

function modelPicture(scored, strategy, by, fact, colour, width) {
  const heading = `${columnTitle(by)} ${fact.heading}`;
  const points = scored.filter((point) => fact.value(point) !== null);
  if (!points.length) return ["", `No model that is shown has a known ${fact.name} and this number.`];
  const { label, published, page } = site.entries;
  const tip = (point) => [
    label[point.entry],
    fixed(point.score),
    point.rank ? `rank ${point.rank} of ${point.of}` : null,
    `${fact.name}: ${fact.said(fact.value(point))}`,
  ];
  const kindOf = (point) => (published[point.entry] ? groupOf(point, colour) : "submission");
  const front = frontOf(points, fact);
  const named = isNarrow() ? [] : apart(front, points, 0.09);
  const missing = scored.length - points.length;
  const caption = [
    `Results under the conditions of the paper. The dashed line joins the models that nothing ${fact.better} beats.`,
    missing ? `${plural(missing, "model")} not shown: ${fact.name} not known${fact.key === "date" ? " to the day" : ""}.` : null,
    fact.key === "price" ? steps(front) : null,
  ];
  const drawn = () =>
    scatter({
      label: `${heading}, ${site.strategies[strategy][1]}`,
      fact,
      rows: points,
      front,
      groups: ["submission", ...Object.values(colour[2]), UNKNOWN],
      groupOf: kindOf,
      nameOf: (point) => (!published[point.entry] || named.includes(point) ? label[point.entry] : null),
      tip,
      words: {
        width: Math.min(width, roomOf()),
        tall: isNarrow() ? 220 : 290,
        x_ticks: 4,
        measure: columnTitle(by),
        legend: { title: null, columns: 0, orient: "top" },
      },
      open: (entry) => location.assign(`${site.home}models/${page[entry]}`),
      values: () =>
        factTable({
          rows: points,
          fact,
          caption: `${columnTitle(by)} and ${fact.name}`,
          names: [{ ...NAME_COLUMN, cell: ({ entry }) => modelPage(page[entry], label[entry]) }],
          kindOf,
          score: numberColumn("score", columnTitle(by)),
        }),
    });
  return [drawnLater(340, drawn), caption.filter(Boolean).join(" ")];
}

// What one more point costs along the line of the best.
function steps(front) {
  const said = front.slice(1).map((point, index) => {
    const before = front[index];
    const points = 100 * (point.score - before.score);
    const more = point.price - before.price;
    const [from, to] = [before, point].map(({ entry }) => site.entries.label[entry]);
    const gained = `${points.toFixed(1)} points for $${more.toFixed(2)} more per million tokens`;
    return `${from} to ${to}: ${gained}, $${(more / points).toFixed(2)} a point`;
  });
  return said.length ? `Along the line: ${said.join("; ")}.` : null;
}

// Of each group of published models: how many, the median, the best.
function groupsPart(scored, by, colour) {
  const { label, page, published } = site.entries;
  const groups = [...Object.values(colour[2]), UNKNOWN].map((name) => [
    name,
    scored.filter((point) => published[point.entry] && groupOf(point, colour) === name),
  ]);
  if (!groups.some(([, members]) => members.length)) return null;
  return groupsTable({
    name: "groups",
    caption: `${columnTitle(by)} by ${colour[1]}`,
    heading: colour[1][0].toUpperCase() + colour[1].slice(1),
    groups,
    nameOf: ({ entry }) => modelPage(page[entry], label[entry]),
  });
}
