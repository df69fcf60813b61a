// The documents of a dataset: filters, search, and the list.

function listControls(head, chosen, state) {
  const differ = head.graded || head.columns[chosen.first].judged;
  const pills = FILTERS.flatMap(({ id, title, key }) => {
    const n = [...head.documents.keys()].filter((place) => fits(id, head, chosen, place)).length;
    const pressed = option("only") === id;
    if (!n && id && !pressed) return [];
    const pill = button("", () => change({ only: id, cell: null, doc: null }), {
      className: "pill",
      "aria-pressed": String(pressed),
      "aria-keyshortcuts": key,
      "data-key": `only=${id}`,
      title: `Key ${key}`,
    });
    const words = id === "flipped" && differ ? `Differ by ${GRADES_DIFFER}` : title;
    pill.append(text("span", "", words), text("span", "n", count(n)));
    return [pill];
  });
  const search = searchBox("q", "text of prompt, gold or answer", "Search documents", { "aria-keyshortcuts": "/", oninput: null });
  search.onchange = () => change({ q: search.value.trim() || null, doc: null });
  return make(
    "div",
    { className: "list-controls" },
    make("div", { className: "pill-row", role: "group", "aria-label": "Filter documents" }, ...pills),
    controls(search, ...columnChoosers(head, chosen), sorter(chosen), ...narrowings(state)),
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
  return selector("Sorted", "sort", ways, option("sort"), { doc: null });
}

// What besides the pills narrows the list, with a way to drop it.
function narrowings({ confusion }) {
  const parts = option("cluster") ? [[`error: ${option("cluster")}`, "cluster"]] : [];
  const n = confusion?.answers.length;
  const gold = confusion?.gold[Math.floor(Number(option("cell")) / n)];
  if (gold !== undefined) parts.push([`gold ${gold}, answer ${confusion.answers[Number(option("cell")) % n]}`, "cell"]);
  const drops = parts.map(([title, key]) =>
    button(`${title} ×`, () => change({ [key]: null, doc: null }), { "aria-label": `Drop: ${title}` }),
  );
  return parts.length ? [make("span", { className: "narrowed" }, ...drops)] : [];
}

// ------------------------------------------------------------------ the list itself

async function documentList(head, chosen, places, current) {
  if (!places.length) return text("p", "empty-list", "No document fits all filters.");
  const page = Math.floor(Math.max(0, places.indexOf(current)) / PER_PAGE);
  const here = places.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
  const rows = await ask("rows", { dataset: head.id, places: here.join(",") });
  const items = here.map((place, index) => listItem(head, chosen, place, rows[index], place === current));
  const list = make("ol", { className: "documents", start: page * PER_PAGE + 1 }, ...items);
  const several = places.length > PER_PAGE;
  return make("div", { className: "list" }, pager(places, page), list, several ? pager(places, page) : null);
}

function pager(places, page) {
  const all = plural(places.length, "document");
  const pages = Math.ceil(places.length / PER_PAGE);
  if (pages < 2) return make("p", { className: "pager" }, text("span", "", all));
  const step = (to, title) => button(title, () => goTo(places[to * PER_PAGE]), { disabled: to < 0 || to >= pages });
  const last = Math.min((page + 1) * PER_PAGE, places.length);
  const words = text("span", "", `${count(page * PER_PAGE + 1)}–${count(last)} of ${all}`);
  return make("p", { className: "pager" }, words, step(page - 1, "‹ before"), step(page + 1, "next ›"));
}

function listItem(head, { first, other }, place, row, isCurrent) {
  const key = head.documents[place];
  const columns = [first, ...(other === null ? [] : [other])];
  const marks = columns.map((column) => outcomeMark(head, head.columns[column], place));
  const properties = { href: addressWith({ doc: key }), "aria-current": isCurrent ? "true" : null, "data-key": `doc ${key}` };
  return make(
    "li",
    { className: isCurrent ? "current" : "" },
    make(
      "a",
      properties,
      make("span", { className: "item-head" }, text("strong", "", key), ...marks),
      text("span", "item-answer", row ? listWords(row, columns) : "not in this file"),
      row?.input ? text("span", "item-input", row.input) : null,
    ),
  );
}

function listWords(row, columns) {
  const given = columns.map((column) => (row.answers[column] === null ? "–" : row.answers[column] || "unreadable"));
  return `${row.gold || "no gold"} ← ${[...new Set(given)].join(" | ")}`;
}

// What became of an answer: a word, not a colour alone.
function outcomeMark(head, column, place) {
  const [kind, word] = outcomeOf(head, column, place);
  return make("span", { className: `outcome-mark ${kind}`, title: column.label }, word);
}

function outcomeOf(head, column, place) {
  const flags = column.flags[place];
  const score = column.scores[place];
  if (flags < 0) return ["none", "not asked"];
  if (flags & BITS.damaged) return ["bad", "damaged"];
  if (flags & BITS.waiting) return ["none", "not scored yet"];
  if (flags & BITS.empty) return ["bad", "empty"];
  if (flags & BITS.unreadable) return ["bad", "unreadable"];
  if (!isNumber(score)) return ["none", "no score"];
  if (head.graded || column.judged) return ["part", fixed(score, 2)];
  return score >= 1 - 1e-9 ? ["good", "right"] : score > 0 ? ["part", fixed(score, 2)] : ["bad", "wrong"];
}
