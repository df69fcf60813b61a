// How to read, cite, download and submit.

const READING = [
  "A score is the primary metric of a task, from 0 to 1. A suite's score is the mean over its tasks by the rule of its paper.",
  "Published results are those that the suites' papers and their leaderboards print. Submitted results come from runs of medtasks; their scores were computed again from what each document contributes.",
  "Ranks are among results that were asked alike: same words, rows, examples, budget, decoding, jury and task version, as far as these can move a score. Results that were asked otherwise, or on a part of the tasks, rows or judgements, stand apart with what differs.",
  "A submission cannot prove that its answers came from the model that it names. Its heads of chains let anyone who has the run prove which answers these were.",
];

function drawAbout() {
  return [
    text("h2", "", "About and data"),
    titled("How to read", ...READING.map((line) => text("p", "prose", line))),
    titled(
      "Means of suites",
      make("dl", { className: "words" }, ...site.rules.flatMap(([title, rule]) => [text("dt", "", title), text("dd", "", rule)])),
    ),
    titled(
      "Data",
      make("ul", {}, ...site.tables.map(([target, what]) => make("li", {}, link(target, target), `: ${what}`))),
    ),
    titled(
      "How to cite",
      text("p", "prose", "Cite the suites whose tasks you quote, the harness, and medtasks."),
      make("ul", {}, ...site.references.map(([line, target]) => make("li", {}, line, " ", target ? link(target, target) : ""))),
      folded("BibTeX", () => text("pre", "", site.references.map(([, , bibtex]) => bibtex).join("\n\n"))),
    ),
    titled(
      "Submit results",
      text("pre", "", "medtasks submit runs/MODEL -o results/submissions/ORG/MODEL/DATE\nmedtasks submit --check results/submissions/ORG/MODEL/DATE"),
      text("p", "prose", "Then open a pull request with the folder. docs/submitting.md says what leaves your machine: no text, and no id of a row."),
    ),
    site.left_out.length
      ? titled("Left out", make("ul", { className: "faults" }, ...site.left_out.map(([where, what]) => text("li", "", `${where}: ${what}`))))
      : null,
  ];
}
