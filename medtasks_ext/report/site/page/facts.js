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
  ["domain", "domain", ({ entry }) => site.entries.domain[entry]],
  ["access", "weights", ({ entry }) => site.entries.access[entry]],
  ["reasoning", "reasoning", ({ entry }) => REASONS[site.entries.reasoning[entry]]],
];

// The picture of a column, what it stands against, and the groups that its colours mean.
function part(shown, strategy, by, width) {
  const scored = scoredRows(shown, strategy, by);
  const about = factAndKind(scored, AGAINST, COLOURS);
  const { fact, kind } = about ?? { fact: AGAINST[0], kind: COLOURS[0] };
  const { label, published, page } = site.entries;
  const points = scored.filter((point) => fact.value(point) !== null);
  const missing = scored.length - points.length;
  const caption = [
    `Results under the conditions of the paper. The dashed line joins the models that nothing ${fact.better} beats.`,
    missing ? `${plural(missing, "model")} not shown: ${fact.name} not known${fact.key === "date" ? " to the day" : ""}.` : null,
    fact.key === "price" ? steps(frontOf(points, fact)) : null,
  ];
  const drawn = () =>
    scatter({
      label: `${columnTitle(by)} ${fact.heading}, ${site.strategies[strategy][1]}`,
      fact,
      rows: points,
      kind,
      own: ["submission", ({ entry }) => !published[entry]],
      nameOf: ({ entry }) => label[entry],
      tip: ({ entry, score: value, rank, of }) => [label[entry], fixed(value), rank ? `rank ${rank} of ${of}` : null],
      measure: columnTitle(by),
      width: Math.min(width, roomOf()),
      open: (entry) => location.assign(`${site.home}models/${page[entry]}`),
      names: [{ ...NAME_COLUMN, cell: ({ entry }) => modelPage(page[entry], label[entry]) }],
      figures: [numberColumn("score", columnTitle(by))],
    });
  return make(
    "section",
    { className: "against", id: "pictures", "aria-label": "Picture" },
    text("h3", "", `${columnTitle(by)} ${fact.heading}`),
    make(
      "div",
      { className: "beside-it" },
      make("div", {}, about?.controls, points.length ? drawnLater(340, drawn) : null),
      make(
        "div",
        {},
        groupsPart(scored.filter(({ entry }) => published[entry]), by, kind),
        note(points.length ? caption.filter(Boolean).join(" ") : `No model that is shown has a known ${fact.name} and this number.`),
      ),
    ),
  );
}

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
function groupsPart(scored, by, [, title, of]) {
  const rows = grouped(scored, (row) => of(row) ?? UNKNOWN).map((members) => ({
    title: of(members[0]) ?? UNKNOWN,
    n: members.length,
    best: members.reduce((one, other) => (one.score >= other.score ? one : other)),
    middle: middleOf(members.map((row) => row.score)),
  }));
  if (!rows.length) return null;
  const { label, page } = site.entries;
  return table({
    name: "groups",
    caption: `${columnTitle(by)} by ${title}`,
    rows,
    sort: "-n",
    columns: [
      wordColumn("title", title[0].toUpperCase() + title.slice(1), { head: true }),
      numberColumn("n", "Models", { format: count }),
      numberColumn("middle", "Median"),
      wordColumn("best", "Best", {
        sort: "desc",
        value: ({ best }) => best.score,
        cell: ({ best: { entry, score: value } }) => make("span", {}, modelPage(page[entry], label[entry]), ` ${fixed(value)}`),
      }),
    ],
  });
}
