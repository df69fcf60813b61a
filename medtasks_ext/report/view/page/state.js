// What is shown lives in the address: `#dataset=…&a=0&only=wrong&doc=…`. An address shows the same to everyone
// who has the page. Keys that stand at their default are left out.

const BITS = { right: 1, wrong: 2, unreadable: 4, cut: 8, empty: 16, disputed: 32, damaged: 64, waiting: 128 };
const PER_PAGE = 50;
//: From this difference on two graded scores differ, as a right and a wrong answer do.
const GRADES_DIFFER = 0.2;

let parameters = new URLSearchParams();

const option = (key, fallback = "") => parameters.get(key) ?? fallback;

function readAddress() {
  parameters = new URLSearchParams(location.hash.slice(1));
}

function addressWith(changes, from = parameters) {
  const next = new URLSearchParams(from);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(key);
    else next.set(key, value);
  }
  return `#${next}`;
}

// Go to another state. Steps from document to document leave no trail in the history.
function change(changes, { quietly = false } = {}) {
  const next = addressWith(changes);
  if (next === (location.hash || "#")) return;
  if (quietly) {
    history.replaceState(null, "", next);
    route();
  } else location.hash = next;
}

const datasetAddress = (id) =>
  data.live ? addressWith({ dataset: id }, new URLSearchParams()) : `${encodeURIComponent(id)}.html`;
const overviewAddress = () => (data.live ? "#" : "index.html");

// ------------------------------------------------------------------ the columns that are compared

function columnAt(head, key, fallback) {
  const place = Number(option(key, fallback));
  return Number.isInteger(place) && place >= 0 && place < head.columns.length ? place : null;
}

function chosenColumns(head) {
  const first = columnAt(head, "a", "0") ?? 0;
  const other =
    option("b") === "none" ? null : columnAt(head, "b", head.columns.length > 1 ? String(first ? 0 : 1) : "-1");
  return { first, other: other === first ? null : other };
}

const has = (column, place, bit) => column.flags[place] > 0 && (column.flags[place] & bit) > 0;

function flipped(head, first, other, place) {
  if (other === null) return false;
  const [one, two] = [head.columns[first], head.columns[other]];
  const scores = [one.scores[place], two.scores[place]];
  if (!scores.every(isNumber)) return false;
  if (head.graded || one.judged) return Math.abs(scores[0] - scores[1]) >= GRADES_DIFFER;
  return has(one, place, BITS.right) !== has(two, place, BITS.right);
}

const FILTERS = [
  { id: "", title: "All", key: "0" },
  { id: "wrong", title: "Wrong", key: "1", bit: BITS.wrong },
  { id: "unreadable", title: "Unreadable", key: "2", bit: BITS.unreadable },
  { id: "cut", title: "Cut off", key: "3", bit: BITS.cut },
  { id: "empty", title: "Empty", key: "4", bit: BITS.empty },
  { id: "flipped", title: "Flipped", key: "5" },
  { id: "disputed", title: "Judges disagree", key: "6", bit: BITS.disputed },
  { id: "right", title: "Right", key: "7", bit: BITS.right },
  { id: "damaged", title: "Damaged", key: "8", bit: BITS.damaged },
  { id: "waiting", title: "Not scored yet", key: "9", bit: BITS.waiting },
];

function fits(filter, head, { first, other }, place) {
  const column = head.columns[first];
  if (filter.id === "flipped") return flipped(head, first, other, place);
  if (column.flags[place] < 0) return false;
  return filter.bit ? has(column, place, filter.bit) : true;
}

// Places of the documents that fit everything in the address, in the order asked for.
function selection(head, { found, cells, clusters }) {
  const chosen = chosenColumns(head);
  const column = head.columns[chosen.first];
  const filter = FILTERS.find((item) => item.id === option("only")) ?? FILTERS[0];
  const cluster = clusters.indexOf(option("cluster"));
  const cell = option("cell");
  const searched = found && new Set(found);
  const places = head.documents
    .map((_, place) => place)
    .filter(
      (place) =>
        fits(filter, head, chosen, place) &&
        (cluster < 0 || column.clusters[place] === cluster) &&
        (!cell || !cells || cells[place] === Number(cell)) &&
        (!searched || searched.has(place)),
    );
  const other = chosen.other === null ? null : head.columns[chosen.other];
  const lowest = (place) => column.scores[place] ?? 2;
  const widest = (place) =>
    -Math.abs((column.scores[place] ?? 0) - (other?.scores[place] ?? column.scores[place] ?? 0));
  const rank = { lowest, widest }[option("sort")];
  return rank ? places.sort((one, two) => rank(one) - rank(two) || one - two) : places;
}
