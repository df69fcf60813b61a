// The answers to a dataset: what was asked, what was answered, and why that is not right. They lie in files beside the
// page, which are loaded when they are opened.

const FLAGS = { right: 1, wrong: 2, unreadable: 4, truncated: 8, empty: 16, damaged: 32, waiting: 64 };
// [id, title]; the place in this list is the key that chooses it
const FILTERS = [
  ["", "All"], ["wrong", "Wrong"], ["unreadable", "Unreadable"], ["truncated", "Truncated"], ["empty", "Empty"],
  ["flipped", "Flipped"], ["right", "Right"], ["damaged", "Damaged"], ["waiting", "Not scored yet"],
];
const ANSWER_PARTS = [["", "Documents"], ["errors", "Errors"], ["confusion", "Confusion"]];
const heldTasks = report.answers.held.map((id) => datasetAt.get(id)).filter(isGiven);

// ------------------------------------------------------------------ their files

const loaded = new Map(); // name of a file -> its data, null while it is loaded, or what is wrong

// The data of a file; null until it is there, when the page is drawn again.
function answersOf(name) {
  if (!loaded.has(name)) {
    loaded.set(name, null);
    load(name);
  }
  const found = loaded.get(name);
  if (found instanceof Error) throw found;
  return found;
}

function load(name) {
  const wrong = "The answers lie in files in the folder “answers” beside this page, and this one is missing or cannot be read.";
  const onerror = () => arrived(name, new Error(wrong));
  document.head.append(make("script", { src: `answers/${encodeURIComponent(name)}.js`, onerror }));
}

function arrived(name, data) {
  loaded.set(name, data);
  show();
}

// What a file calls. Its data are packed: gzip as base64.
function answered(name, packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  new Response(plain).json().then((data) => arrived(name, data), (error) => arrived(name, error));
}

const partOf = (head, place) => `${head.id}-${Math.floor(place / head.per_part)}`;
const documentAt = (head, place) => answersOf(partOf(head, place))?.[place % head.per_part];

// ------------------------------------------------------------------ one dataset

// What leads from a column to some of its documents starts from all of them.
const ALL_DOCUMENTS = { part: null, only: null, cluster: null, cell: null, doc: null, from: null };
const answersAddress = (changes) => address("answers", viewId, changes);

let headOf = null; // the dataset that is shown
let shownPlaces = []; // documents of the selection

function drawDataset() {
  headOf = null;
  try {
    const head = answersOf(viewId);
    if (!head) return [make("p", { className: "note", "aria-busy": "true" }, "Reading the answers …")];
    headOf = head;
    const part = option("part");
    const drawn = { errors: drawErrors, confusion: drawConfusion }[part] ?? drawDocuments;
    return [...datasetHead(head), ...drawn(head)];
  } catch (error) {
    return [text("p", "fault", error.message)];
  }
}

function datasetHead(head) {
  const { summary, id } = datasets[datasetAt.get(viewId)];
  return [
    text("p", "about", summary),
    folded("How answers are scored", () => note(head.rule), { className: "rule" }),
    columnTable(head),
    make("p", { className: "note" }, link(address("task", id), "Prompts, metrics and all scores")),
    partLinks(head),
  ];
}

function columnTable(head) {
  const named = FILTERS.filter(([id]) => id && id !== "right" && head.columns.some(({ totals }) => totals[id]));
  const totalOf = (id) => (column) => {
    const to = answersAddress({ ...ALL_DOCUMENTS, a: String(head.columns.indexOf(column)), only: id, find: null });
    return column.totals[id] ? link(to, count(column.totals[id])) : text("span", "soft", "0");
  };
  const readOf = ({ read, n }) => (isNumber(n) && n !== read ? `${count(read)} of ${count(n)}` : count(read));
  return table({
    className: "columns-table",
    caption: "Runs, their scores, and how many answers went wrong how",
    plain: true,
    rows: head.columns,
    columns: [
      { title: "Answers of", head: true, cell: columnName },
      numberColumn("score", "Score", { className: "score" }),
      { title: "Documents here", numeric: true, cell: readOf },
      ...named.map(([id, title]) => ({ title, numeric: true, cell: totalOf(id) })),
    ],
  });
}

const columnName = ({ label, sample }) => make("span", {}, label, sample ? sampleTag() : null);

function partLinks(head) {
  const shown = ANSWER_PARTS.filter(([id]) => id !== "confusion" || head.single);
  const links = shown.map(([id, title]) =>
    link(answersAddress({ ...ALL_DOCUMENTS, part: id }), title, { "aria-current": id === option("part") ? "page" : null }),
  );
  return make("nav", { className: "parts", "aria-label": "Parts of the dataset" }, ...links);
}

// ------------------------------------------------------------------ what is chosen of it

// The columns whose answers stand beside each other; `other` is null where it is one alone.
function chosenColumns(head) {
  const at = (key, fallback) => {
    const place = Number(option(key, fallback));
    return Number.isInteger(place) && place in head.columns ? place : null;
  };
  const first = at("a", "0") ?? 0;
  const other = at("b", head.columns.length > 1 ? String(first ? 0 : 1) : "none");
  return { first, other: other === first ? null : other };
}

// From this difference on two graded scores differ, as a right and a wrong answer do.
const GRADES_DIFFER = 0.2;

const has = (column, place, flag) => column.flags[place] > 0 && (column.flags[place] & flag) > 0;
const isGraded = (head, column) => head.graded || column.judged;

function flipped(head, first, other, place) {
  if (other === null) return false;
  const [one, two] = [head.columns[first], head.columns[other]];
  const scores = [one.scores[place], two.scores[place]];
  if (!scores.every(isNumber)) return false;
  if (isGraded(head, one)) return Math.abs(scores[0] - scores[1]) >= GRADES_DIFFER;
  return has(one, place, FLAGS.right) !== has(two, place, FLAGS.right);
}

function fits(id, head, { first, other }, place) {
  const column = head.columns[first];
  if (id === "flipped") return flipped(head, first, other, place);
  return column.flags[place] >= 0 && (!Object.hasOwn(FLAGS, id) || has(column, place, FLAGS[id]));
}

// Places of the documents that fit everything in the address, in the order asked for; null while files of them are loaded.
function selection(head, chosen) {
  const column = head.columns[chosen.first];
  const cluster = Object.keys(head.meaning).indexOf(option("cluster"));
  const cell = column.confusion && option("cell");
  const places = [...head.documents.keys()].filter(
    (place) =>
      fits(option("only"), head, chosen, place) &&
      (cluster < 0 || column.clusters[place] === cluster) &&
      (!cell || column.confusion.cells[place] === Number(cell)),
  );
  const score = (place) => column.scores[place];
  const beside = (place) => head.columns[chosen.other]?.scores[place] ?? score(place) ?? 0;
  const rank = {
    lowest: (place) => score(place) ?? 2,
    widest: (place) => -Math.abs((score(place) ?? 0) - beside(place)),
  }[option("sort")];
  return saying(head, rank ? places.sort((one, two) => rank(one) - rank(two) || one - two) : places);
}

// Those whose texts hold the words of the search; null while files of them are loaded.
function saying(head, places) {
  const words = option("find").toLowerCase();
  if (!words) return places;
  const says = (view) =>
    [view.key, view.target, ...view.responses.flatMap((item) => (item ? textsOf(item) : []))].some((found) =>
      found.toLowerCase().includes(words),
    );
  const views = places.map((place) => documentAt(head, place));
  return views.every(Boolean) ? places.filter((_, at) => says(views[at])) : null;
}

const textsOf = (response) => [...response.turns, ...response.stretches].map((part) => part.text);
