// How to read, cite, download and submit.

const READING = [
  "A score is the primary metric of a task, from 0 to 1. A suite's score is the mean over its tasks by the rule of its paper.",
  "Published results are those that the suites' papers and their leaderboards print. Submitted results come from runs of medtasks; their scores were computed again from what each document contributes.",
  "Only comparable results are ranked together: same prompt, rows, examples, length of answers, decoding, judges and version of the task, as far as these can change a score. Results under other conditions, or on a part of the tasks, rows or judgements, stand apart, with what differs.",
  "A submission cannot prove that its answers came from the model that it names. Its hashes let anyone who has the run prove which answers these were.",
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
    heldTable(),
    site.example ? titled("How a score comes about", steps_(site.example)) : null,
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

// What stands here, suite by suite.
function heldTable() {
  const nameOf = ({ best: [best] }) => (best ? make("span", {}, link(`${site.home}models/${best[1]}`, best[0]), ` ${score(best[2])}`) : NONE);
  const number = (key, title) => ({ key, title, numeric: true, value: (row) => row[key], cell: (row) => count(row[key]) });
  return table({
    name: "held",
    caption: "Suites and their results",
    rows: site.held,
    sort: "-published",
    columns: [
      { key: "suite", title: "Suite", head: true, value: ({ title }) => title, cell: ({ title, page }) => link(`${site.home}${page}`, title) },
      number("tasks", "Tasks"),
      number("published", "Published"),
      number("submitted", "Submitted"),
      { key: "best", title: "Best published, zero-shot", value: ({ best: [best] }) => best?.[2] ?? null, sort: "desc", cell: nameOf },
    ],
  });
}

// A score on its way: one document, its dataset, its suite, the table; with figures of this site.
function steps_({ dataset, prompt, gold, model, suite }) {
  const [id, name, n, one] = dataset;
  const step = (title, ...content) => make("li", {}, text("h4", "", title), ...content);
  return make(
    "ol",
    { className: "steps" },
    step("A question", text("p", "quoted", prompt), note(`A document of ${name}, in our own words.`)),
    step("An answer is read", text("p", "quoted", gold), note("The model’s reply is read by the suite’s own rule, and compared with the gold answer.")),
    step("A dataset", make("p", {}, scoreBar(one, null), make("b", {}, score(one))), note(`${model[0]}: the score over ${plural(n, "document")} of `), link(`${site.home}datasets/${id}.html`, name)),
    step("A suite", make("p", {}, scoreBar(suite.score, suite.interval), make("b", {}, score(suite.score)), ` ${ends(suite.interval).replace("paper’s own: ", "")}`), note(`The mean over ${plural(suite.tasks, "task")} of ${suite.title}, with its 95 % interval.`)),
    step("A rank", make("p", {}, make("b", {}, `${suite.rank[0]} of ${suite.rank[1]}`)), note("Among comparable results alone. "), link(`${site.home}models/${model[1]}`, model[0])),
  );
}

const FEW = 12;

function faults(found) {
  const listed = (some) => make("ul", { className: "faults" }, ...some.map(([where, what]) => text("li", "", `${where}: ${what}`)));
  const more = found.slice(FEW);
  return [listed(found.slice(0, FEW)), more.length ? folded(`${count(more.length)} more`, () => listed(more)) : null];
}
