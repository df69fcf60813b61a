// How to read, cite, download and submit.

const READING = [
  "A score is the primary metric of a task, from 0 to 1. A suite's score is the mean over its tasks by the rule of its paper.",
  "Published results are those that the suites' papers and their leaderboards print. Submitted results come from runs of " +
    "medtasks or of lm_eval.",
  "Only comparable results are ranked together: same prompt, rows, examples, length of answers, decoding, judges and " +
    "version of the task, as far as these can change a score. Results under other conditions, or on a part of the tasks, " +
    "rows or judgements, stand apart, with what differs.",
];

const TRUST = [
  ["answers checked", "The final answers were read and scored again on pinned rows, by the code of this leaderboard, to the digit. Such a result can have a rank."],
  ["verdicts as submitted", "The same, and what judges said is the submitter's word: no rank."],
  ["self-reported", "Nobody else has seen an answer: the data is not open, or no answers were given. No rank."],
];

function drawAbout() {
  return [
    text("h2", "", "About and data"),
    titled("How to read", ...READING.map((line) => text("p", "prose", line))),
    titled(
      "How far a score is trusted",
      termList(TRUST),
      text("p", "prose", "No check can tell these from honest work:"),
      bullets(site.undetected),
    ),
    titled("Data", text("p", "prose", "medtasks report --published all -o OUT writes all of these figures as Parquet and CSV.")),
    titled(
      "How to cite",
      text("p", "prose", "Cite the suites whose tasks you quote, the harness, and medtasks."),
      bullets(site.references.map(([line, target]) => [line, " ", target ? link(target, target) : ""])),
      folded("BibTeX", () => text("pre", "", site.references.map(([, , bibtex]) => bibtex).join("\n\n"))),
    ),
    titled(
      "Submit results",
      text("pre", "", "medtasks card runs/MODEL --layout medtasks -o results/submissions/ORG/MODEL/DATE\nmedtasks rescore --check results/submissions/ORG/MODEL/DATE"),
      text("p", "prose", "Then open a pull request with the folder. docs/safety.md says what leaves your machine: final answers to open data in a file of their own, no other text, and no id of a row."),
    ),
    site.left_out.length ? titled("Left out", bullets(site.left_out.map(([where, what]) => `${where}: ${what}`), "faults")) : null,
  ];
}
