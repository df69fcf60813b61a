// The page of a dataset: its head, and the part that is chosen.

const DATASET_PARTS = [
  ["", "Documents"],
  ["errors", "Error clusters"],
  ["confusion", "Confusion"],
];

let headOf = null; // the dataset that is shown, as it was last asked for
let shownPlaces = []; // documents of the selection
let shownPlace = null; // the one that is open

function datasetHead(head) {
  const facts = [
    head.suite,
    head.language,
    plural(head.documents.length, "document"),
    `${head.metric || "score"}`,
    `${head.access} data`,
  ];
  return [
    make(
      "h2",
      {},
      link(overviewAddress(), "Answers /", { className: "back" }),
      " ",
      head.name,
      head.sample ? sampleTag() : null,
    ),
    text("p", "facts-line", facts.join(" · ")),
    text("p", "about", head.summary),
    folded("How answers are scored", () => text("p", "note", head.rule), { className: "rule" }),
    head.complete
      ? null
      : text(
          "p",
          "note reading",
          `Reading on: ${head.columns.map((column) => `${count(column.read)}${column.n ? ` of ${count(column.n)}` : ""}`).join(", ")} documents so far.`,
        ),
    columnTable(head),
    partLinks(head),
  ];
}

function columnTable(head) {
  const named = [
    ["wrong", "Wrong"],
    ["unreadable", "Unreadable"],
    ["cut", "Cut off"],
    ["empty", "Empty"],
    ["disputed", "Judges disagree"],
  ].filter(([name]) => head.columns.some((column) => column.totals[name]));
  const rows = head.columns.map((column, place) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, column.label, column.sample ? sampleTag() : null),
      text(
        "td",
        "number score",
        column.score === null ? (column.state === "done" ? "no score" : "going on") : fixed(column.score),
      ),
      text("td", "number", count(column.read)),
      ...named.map(([name]) =>
        make(
          "td",
          { className: "number" },
          column.totals[name]
            ? link(
                addressWith({
                  a: String(place),
                  only: name,
                  part: null,
                  doc: null,
                  cluster: null,
                  cell: null,
                  q: null,
                }),
                count(column.totals[name]),
              )
            : text("span", "soft", "0"),
        ),
      ),
    ),
  );
  return make(
    "div",
    { className: "scroll", tabIndex: 0, role: "group", "aria-label": "Runs" },
    make(
      "table",
      { className: "columns-table" },
      make("caption", { textContent: "Runs, their scores, and how many answers went wrong how" }),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          ...["Answers of", "Score", "Documents", ...named.map(([, title]) => title)].map((name, index) =>
            make("th", { scope: "col", className: index ? "number" : "", textContent: name }),
          ),
        ),
      ),
      make("tbody", {}, ...rows),
    ),
  );
}

function partLinks(head) {
  const current = option("part");
  const shown = DATASET_PARTS.filter(([id]) => id !== "confusion" || SINGLE_LABELS.has(head.kind));
  return make(
    "nav",
    { className: "parts", "aria-label": "Parts of the dataset" },
    ...shown.map(([id, title]) =>
      make("a", {
        href: addressWith({ part: id, doc: null }),
        textContent: title,
        "aria-current": id === current ? "page" : null,
      }),
    ),
  );
}

const SINGLE_LABELS = new Set(["label", "label_word", "relation_label", "exact_letter", "option_letter"]);

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
  shownPlaces = selection(head, state);
  const asked = head.documents.indexOf(option("doc"));
  shownPlace = asked >= 0 ? asked : (shownPlaces[0] ?? null);
  const list = await documentList(head, chosen, shownPlaces, shownPlace);
  const detail = shownPlace === null ? [] : await documentDetail(head, chosen);
  if (option("doc") && asked < 0)
    detail.unshift(
      text("p", "fault", `There is no document ${option("doc")} here${near(option("doc"), head.documents)}.`),
    );
  return [
    filterBar(head, chosen, state),
    make(
      "div",
      { className: `panes${option("doc") ? " chosen" : ""}` },
      make("aside", { className: "pane-list", "aria-label": "Documents" }, list),
      make("article", { className: "pane-detail", "aria-label": "Document" }, ...detail.filter(Boolean)),
    ),
  ];
}

// What narrows the list and has to be asked for.
async function narrowing(head, chosen) {
  const dataset = head.id;
  const found = option("q") ? await ask("search", { dataset, q: option("q") }) : null;
  const matrices = option("cell") ? await ask("confusion", { dataset }) : [];
  const confusion = matrices[chosen.first] ?? null;
  return { found, confusion, cells: confusion?.cells ?? null, clusters: CLUSTER_NAMES };
}

async function documentDetail(head, chosen) {
  const key = head.documents[shownPlace];
  const at = shownPlaces.indexOf(shownPlace);
  const whole = option("whole") ? { whole: "1" } : {};
  let content;
  try {
    content = drawDocument(
      head,
      chosen,
      await ask("document", { dataset: head.id, document: key, ...whole }),
      Boolean(option("whole")),
    );
  } catch (error) {
    content = [text("p", "fault", error.message)];
  }
  const step = (by, title, shortcut) =>
    make("button", {
      type: "button",
      className: "small",
      textContent: title,
      "aria-keyshortcuts": shortcut,
      title: `Key ${shortcut}`,
      disabled: at + by < 0 || at + by >= shownPlaces.length,
      onclick: () => stepBy(by),
    });
  return [
    make(
      "div",
      { className: "detail-head" },
      make("a", { className: "to-list", href: addressWith({ doc: null }), textContent: "‹ all documents" }),
      make("h3", { id: "document", tabIndex: -1, textContent: `Document ${key}` }),
      text("span", "soft", at < 0 ? "not in the selection" : `${count(at + 1)} of ${count(shownPlaces.length)}`),
      step(-1, "‹ k", "k"),
      step(1, "j ›", "j"),
    ),
    ...content,
  ];
}

function goTo(place) {
  change({ doc: headOf.documents[place], whole: null }, { quietly: true });
}

function stepBy(by) {
  const at = shownPlaces.indexOf(shownPlace);
  const next = shownPlaces[Math.min(Math.max(at + by, 0), shownPlaces.length - 1)];
  if (next !== undefined) goTo(next);
}

// ` (did you mean …?)` for a name that begins like a known one.
function near(name, known) {
  const close = known.find((item) => item.toLowerCase().startsWith(name.toLowerCase().slice(0, 3)));
  return close ? ` (did you mean ${close}?)` : "";
}
