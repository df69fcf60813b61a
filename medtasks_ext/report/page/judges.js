// How far the judges of open answers agree.

const MEASURES = {
  kappa: ["Cohen’s kappa", "agreement beyond chance: 0 is chance, 1 is full agreement"],
  assessor_kappa: [
    "kappa of the assessors",
    "agreement of the two assessors beyond chance: 0 is chance, 1 is full agreement",
  ],
  judged: ["judged", "share of the answers that all judges judged"],
  disputed: [
    "disputed",
    "share of the answers on which the two assessors were far apart, so that a third judge decides",
  ],
  assessor_agreement: ["agreement of the assessors", "share of scoring points that both assessors marked alike"],
};

const measureTitle = (measure) => MEASURES[measure]?.[0] ?? measure.replace(/_/g, " ");

function drawJudges() {
  const tasks = new Set(selectedTasks());
  const kept = new Set(selectedEntries());
  const strategiesKept = new Set(selectedStrategies());
  const rows = report.judges
    .map((item) => ({ ...item, task: item.dataset }))
    .filter((item) => tasks.has(item.task) && kept.has(item.entry) && strategiesKept.has(item.strategy));
  if (!rows.length) return [nothing("No task of this selection was judged.")];
  const measures = [...new Set(rows.map((row) => row.measure))];
  return [
    table({
      name: "judges",
      caption: `Agreement of judges: ${selectionInWords()}`,
      rows,
      sort: "task",
      columns: [
        TASK_COLUMN,
        { ...MODEL_COLUMN, title: "Model judged", head: false },
        STRATEGY_COLUMN,
        { key: "judges", title: "Judges", value: (row) => row.judges.join(", "), cell: (row) => row.judges.join(", ") },
        { key: "measure", title: "Measure", value: (row) => row.measure, cell: (row) => measureTitle(row.measure) },
        { key: "value", title: "Value", numeric: true, value: (row) => row.value, cell: (row) => fixed(row.value) },
        {
          key: "missing",
          title: "Not judged",
          numeric: true,
          hint: "Answers without a judgement",
          value: (row) => row.missing,
          cell: (row) => count(row.missing),
        },
      ],
    }),
    make(
      "dl",
      { className: "words" },
      ...measures.flatMap((measure) => [
        make("dt", { textContent: measureTitle(measure) }),
        make("dd", { textContent: MEASURES[measure]?.[1] ?? "as docs/judges.md defines it" }),
      ]),
    ),
  ];
}
