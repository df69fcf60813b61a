// Scores against what is known of the models: size, date, cost, readable and long answers.

const FACTS = [
  { ...SIZE, value: (row) => entries[row.entry].facts.size },
  { ...DATE, value: (row) => dayOf(entries[row.entry].facts.date) },
  { key: "valid", title: "share of answers that could be read", name: "readable answers", type: "quantitative", scale: "linear", format: ".0%", value: (row) => row.valid ?? null, said: percent },
];
const COST = { key: "cost", title: "cost of the selected tasks in US dollars, logarithmic", name: "cost", type: "quantitative", scale: "log", format: "$~g", value: (row) => (isNumber(row.usd) && row.usd > 0 ? row.usd : null), said: dollars, better: "cheaper" };
const KINDS_OF_MODEL = [
  ["kind", "origin", (entry) => (isOwn(entry) ? "own run" : "published")],
  ["domain", "domain", (entry) => entries[entry].facts.domain],
  ["access", "weights", (entry) => entries[entry].facts.access],
  ["reasoning", "reasoning", (entry) => ({ yes: "reasoning", no: "no reasoning" })[entries[entry].facts.reasoning]],
  ["organisation", "organisation", (entry) => entries[entry].facts.maker],
];

// What is known of some rows with a score, and what stands in the address of it: {fact, kindOf, controls}; null
// where nothing is known.
function scatterChoice(scored) {
  const facts = FACTS.filter(({ value }) => scored.some((row) => value(row) !== null));
  if (!facts.length) return null;
  const known = ({ value }) => scored.filter((row) => value(row) !== null).length;
  const usual = facts.find((fact) => known(fact) > scored.length / 2) ?? facts[0];
  const fact = facts.find(({ key }) => key === option("fact")) ?? usual;
  const kinds = KINDS_OF_MODEL.filter(([, , of]) => new Set(scored.map((row) => of(row.entry))).size > 1);
  const kind = kinds.find(([key]) => key === option("colour")) ?? kinds.find(([key]) => key === "domain") ?? kinds[0] ?? KINDS_OF_MODEL[0];
  const controls = make(
    "div",
    { className: "controls" },
    switcher("Against", "fact", facts.map(({ key, name }) => [key, name]), fact.key),
    kinds.length > 1 ? switcher("Colour", "colour", kinds.map(([key, title]) => [key, title]), kind[0]) : null,
  );
  return { fact, kindOf: kind[2], controls };
}

function drawModels() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  const scored = rankedRows(rows).filter((row) => isNumber(row.score));
  const about = scatterChoice(scored);
  if (!about) return [nothing("Neither size nor date of these models is known.")];
  return [about.controls, ...scatterParts(scored, about.fact, about.kindOf)];
}

function drawCost() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  const scored = rankedRows(rows).filter((row) => isNumber(row.score));
  const rules = [...new Set(scored.filter((row) => COST.value(row)).map((row) => entries[row.entry].price).filter(Boolean))];
  return [
    ...scatterParts(scored, COST, KINDS_OF_MODEL[0][2]),
    rules.length ? make("ul", { className: "rules" }, ...rules.map((rule) => make("li", { textContent: rule }))) : null,
  ];
}

// A mean over a part of the tasks is no point beside means over all.
const isWholeRow = (row) => row.scored === row.total || isOwn(row.entry);

function scatterParts(rows, fact, kindOf) {
  const several = severalStrategies(rows);
  const known = rows.filter((row) => isWholeRow(row) && fact.value(row) !== null);
  const rest = rows.filter((row) => !known.includes(row));
  return [
    known.length ? scatterPicture(known, fact, kindOf, several) : nothing(`No model of this selection has a known ${fact.name}.`),
    known.length && rest.length
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

function scatterPicture(rows, fact, kindOf, several, width = roomOf()) {
  const tally = new Map();
  for (const { entry } of rows) if (kindOf(entry)) tally.set(kindOf(entry), (tally.get(kindOf(entry)) ?? 0) + 1);
  const common = [...tally].sort((one, other) => other[1] - one[1]).slice(0, MOST_GROUPS).map(([name]) => name);
  const groupOf = ({ entry }) => (isOwn(entry) ? "own run" : !kindOf(entry) ? UNKNOWN : common.includes(kindOf(entry)) ? kindOf(entry) : "other");
  const groups = [...new Set(["own run", ...common, "other", UNKNOWN])].filter((name) => rows.some((row) => groupOf(row) === name));
  const front = fact.better ? frontOf(rows, fact) : [];
  const spelled = apart(front, rows);
  const named = (row) => isOwn(row.entry) || (!isNarrow() && spelled.includes(row));
  return scatter({
    label: `Score against ${fact.name}: ${selectionInWords()}`,
    fact,
    points: rows.map((row) => ({
      x: fact.value(row),
      value: row.score,
      low: row.low ?? null,
      high: row.high ?? null,
      group: groupOf(row),
      label: named(row) ? nameInPicture(row, several) : null,
      entry: row.entry,
      tip: [...tipLines(row), `${fact.name}: ${fact.said(fact.value(row))}`, kindOf(row.entry)].filter(Boolean).join("\n"),
    })),
    front,
    groups,
    words: {
      width,
      tall: Math.max(300, Math.min(500, Math.round(width * 0.5))),
      x_ticks: isNarrow() ? 4 : 7,
      measure: "mean score, 95 % interval",
      legend: { title: null, columns: isNarrow() ? 2 : 0 },
    },
    open: (entry) => {
      location.hash = modelAddress(entry);
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
