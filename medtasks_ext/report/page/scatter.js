// Scores against what is known of the models: size, date, cost, readable answers.

const FACTS = [
  { ...SIZE, value: (row) => entries[row.entry].facts.size },
  { ...DATE, value: (row) => dayOf(entries[row.entry].facts.date) },
  {
    ...PRICE,
    key: "cost",
    name: "cost",
    title: "cost of the selected tasks in US dollars, logarithmic",
    value: (row) => (isNumber(row.usd) && row.usd > 0 ? row.usd : null),
    said: dollars,
  },
];
const KINDS_OF_MODEL = [
  ["domain", "domain", ({ entry }) => entries[entry].facts.domain],
  ["kind", "origin", ({ entry }) => (isOwn(entry) ? "own run" : "published")],
  ["access", "weights", ({ entry }) => entries[entry].facts.access],
  ["reasoning", "reasoning", ({ entry }) => REASONS[entries[entry].facts.reasoning]],
  ["organisation", "organisation", ({ entry }) => entries[entry].facts.maker],
];

// A mean over a part of the tasks is no point beside means over all.
const isWholeRow = (row) => row.scored === row.total || isOwn(row.entry);

function drawModels() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  const scored = rankedRows(rows).filter((row) => isNumber(row.score));
  const whole = scored.filter(isWholeRow);
  const about = factAndKind(whole, FACTS, KINDS_OF_MODEL);
  if (!about) return [nothing("No model with a score on all of these tasks has a known size or date."), ...drawLeaderboard()];
  const { fact, kind, controls: chosen } = about;
  const several = severalStrategies(scored);
  const shown = whole.filter((row) => fact.value(row) !== null);
  const rest = scored.filter((row) => !shown.includes(row));
  const missing = `${plural(rest.length, "row")} ${rest.length === 1 ? "is" : "are"} not in the picture`;
  const item = (row) => [modelLink(row.entry), several ? ` · ${strategies[row.strategy][1]}` : "", ` ${fixed(row.score)}`];
  const rules = fact.key === "cost" ? [...new Set(shown.map((row) => entries[row.entry].price).filter(Boolean))] : [];
  return [
    chosen,
    scatter({
      label: `Score against ${fact.name}: ${selectionInWords()}`,
      fact,
      rows: shown,
      kind,
      own: ["own run", (row) => isOwn(row.entry)],
      nameOf: (row) => nameInPicture(row, several),
      tip: (row) => [...tipLines(row), kind[2](row)],
      measure: "mean score, 95 % interval",
      width: roomOf(),
      open: (entry) => {
        location.hash = modelAddress(entry);
      },
      names: [MODEL_COLUMN, ...strategyColumns(shown)],
      figures: [numberColumn("score", "Score", { cell: scoreText }), COVERAGE_COLUMN],
    }),
    rest.length
      ? note(`${missing}: the ${fact.name} is not known, or published scores cover only a part of the tasks.`)
      : null,
    rest.length ? folded("Which ones", () => bullets(rest.map(item), "columns")) : null,
    rules.length ? bullets(rules, "rules") : null,
  ];
}
