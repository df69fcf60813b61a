// Models against a fact: pictures with the line of the best, groups of models, and how series look.

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

// {label, fact, rows: with a score, front: those of the line, groups: their order, groupOf(row), nameOf(row): as it stands
// in the picture or null, tip(row): lines, words: of the kind `scatter`, open(entry), values: node of the same figures}
function scatter({ label, fact, rows, front, groups: known, groupOf, nameOf, tip, words, open, values }) {
  const there = new Set(rows.map(groupOf));
  const groups = [...new Set(known)].filter((name) => there.has(name));
  return picture({
    kind: "scatter",
    label,
    rows: rows.map((row) => ({
      x: fact.value(row),
      value: row.score,
      low: row.low ?? null,
      high: row.high ?? null,
      group: groupOf(row),
      label: nameOf(row),
      entry: row.entry,
      tip: tip(row).filter(Boolean).join("\n"),
    })),
    words: {
      x_type: fact.type,
      x_scale: fact.scale,
      x_title: fact.title,
      x_format: fact.format,
      format: ".4~f",
      groups,
      ...looksOf(groups),
      front: front.map((row) => ({ x: fact.value(row), value: row.score })),
      ...words,
    },
    pick: ({ entry }) => {
      if (isNumber(entry)) open(entry);
    },
    values,
  });
}

// The same figures as a table: {rows, fact, caption, names: columns of the model, kindOf(row), score: column, more: columns}
function factTable({ rows, fact, caption, names, kindOf, score, more = [] }) {
  const said = (row) => fact.said(fact.value(row));
  const columns = [
    ...names,
    numberColumn("fact", fact.name, { sort: "asc", value: fact.value, cell: said }),
    wordColumn("group", "Kind", { value: (row) => kindOf(row) ?? null }),
    score,
    ...more,
  ];
  return table({ name: fact.key, caption, rows, sort: "-score", columns });
}

// Of groups of models how many there are, their median, and the best.
// {name, caption, heading, groups: [[title, rows with a score]], nameOf(row): node}
function groupsTable({ name, caption, heading, groups, nameOf }) {
  const rows = groups.filter(([, members]) => members.length).map(([title, members], place) => ({
    place,
    title,
    n: members.length,
    best: members.reduce((one, other) => (one.score >= other.score ? one : other)),
    middle: middleOf(members.map((row) => row.score)),
  }));
  const columns = [
    wordColumn("group", heading, { head: true, value: ({ place }) => place, cell: ({ title }) => title }),
    numberColumn("n", "Models", { format: count }),
    numberColumn("middle", "Median"),
    wordColumn("best", "Best", {
      sort: "desc",
      value: ({ best }) => best.score,
      cell: ({ best }) => make("span", {}, nameOf(best), ` ${fixed(best.score)}`),
    }),
  ];
  return table({ name, caption, rows, sort: "group", columns });
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
function apart(front, rows, share = 0.045) {
  const scores = rows.map((row) => row.score);
  const gap = share * (Math.max(...scores) - Math.min(...scores));
  let last = Infinity;
  return [...front].reverse().filter((row) => {
    const far = last - row.score >= gap;
    if (far) last = row.score;
    return far;
  });
}
