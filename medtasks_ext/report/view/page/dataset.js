// The page of a dataset: its head, and the part that is chosen.

const DATASET_PARTS = [["", "Documents"], ["errors", "Error clusters"], ["confusion", "Confusion"]];
const TOTALS = [
  ["wrong", "Wrong"],
  ["unreadable", "Unreadable"],
  ["cut", "Cut off"],
  ["empty", "Empty"],
  ["disputed", "Judges disagree"],
];
// What leads from a column to some of its documents starts from all of them.
const ALL_DOCUMENTS = { part: null, only: null, cluster: null, cell: null, doc: null };

let headOf = null; // the dataset that is shown, as it was last asked for
let shownPlaces = []; // documents of the selection
let shownPlace = null; // the one that is open

const columnName = ({ label, sample }) => make("span", {}, label, sample ? sampleTag() : null);

function datasetHead(head) {
  const read = head.columns.map((column) => `${count(column.read)}${column.n ? ` of ${count(column.n)}` : ""}`).join(", ");
  const documents = plural(head.documents.length, "document");
  const facts = [head.suite, head.language, documents, head.metric || "score", `${head.access} data`];
  const back = link(overviewAddress(), "Answers /", { className: "back" });
  return [
    make("h2", {}, back, " ", head.name, head.sample ? sampleTag() : null),
    text("p", "facts-line", facts.join(" · ")),
    text("p", "about", head.summary),
    folded("How answers are scored", () => note(head.rule), { className: "rule" }),
    head.complete ? null : text("p", "note reading", `Reading on: ${read} documents so far.`),
    columnTable(head),
    partLinks(head),
  ];
}

function columnTable(head) {
  const scoreWords = ({ score, state }) => (score === null ? (state === "done" ? "no score" : "going on") : fixed(score));
  const named = TOTALS.filter(([name]) => head.columns.some((column) => column.totals[name]));
  const totalOf = (name) => (column) => {
    const to = addressWith({ ...ALL_DOCUMENTS, a: String(head.columns.indexOf(column)), only: name, q: null });
    const n = column.totals[name];
    return n ? link(to, count(n)) : text("span", "soft", "0");
  };
  return table({
    className: "columns-table",
    caption: "Runs, their scores, and how many answers went wrong how",
    plain: true,
    rows: head.columns,
    columns: [
      { title: "Answers of", head: true, cell: columnName },
      { title: "Score", numeric: true, className: "score", cell: scoreWords },
      { title: "Documents", numeric: true, cell: ({ read }) => count(read) },
      ...named.map(([name, title]) => ({ title, numeric: true, cell: totalOf(name) })),
    ],
  });
}

function partLinks(head) {
  const shown = DATASET_PARTS.filter(([id]) => id !== "confusion" || head.single);
  const links = shown.map(([id, title]) =>
    link(addressWith({ part: id, doc: null }), title, { "aria-current": id === option("part") ? "page" : null }),
  );
  return make("nav", { className: "parts", "aria-label": "Parts of the dataset" }, ...links);
}

async function drawDataset(head) {
  headOf = head;
  const part = option("part");
  const dataset = head.id;
  if (part === "errors") return [...datasetHead(head), ...drawErrors(head, await ask("errors", { dataset }))];
  if (part === "confusion") return [...datasetHead(head), ...drawConfusion(head, await ask("confusion", { dataset }))];
  return [...datasetHead(head), ...(await drawDocuments(head))];
}

async function drawDocuments(head) {
  const chosen = chosenColumns(head);
  const state = await narrowing(head, chosen);
  shownPlaces = selection(head, chosen, state);
  const key = option("doc");
  const asked = head.documents.indexOf(key);
  shownPlace = asked >= 0 ? asked : (shownPlaces[0] ?? null);
  const list = await documentList(head, chosen, shownPlaces, shownPlace);
  const detail = shownPlace === null ? [] : await documentDetail(head, chosen);
  if (key && asked < 0) detail.unshift(text("p", "fault", `There is no document ${key} here.`));
  return [
    listControls(head, chosen, state),
    make(
      "div",
      { className: `panes${key ? " chosen" : ""}` },
      make("aside", { className: "pane-list", "aria-label": "Documents" }, list),
      make("article", { className: "pane-detail", "aria-label": "Document" }, ...detail),
    ),
  ];
}

// What narrows the list and has to be asked for.
async function narrowing({ id: dataset }, chosen) {
  const found = option("q") ? await ask("search", { dataset, q: option("q") }) : null;
  const matrices = option("cell") ? await ask("confusion", { dataset }) : [];
  return { found, confusion: matrices[chosen.first] ?? null };
}

async function documentDetail(head, chosen) {
  const key = head.documents[shownPlace];
  const at = shownPlaces.indexOf(shownPlace);
  const whole = option("whole") ? { whole: "1" } : {};
  const query = { dataset: head.id, document: key, ...whole };
  const content = await ask("document", query)
    .then((view) => drawDocument(head, chosen, view, Boolean(option("whole"))))
    .catch((error) => [text("p", "fault", error.message)]);
  const step = (by, title, shortcut) =>
    button(title, () => stepBy(by), {
      "aria-keyshortcuts": shortcut,
      title: `Key ${shortcut}`,
      disabled: at + by < 0 || at + by >= shownPlaces.length,
    });
  return [
    make(
      "div",
      { className: "detail-head" },
      link(addressWith({ doc: null }), "‹ all documents", { className: "to-list" }),
      make("h3", { id: "document", tabIndex: -1, textContent: `Document ${key}` }),
      text("span", "soft", at < 0 ? "not in the selection" : `${count(at + 1)} of ${count(shownPlaces.length)}`),
      step(-1, "‹ k", "k"),
      step(1, "j ›", "j"),
    ),
    ...content,
  ];
}

const goTo = (place) => change({ doc: headOf.documents[place], whole: null });

function stepBy(by) {
  const at = shownPlaces.indexOf(shownPlace);
  const next = shownPlaces[Math.min(Math.max(at + by, 0), shownPlaces.length - 1)];
  if (next !== undefined) goTo(next);
}
