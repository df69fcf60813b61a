// The documents of a dataset: filters, search, and a list in which a document opens.

const PER_PAGE = 50;

function drawDocuments(head) {
  const chosen = chosenColumns(head);
  const places = selection(head, chosen);
  shownPlaces = places ?? [];
  const key = option("doc");
  const missing = key && !head.documents.includes(key);
  return [
    listControls(head, chosen),
    missing ? text("p", "fault", `There is no document ${key} here.`) : null,
    places ? documentList(head, chosen, places) : make("p", { className: "note", "aria-busy": "true" }, "Searching …"),
  ];
}

function listControls(head, chosen) {
  const differ = isGraded(head, head.columns[chosen.first]);
  const pills = FILTERS.flatMap(([id, title], key) => {
    const n = [...head.documents.keys()].filter((place) => fits(id, head, chosen, place)).length;
    const pressed = option("only") === id;
    if (!n && id && !pressed) return [];
    const pill = button("", () => change({ only: id, cell: null, doc: null, from: null }), {
      className: "pill",
      "aria-pressed": String(pressed),
      "aria-keyshortcuts": String(key),
      "data-key": `only=${id}`,
      title: `Key ${key}`,
    });
    const words = id === "flipped" && differ ? `Differ by ${GRADES_DIFFER}` : title;
    pill.append(text("span", "", words), text("span", "n", count(n)));
    return [pill];
  });
  const search = searchBox("find", "text of prompt, gold or answer", "Search documents", { "aria-keyshortcuts": "/", oninput: null });
  search.onchange = () => change({ find: search.value.trim() || null, doc: null, from: null });
  return make(
    "div",
    { className: "list-controls" },
    make("div", { className: "pill-row", role: "group", "aria-label": "Filter documents" }, ...pills),
    controls(search, ...columnChoosers(head, chosen), sorter(chosen), ...narrowings(head.columns[chosen.first])),
  );
}

function columnChoosers(head, { first, other }) {
  if (head.columns.length < 2) return [];
  const names = head.columns.map((column, place) => [String(place), column.label]);
  const others = [["none", "nobody"], ...names.filter((_, place) => place !== first)];
  return [
    selector("Answers of", "a", names, String(first)),
    selector("beside", "b", others, other === null ? "none" : String(other)),
  ];
}

function sorter({ other }) {
  const widest = other === null ? [] : [["widest", "largest difference first"]];
  const ways = [["", "in the file's order"], ["lowest", "lowest score first"], ...widest];
  return selector("Sorted", "sort", ways, option("sort"), { doc: null, from: null });
}

// What besides the pills narrows the list, with a way to drop it.
function narrowings({ confusion }) {
  const parts = option("cluster") ? [[`error: ${option("cluster")}`, "cluster"]] : [];
  const cell = option("cell") ? Number(option("cell")) : NaN;
  const n = confusion?.answers.length;
  const gold = confusion?.gold[Math.floor(cell / n)];
  if (gold !== undefined) parts.push([`gold ${gold}, answer ${confusion.answers[cell % n]}`, "cell"]);
  const drops = parts.map(([title, key]) =>
    button(`${title} ×`, () => change({ [key]: null, doc: null, from: null }), { "aria-label": `Drop: ${title}` }),
  );
  return parts.length ? [make("span", { className: "narrowed" }, ...drops)] : [];
}

// ------------------------------------------------------------------ the list itself

function documentList(head, chosen, places) {
  if (!places.length) return text("p", "empty-list", "No document fits all filters.");
  const open = head.documents.indexOf(option("doc"));
  const asked = places.includes(open) ? places.indexOf(open) : Number(option("from")) || 0;
  const page = Math.min(Math.floor(asked / PER_PAGE), Math.ceil(places.length / PER_PAGE) - 1);
  const here = places.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
  const shown = open >= 0 && !here.includes(open) ? [open, ...here] : here; // an address may lead beyond the filters
  const items = shown.map((place) => listItem(head, chosen, place, place === open));
  const list = make("ol", { className: "documents", start: page * PER_PAGE + 1 }, ...items);
  return make("div", { className: "list" }, pager(places, page), list, places.length > PER_PAGE ? pager(places, page) : null);
}

function pager(places, page) {
  const all = plural(places.length, "document");
  const pages = Math.ceil(places.length / PER_PAGE);
  if (pages < 2) return make("p", { className: "pager" }, text("span", "", all));
  const step = (to, title) =>
    button(title, () => change({ from: String(to * PER_PAGE), doc: null }), { disabled: to < 0 || to >= pages });
  const last = Math.min((page + 1) * PER_PAGE, places.length);
  const words = text("span", "", `${count(page * PER_PAGE + 1)}–${count(last)} of ${all}`);
  return make("p", { className: "pager" }, words, step(page - 1, "‹ before"), step(page + 1, "next ›"));
}

// A document in one row: what differs in its prompt, the reply, what was read in it beside the gold answer, the score.
function listItem(head, chosen, place, isOpen) {
  const key = head.documents[place];
  const columns = [chosen.first, chosen.other].filter(isGiven).map((column) => head.columns[column]);
  const several = columns.length > 1;
  const lines = columns.map((column) =>
    make(
      "span",
      { className: "item-answer" },
      several ? text("span", "spoken", column.label) : null,
      text("span", "item-reply", column.replies[place] || (column.flags[place] < 0 ? "not asked" : "(no reply)")),
      text("span", "item-read", `${head.golds[place] ?? "no gold"} ← ${readWords(column, place)}`),
      outcomeMark(head, column, place),
    ),
  );
  const properties = {
    href: answersAddress({ doc: isOpen ? null : key }),
    "aria-expanded": String(isOpen),
    "data-key": `doc ${key}`,
    className: "item",
  };
  const words = [text("strong", "", key), text("span", "item-input", head.prompts[place])];
  const answers = make("span", { className: "item-answers" }, ...lines);
  return make(
    "li",
    { className: isOpen ? "current" : "" },
    make("a", properties, ...words, answers),
    isOpen ? documentDetail(head, chosen, place) : null,
  );
}

function readWords(column, place) {
  if (has(column, place, FLAGS.waiting)) return "not scored yet";
  return column.answers[place] ?? (column.flags[place] < 0 ? NONE : "unreadable");
}

// What became of an answer: a word, not a colour alone.
function outcomeMark(head, column, place) {
  const [kind, word] = outcomeOf(head, column, place);
  return make("span", { className: `outcome-mark ${kind}`, title: column.label }, word);
}

// An answer that could not be read and yet has the whole score is right by the rule of its suite.
function outcomeOf(head, column, place) {
  const score = column.scores[place];
  const is = (flag) => has(column, place, FLAGS[flag]);
  if (column.flags[place] < 0) return ["none", "not asked"];
  if (is("damaged")) return ["bad", "damaged"];
  if (is("waiting")) return ["none", "not scored yet"];
  const fault = is("empty") ? "empty" : is("unreadable") ? "unreadable" : null;
  if (fault && is("right")) return ["part", `${fault}, counts as right by ${head.suite}’s rule`];
  if (fault) return ["bad", fault];
  if (!isNumber(score)) return ["none", "no score"];
  if (isGraded(head, column)) return ["part", fixed(score, 2)];
  return is("right") ? ["good", "right"] : score > 0 ? ["part", fixed(score, 2)] : ["bad", "wrong"];
}

function documentDetail(head, chosen, place) {
  const content = () => {
    const view = documentAt(head, place);
    return view ? drawDocument(head, chosen, view, place) : [make("p", { className: "note", "aria-busy": "true" }, "Reading …")];
  };
  try {
    const name = `Document ${head.documents[place]}`;
    return make("section", { className: "opened", "aria-label": name }, text("h3", "spoken", name), ...content());
  } catch (error) {
    return text("p", "fault", error.message);
  }
}

// ------------------------------------------------------------------ keyboard

function stepBy(by) {
  const open = shownPlaces.indexOf(headOf.documents.indexOf(option("doc")));
  const next = shownPlaces[Math.min(Math.max(open < 0 ? 0 : open + by, 0), shownPlaces.length - 1)];
  if (next === undefined) return;
  change({ doc: headOf.documents[next] });
  document.querySelector(".documents .current")?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || view !== "answers" || !headOf || option("part")) return;
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && typing) event.target.blur();
  else if (event.key === "Escape" && option("doc")) change({ doc: null });
  if (typing) return;
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("find")?.focus();
  }
  if (event.key === "j" || event.key === "k") stepBy(event.key === "j" ? 1 : -1);
  const { first, other } = chosenColumns(headOf);
  if (event.key === "s" && other !== null) change({ a: String(other), b: String(first) });
  const filter = /^\d$/.test(event.key) ? FILTERS[event.key] : null;
  if (filter) change({ only: filter[0], cell: null, doc: null, from: null });
});
