// Scores against what is known of the models: size, date, cost, readable and long answers.

const FACTS = [
  { ...SIZE, value: (row) => entries[row.entry].facts.size },
  { ...DATE, value: (row) => dayOf(entries[row.entry].facts.date) },
  {
    key: "valid",
    name: "readable answers",
    title: "share of answers that could be read",
    type: "quantitative",
    scale: "linear",
    format: ".0%",
    value: (row) => row.valid ?? null,
    said: percent,
  },
];
const COST = {
  ...PRICE,
  key: "cost",
  name: "cost",
  title: "cost of the selected tasks in US dollars, logarithmic",
  value: (row) => (isNumber(row.usd) && row.usd > 0 ? row.usd : null),
  said: dollars,
};
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
  const n = ({ value }) => scored.filter((row) => value(row) !== null).length;
  const facts = FACTS.filter(n);
  if (!facts.length) return null;
  const usual = facts.find((fact) => n(fact) > scored.length / 2) ?? facts[0];
  const fact = facts.find(({ key }) => key === option("fact")) ?? usual;
  const kinds = KINDS_OF_MODEL.filter(([, , of]) => new Set(scored.map((row) => of(row.entry))).size > 1);
  const named = (wanted) => kinds.find(([key]) => key === wanted);
  const kind = named(option("colour")) ?? named("domain") ?? kinds[0] ?? KINDS_OF_MODEL[0];
  const chosen = controls(
    switcher("Against", "fact", facts.map(({ key, name }) => [key, name]), fact.key),
    kinds.length > 1 ? switcher("Colour", "colour", kinds, kind[0]) : null,
  );
  return { fact, kindOf: kind[2], controls: chosen };
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
  const rules = new Set(scored.filter(COST.value).map((row) => entries[row.entry].price).filter(Boolean));
  return [...scatterParts(scored, COST, KINDS_OF_MODEL[0][2]), rules.size ? bullets([...rules], "rules") : null];
}

// A mean over a part of the tasks is no point beside means over all.
const isWholeRow = (row) => row.scored === row.total || isOwn(row.entry);

function scatterParts(rows, fact, kindOf) {
  const several = severalStrategies(rows);
  const shown = rows.filter((row) => isWholeRow(row) && fact.value(row) !== null);
  if (!shown.length) return [nothing(`No model of this selection has a known ${fact.name}.`)];
  const rest = rows.filter((row) => !shown.includes(row));
  const drawn = scatterPicture(shown, fact, kindOf, several);
  if (!rest.length) return [drawn];
  const missing = `${plural(rest.length, "row")} ${rest.length === 1 ? "is" : "are"} not in the picture`;
  const item = (row) => [modelLink(row.entry), several ? ` · ${strategies[row.strategy][1]}` : "", ` ${fixed(row.score)}`];
  return [
    drawn,
    note(`${missing}: the ${fact.name} is not known, or published scores cover only a part of the tasks.`),
    folded("Which ones", () => bullets(rest.map(item), "columns"), { open: onPaper }),
  ];
}

const MOST_GROUPS = 7;

function scatterPicture(rows, fact, kindOf, several, width = roomOf()) {
  const bySize = grouped(rows.map(({ entry }) => kindOf(entry)).filter(Boolean), (kind) => kind);
  const common = bySize.sort((one, other) => other.length - one.length).slice(0, MOST_GROUPS).map(([kind]) => kind);
  const groupOf = ({ entry }) => {
    const kind = kindOf(entry);
    return isOwn(entry) ? "own run" : !kind ? UNKNOWN : common.includes(kind) ? kind : "other";
  };
  const front = fact.better ? frontOf(rows, fact) : [];
  const spelled = apart(front, rows);
  const isNamed = (row) => isOwn(row.entry) || (!isNarrow() && spelled.includes(row));
  const tip = (row) => [...tipLines(row), `${fact.name}: ${fact.said(fact.value(row))}`, kindOf(row.entry)];
  return scatter({
    label: `Score against ${fact.name}: ${selectionInWords()}`,
    fact,
    rows,
    front,
    groups: ["own run", ...common, "other", UNKNOWN],
    groupOf,
    nameOf: (row) => (isNamed(row) ? nameInPicture(row, several) : null),
    tip,
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
    values: () =>
      factTable({
        rows,
        fact,
        caption: `Score and ${fact.name}`,
        names: [MODEL_COLUMN, ...strategyColumns(rows)],
        kindOf: (row) => kindOf(row.entry),
        score: numberColumn("score", "Score", { cell: (row) => `${fixed(row.score)} ${interval(row)}` }),
        more: [COVERAGE_COLUMN],
      }),
  });
}
