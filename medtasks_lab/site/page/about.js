// How to read, cite, download and submit.

const READING = [
  "A score is the primary metric of a task, from 0 to 1. A suite's score is the mean over its tasks by the rule of its paper.",
  "Published results are those that the suites' papers and their leaderboards print. Submitted results come from runs of medtasks; their scores were computed again from what each document contributes.",
  "Ranks are among results that were asked alike: same words, rows, examples, budget, decoding, jury and task version, as far as these can move a score. Results that were asked otherwise, or on a part of the tasks, rows or judgements, stand apart with what differs.",
  "A submission cannot prove that its answers came from the model that it names. Its heads of chains let anyone who has the run prove which answers these were.",
];

const LEVELS = [
  ["self-reported", "The arithmetic holds: scores follow from what documents contribute. Nobody else has seen an answer."],
  ["answers checked", "The final answers were read and scored again on pinned rows, by the code of this leaderboard, to the digit. Verdicts of judges stand as submitted, and such results have no rank."],
  ["confirmed by a second site", "A second site that has the rows says how far its own run, or its scoring of the same answers, agrees."],
  ["run again", "A second site has asked the model again, by the command that stands there."],
];

function drawAbout() {
  return [
    text("h2", "", "About and data"),
    titled("How to read", ...READING.map((line) => text("p", "prose", line))),
    titled(
      "How far a score is trusted",
      text("p", "prose", "A rank needs answers checked or more, and rows and words that are confirmed. What is less stands in a part of its own. Copies, scores far above the best published, and answers in the gold's own words have no rank before a person has looked."),
      make("dl", { className: "words" }, ...LEVELS.flatMap(([level, what]) => [text("dt", "", level), text("dd", "", what)])),
      text("p", "prose", "No check can tell these from honest work:"),
      make("ul", {}, ...site.undetected.map((words) => text("li", "", words))),
    ),
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
      text("p", "prose", "Then open a pull request with the folder. docs/safety.md says what leaves your machine: final answers to open data in a file of their own, no other text, and no id of a row."),
    ),
    site.left_out.length
      ? titled("Left out", ...faults(site.left_out))
      : null,
    site.unranked.length ? titled("Shown without a rank", ...faults(site.unranked)) : null,
  ];
}

const FEW = 12;

function faults(found) {
  const listed = (some) => make("ul", { className: "faults" }, ...some.map(([where, what]) => text("li", "", `${where}: ${what}`)));
  const more = found.slice(FEW);
  return [listed(found.slice(0, FEW)), more.length ? folded(`${count(more.length)} more`, () => listed(more)) : null];
}
