// How far the judges of open answers agree.

const MEASURES = {
  kappa: ["Cohen’s kappa", "agreement beyond chance: 0 is chance, 1 is full agreement"],
  assessor_kappa: ["kappa of the assessors", "agreement of the two assessors beyond chance: 0 is chance, 1 is full agreement"],
  judged: ["judged", "share of the answers that all judges judged"],
  disputed: ["disputed", "share of the answers on which the two assessors were far apart, so that a third judge decides"],
  assessor_agreement: ["agreement of the assessors", "share of scoring points that both assessors marked alike"],
};

const measureTitle = (measure) => MEASURES[measure]?.[0] ?? measure.replace(/_/g, " ");

function drawJudges() {
  const rows = ofSelection(report.judges).map((item) => ({ ...item, task: item.dataset }));
  if (!rows.length) return [nothing("No task of this selection was judged.")];
  const meaning = (measure) => MEASURES[measure]?.[1] ?? "as docs/judges.md defines it";
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
        wordColumn("judges", "Judges", { value: (row) => row.judges.join(", ") }),
        wordColumn("measure", "Measure", { cell: (row) => measureTitle(row.measure) }),
        numberColumn("value", "Value"),
        numberColumn("missing", "Not judged", { hint: "Answers without a judgement", format: count }),
      ],
    }),
    termList([...new Set(rows.map((row) => row.measure))].map((measure) => [measureTitle(measure), meaning(measure)])),
  ];
}
