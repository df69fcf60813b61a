// Scores against what is known of the models: size, date, cost, readable and long answers.

const FACTS = [
  { key: "size", title: "parameters in billions, logarithmic", name: "size", type: "quantitative", scale: "log", format: "~g", value: (row) => Number(entries[row.entry].details.parameters_b) || null, said: (value) => `${value} B`, low: true },
  { key: "date", title: "release date", name: "release date", type: "temporal", scale: "time", format: "%b %Y", value: (row) => dayOf(entries[row.entry].details.release_date), said: (value) => value, low: true },
  { key: "valid", title: "share of answers that could be read", name: "readable answers", type: "quantitative", scale: "linear", format: ".0%", value: (row) => row.valid ?? null, said: percent },
];
const COST = { key: "cost", title: "cost of the selected tasks in US dollars, logarithmic", name: "cost", type: "quantitative", scale: "log", format: "$~g", value: (row) => (isNumber(row.usd) && row.usd > 0 ? row.usd : null), said: dollars, low: true };
const KINDS_OF_MODEL = [
  ["kind", "origin", (entry) => (isOwn(entry) ? "own run" : "published")],
  ["domain", "domain", (entry) => entries[entry].details.domain],
  ["access", "access", (entry) => entries[entry].details.access],
  ["reasoning", "reasoning", (entry) => ({ yes: "reasoning", no: "no reasoning" })[entries[entry].details.reasoning]],
  ["organisation", "organisation", (entry) => entries[entry].details.organisation ?? entries[entry].details.creator],
];

const dayOf = (words) => (/^\d{4}-\d\d-\d\d$/.test(words ?? "") ? words : null);

function drawModels() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  rankedRows(rows);
  const scored = rows.filter((row) => isNumber(row.score));
  const facts = FACTS.filter(({ value }) => scored.some((row) => value(row) !== null));
  if (!facts.length) return [note("Neither size nor date of these models is known.")];
  const fact = facts.find(({ key }) => key === option("fact")) ?? facts[0];
  const kinds = KINDS_OF_MODEL.filter(([, , of]) => scored.some((row) => of(row.entry)));
  const kind = kinds.find(([key]) => key === option("colour")) ?? kinds.find(([key]) => key === "domain") ?? kinds[0];
  return [
    make(
      "div",
      { className: "controls" },
      switcher("Against", "fact", facts.map(({ key, name }) => [key, name]), fact.key),
      switcher("Colour", "colour", kinds.map(([key, title]) => [key, title]), kind[0]),
    ),
    ...scatterParts(scored, fact, kind[2]),
  ];
}

function drawCost() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  rankedRows(rows);
  const scored = rows.filter((row) => isNumber(row.score));
  const rules = [...new Set(scored.filter((row) => COST.value(row)).map((row) => entries[row.entry].price).filter(Boolean))];
  return [
    ...scatterParts(scored, COST, KINDS_OF_MODEL[0][2]),
    rules.length ? make("ul", { className: "rules" }, ...rules.map((rule) => make("li", { textContent: rule }))) : null,
  ];
}

function scatterParts(rows, fact, kindOf) {
  const several = severalStrategies(rows);
  // a mean over a part of the tasks is no point beside means over all
  const whole = rows.filter((row) => row.scored === row.total || isOwn(row.entry));
  const known = whole.filter((row) => fact.value(row) !== null);
  const rest = rows.filter((row) => !known.includes(row));
  return [
    known.length ? scatterPicture(known, fact, kindOf, several) : note(`No model of this selection has a known ${fact.name}.`),
    rest.length
      ? make(
          "div",
          {},
          note(
            `${plural(rest.length, "row")} ${rest.length === 1 ? "is" : "are"} not in the picture: the ${fact.name} is not known, or published scores cover a part of the tasks alone.`,
          ),
          folded(
            "Which ones",
            () =>
              make(
                "ul",
                { className: "columns" },
                ...rest.map((row) =>
                  make("li", {}, modelLink(row.entry), several ? ` · ${strategies[row.strategy][1]}` : "", ` ${fixed(row.score)}`),
                ),
              ),
            { open: onPaper },
          ),
        )
      : null,
  ];
}

const MOST_GROUPS = 7;

function scatterPicture(rows, fact, kindOf, several) {
  const tally = new Map();
  for (const { entry } of rows) if (kindOf(entry)) tally.set(kindOf(entry), (tally.get(kindOf(entry)) ?? 0) + 1);
  const common = [...tally].sort((one, other) => other[1] - one[1]).slice(0, MOST_GROUPS).map(([name]) => name);
  const own = rows.some((row) => isOwn(row.entry));
  const groupOf = (row) => (isOwn(row.entry) ? "own run" : common.includes(kindOf(row.entry)) ? kindOf(row.entry) : "other");
  const groups = [...new Set(["own run", ...common, "other"])].filter((name) => rows.some((row) => groupOf(row) === name));
  const front = fact.low ? frontOf(rows, fact) : [];
  const spelled = apart(front, rows);
  const named = (row) => isOwn(row.entry) || (!isNarrow() && spelled.includes(row));
  const label = `Score against ${fact.name}: ${selectionInWords()}`;
  const width = roomOf();
  return picture({
    kind: "scatter",
    label,
    rows: rows.map((row) => ({
      x: fact.value(row),
      value: row.score,
      low: row.low ?? null,
      high: row.high ?? null,
      group: groupOf(row),
      label: named(row) ? nameInPicture(row, several) : null,
      entry: row.entry,
      tip: [...tipLines(row), `${fact.name}: ${fact.said(fact.value(row))}`, kindOf(row.entry)].filter(Boolean).join("\n"),
    })),
    words: {
      width,
      tall: Math.max(300, Math.min(500, Math.round(width * 0.5))),
      x_type: fact.type,
      x_scale: fact.scale,
      x_title: fact.title,
      x_format: fact.format,
      x_ticks: isNarrow() ? 4 : 7,
      measure: "mean score, 95 % interval",
      format: ".4~f",
      groups,
      ...looksOf(groups),
      legend: { title: null, columns: isNarrow() ? 2 : 0 },
      front: front.map((row) => ({ x: fact.value(row), value: row.score })),
    },
    pick: ({ entry }) => {
      if (isNumber(entry)) location.hash = modelAddress(entry);
    },
    values: () => factTable(rows, fact, kindOf),
  });
}

function factTable(rows, fact, kindOf) {
  return table({
    name: fact.key,
    caption: `Score and ${fact.name}`,
    rows,
    sort: "-score",
    columns: [
      MODEL_COLUMN,
      ...strategyColumns(rows),
      { key: "fact", title: fact.name, numeric: true, sort: "asc", value: fact.value, cell: (row) => fact.said(fact.value(row)) },
      { key: "group", title: "Kind", value: (row) => kindOf(row.entry) ?? null, cell: (row) => kindOf(row.entry) ?? NONE },
      { key: "score", title: "Score", numeric: true, value: (row) => row.score, cell: (row) => `${fixed(row.score)} ${interval(row)}` },
      COVERAGE_COLUMN,
    ],
  });
}
