// What is chosen of a dataset stands in the address: `#dataset=…&a=0&only=wrong&doc=…`. An address shows the same to
// everyone who has the page.

const BITS = { right: 1, wrong: 2, unreadable: 4, cut: 8, empty: 16, disputed: 32, damaged: 64, waiting: 128 };
const PER_PAGE = 50;
// From this difference on two graded scores differ, as a right and a wrong answer do.
const GRADES_DIFFER = 0.2;

const addressWith = (changes) => address("", "", changes);
const datasetAddress = (id) => (data.live ? `#dataset=${encodeURIComponent(id)}` : `${encodeURIComponent(id)}.html`);
const overviewAddress = () => (data.live ? "#" : "index.html");

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
  { id: "wrong", title: "Wrong", key: "1" },
  { id: "unreadable", title: "Unreadable", key: "2" },
  { id: "cut", title: "Cut off", key: "3" },
  { id: "empty", title: "Empty", key: "4" },
  { id: "flipped", title: "Flipped", key: "5" },
  { id: "disputed", title: "Judges disagree", key: "6" },
  { id: "right", title: "Right", key: "7" },
  { id: "damaged", title: "Damaged", key: "8" },
  { id: "waiting", title: "Not scored yet", key: "9" },
];

function fits(id, head, { first, other }, place) {
  const column = head.columns[first];
  if (id === "flipped") return flipped(head, first, other, place);
  return column.flags[place] >= 0 && (!Object.hasOwn(BITS, id) || has(column, place, BITS[id]));
}

// Places of the documents that fit everything in the address, in the order asked for.
function selection(head, chosen, { found, confusion }) {
  const column = head.columns[chosen.first];
  const cluster = head.cluster_names.indexOf(option("cluster"));
  const cell = option("cell");
  const searched = found && new Set(found);
  const places = [...head.documents.keys()].filter(
    (place) =>
      fits(option("only"), head, chosen, place) &&
      (cluster < 0 || column.clusters[place] === cluster) &&
      (!cell || !confusion || confusion.cells[place] === Number(cell)) &&
      (!searched || searched.has(place)),
  );
  const score = (place) => column.scores[place];
  const beside = (place) => head.columns[chosen.other]?.scores[place] ?? score(place) ?? 0;
  const rank = {
    lowest: (place) => score(place) ?? 2,
    widest: (place) => -Math.abs((score(place) ?? 0) - beside(place)),
  }[option("sort")];
  return rank ? places.sort((one, two) => rank(one) - rank(two) || one - two) : places;
}
