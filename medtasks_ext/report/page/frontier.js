// Models against a fact: pictures with the line of the best, and how series look.

const LOGARITHMIC = { type: "quantitative", scale: "log" };
const SIZE = {
  ...LOGARITHMIC,
  key: "size",
  name: "size",
  title: "parameters in billions, logarithmic",
  format: "~g",
  said: (value) => `${value} B`,
  better: "smaller",
};
const DATE = {
  key: "date",
  name: "release date",
  title: "release date",
  type: "temporal",
  scale: "time",
  format: "%b %Y",
  said: (value) => value,
  better: "earlier",
};
const PRICE = { ...LOGARITHMIC, format: "$~g", said: (value) => `$${value}`, better: "cheaper" };
// Classes of sizes: [value in an address, title, whether billions of parameters are in it].
const SIZE_CLASSES = [
  ["4", "up to 4 B", (size) => isNumber(size) && size <= 4],
  ["10", "4 to 10 B", (size) => isNumber(size) && size > 4 && size <= 10],
  ["35", "10 to 35 B", (size) => isNumber(size) && size > 10 && size <= 35],
  ["more", "more than 35 B", (size) => isNumber(size) && size > 35],
  ["unknown", "size unknown", (size) => !isNumber(size)],
];

const UNKNOWN = "unknown";

const dayOf = (words) => (/^\d{4}-\d\d-\d\d$/.test(words ?? "") ? words : null);

const REASONS = { yes: "reasoning", no: "no reasoning" };

// What the address chooses of facts and kinds of models: {fact, kind: [key, title, of(row)], controls}; null where no fact
// of the rows is known. By default the first fact that is known of most of them, else the one that is known of the most.
function factAndKind(rows, facts, kinds) {
  const n = ({ value }) => rows.filter((row) => value(row) !== null).length;
  const known = facts.filter(n);
  if (!known.length) return null;
  const most = known.reduce((one, other) => (n(other) > n(one) ? other : one));
  const usual = known.find((fact) => n(fact) > rows.length / 2) ?? most;
  const offered = [usual, ...known.filter((fact) => fact !== usual)];
  const fact = offered.find(({ key }) => key === option("against")) ?? usual;
  const several = kinds.filter(([, , of]) => new Set(rows.map(of)).size > 1);
  const kind = several.find(([key]) => key === option("colour")) ?? several[0] ?? kinds[0];
  const chosen = controls(
    switcher("Against", "against", offered.map(({ key, name }) => [key, name]), fact.key),
    several.length > 1 ? switcher("Colour", "colour", several, kind[0]) : null,
  );
  return { fact, kind, controls: chosen };
}

const MOST_GROUPS = 7;

// {label, fact, rows: with a score, kind, own: [what own rows are called, isOwn(row)], nameOf(row): as it stands in the
// picture, tip(row): lines, measure, width, open(entry), names and figures: columns of the table of the same values}
function scatter({ label, fact, rows, kind: [, , of], own: [ownName, own], nameOf, tip, measure, width, open, names, figures }) {
  const kinds = grouped(rows.map(of).filter(Boolean), (name) => name).sort((one, other) => other.length - one.length);
  const common = kinds.slice(0, MOST_GROUPS).map(([name]) => name);
  const groupOf = (row) => (own(row) ? ownName : !of(row) ? UNKNOWN : common.includes(of(row)) ? of(row) : "other");
  const there = new Set(rows.map(groupOf));
  const groups = [ownName, ...common, "other", UNKNOWN].filter((name) => there.has(name));
  const front = frontOf(rows, fact);
  const tall = Math.max(isNarrow() ? 220 : 290, Math.min(500, Math.round(0.36 * width)));
  const named = isNarrow() ? [] : apart(front, rows, tall < 400 ? 0.09 : 0.045);
  const said = (row) => fact.said(fact.value(row));
  return picture({
    kind: "scatter",
    label,
    rows: rows.map((row) => ({
      x: fact.value(row),
      value: row.score,
      low: row.low ?? null,
      high: row.high ?? null,
      group: groupOf(row),
      label: own(row) || named.includes(row) ? nameOf(row) : null,
      entry: row.entry,
      tip: [...tip(row), `${fact.name}: ${said(row)}`].filter(Boolean).join("\n"),
    })),
    words: {
      x_type: fact.type,
      x_scale: fact.scale,
      x_title: fact.title,
      x_format: fact.format,
      x_ticks: width < 800 ? 4 : 7,
      format: ".4~f",
      groups,
      ...looksOf(groups),
      front: front.map((row) => ({ x: fact.value(row), value: row.score })),
      width,
      tall,
      measure,
      legend: { title: null, columns: isNarrow() ? 2 : 0 },
    },
    pick: ({ entry }) => {
      if (isNumber(entry)) open(entry);
    },
    values: () =>
      table({
        name: fact.key,
        caption: label,
        rows,
        sort: "-score",
        columns: [
          ...names,
          numberColumn("fact", fact.name, { sort: "asc", value: fact.value, cell: said }),
          wordColumn("group", "Kind", { value: groupOf }),
          ...figures,
        ],
      }),
  });
}

function middleOf(values) {
  const sorted = values.filter(isNumber).sort((one, other) => one - other);
  if (!sorted.length) return null;
  const half = (sorted.length - 1) / 2;
  return (sorted[Math.floor(half)] + sorted[Math.ceil(half)]) / 2;
}

// {colours, shapes} of series: groups of models and strategies have the same ones in every picture, those of the
// papers' tables too; others take the rest.
function looksOf(names) {
  const { themes } = report.pictures;
  const known = themes.groups;
  const { series } = themes[isDark() ? "dark" : "light"];
  const taken = new Set(names.map((name) => known[name]));
  const free = series.map((_, place) => place).filter((place) => !taken.has(place));
  let next = 0;
  const rest = free.length ? free : [...series.keys()];
  const places = names.map((name) => known[name] ?? rest[next++ % rest.length]);
  return { colours: places.map((place) => series[place]), shapes: places.map((place) => themes.shapes[place]) };
}

// The models that no other beats with as little: the line in the picture.
function frontOf(rows, fact) {
  if (!fact.better) return [];
  const sorted = rows
    .filter((row) => row.scored === row.total)
    .sort((one, other) => compareValues(fact.value(one), fact.value(other)) || other.score - one.score);
  let best = -Infinity;
  return sorted.filter((row) => {
    const better = row.score > best;
    best = Math.max(best, row.score);
    return better;
  });
}

// Of the line, those that are so far below each other that their names have room: `share` of the range.
function apart(front, rows, share) {
  const scores = rows.map((row) => row.score);
  const gap = share * (Math.max(...scores) - Math.min(...scores));
  let last = Infinity;
  return [...front].reverse().filter((row) => {
    const far = last - row.score >= gap;
    if (far) last = row.score;
    return far;
  });
}
