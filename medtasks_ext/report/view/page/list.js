// The documents of a dataset: filters, search, and the list.

function filterBar(head, chosen, state) {
  const counts = FILTERS.map((filter) => head.documents.filter((_, place) => fits(filter, head, chosen, place)).length);
  const pills = FILTERS.flatMap((filter, index) => {
    const pressed = option("only") === filter.id;
    if (!counts[index] && filter.id && !pressed) return [];
    const title =
      filter.id === "flipped" && (head.graded || head.columns[chosen.first].judged)
        ? `Differ by ${GRADES_DIFFER}`
        : filter.title;
    return [
      make(
        "button",
        {
          type: "button",
          className: "pill",
          "aria-pressed": String(pressed),
          "aria-keyshortcuts": filter.key,
          "data-key": `only=${filter.id}`,
          title: `Key ${filter.key}`,
          onclick: () => change({ only: filter.id, cell: null, doc: null }),
        },
        text("span", "", title),
        text("span", "n", count(counts[index])),
      ),
    ];
  });
  const search = make("input", {
    type: "search",
    id: "search",
    "data-key": "search",
    value: option("q"),
    placeholder: "text of prompt, gold or answer",
    "aria-label": "Search documents",
    "aria-keyshortcuts": "/",
    onchange: () => change({ q: search.value.trim(), doc: null }),
  });
  return make(
    "div",
    { className: "list-controls" },
    make("div", { className: "pill-row", role: "group", "aria-label": "Filter documents" }, ...pills),
    make(
      "div",
      { className: "controls" },
      search,
      ...columnChoosers(head, chosen),
      sorter(head, chosen),
      chosenOnly(head, state),
    ),
  );
}

function columnChoosers(head, { first, other }) {
  if (head.columns.length < 2) return [];
  const names = head.columns.map((column, place) => [String(place), column.label]);
  const select = (label, key, options, current) => {
    const box = make("select", {
      "data-key": `select ${key}`,
      onchange: () => change({ [key]: box.value }),
    });
    for (const [value, title] of options)
      box.append(make("option", { value, textContent: title, selected: value === current }));
    return make("label", { className: "select" }, text("span", "switch-label", label), box);
  };
  return [
    select("Answers of", "a", names, String(first)),
    select(
      "beside",
      "b",
      [["none", "nobody"], ...names.filter(([value]) => value !== String(first))],
      other === null ? "none" : String(other),
    ),
  ];
}

function sorter(head, { other }) {
  const ways = [
    ["", "in the file's order"],
    ["lowest", "lowest score first"],
    ...(other === null ? [] : [["widest", "largest difference first"]]),
  ];
  const box = make("select", {
    "data-key": "select sort",
    onchange: () => change({ sort: box.value, doc: null }),
  });
  for (const [value, title] of ways)
    box.append(make("option", { value, textContent: title, selected: value === option("sort") }));
  return make("label", { className: "select" }, text("span", "switch-label", "Sorted"), box);
}

// What besides the pills narrows the list, with a way to drop it.
function chosenOnly(head, { confusion }) {
  const parts = [];
  if (option("cluster")) parts.push([`error: ${option("cluster")}`, "cluster"]);
  if (option("cell") && confusion) {
    const row = Math.floor(Number(option("cell")) / confusion.answers.length);
    const gold = confusion.gold[row];
    const given = confusion.answers[Number(option("cell")) % confusion.answers.length];
    if (gold !== undefined) parts.push([`gold ${gold}, answer ${given}`, "cell"]);
  }
  return parts.length
    ? make(
        "span",
        { className: "narrowed" },
        ...parts.map(([title, key]) =>
          make("button", {
            type: "button",
            className: "small",
            textContent: `${title} ×`,
            "aria-label": `Drop: ${title}`,
            onclick: () => change({ [key]: null, doc: null }),
          }),
        ),
      )
    : null;
}

// ------------------------------------------------------------------ the list itself

async function documentList(head, chosen, places, current) {
  if (!places.length) return text("p", "empty-list", "No document fits all filters.");
  const at = Math.max(0, places.indexOf(current));
  const page = Math.floor(at / PER_PAGE);
  const here = places.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
  const rows = await ask("rows", { dataset: head.id, places: here.join(",") });
  const list = make("ol", { className: "documents", start: page * PER_PAGE + 1 });
  here.forEach((place, index) => list.append(listItem(head, chosen, place, rows[index], place === current)));
  const pages = Math.ceil(places.length / PER_PAGE);
  return make(
    "div",
    { className: "list" },
    pager(places, page, pages),
    list,
    pages > 1 ? pager(places, page, pages) : null,
  );
}

function pager(places, page, pages) {
  const step = (to, title) =>
    make("button", {
      type: "button",
      className: "small",
      textContent: title,
      disabled: to < 0 || to >= pages,
      onclick: () => goTo(places[to * PER_PAGE]),
    });
  const last = Math.min((page + 1) * PER_PAGE, places.length);
  const words =
    pages > 1
      ? `${count(page * PER_PAGE + 1)}–${count(last)} of ${plural(places.length, "document")}`
      : plural(places.length, "document");
  return make(
    "p",
    { className: "pager" },
    text("span", "", words),
    ...(pages > 1 ? [step(page - 1, "‹ before"), step(page + 1, "next ›")] : []),
  );
}

function listItem(head, { first, other }, place, row, isCurrent) {
  const key = head.documents[place];
  const columns = [first, ...(other === null ? [] : [other])];
  return make(
    "li",
    { className: isCurrent ? "current" : "" },
    make(
      "a",
      { href: addressWith({ doc: key }), "aria-current": isCurrent ? "true" : null, "data-key": `doc ${key}` },
      make(
        "span",
        { className: "item-head" },
        text("strong", "", key),
        ...columns.map((column) => outcomeMark(head, head.columns[column], place)),
      ),
      row ? text("span", "item-answer", listWords(row, columns)) : text("span", "item-answer", "not in this file"),
      row?.input ? text("span", "item-input", row.input) : null,
    ),
  );
}

function listWords(row, columns) {
  const given = columns.map((column) => (row.answers[column] === null ? "–" : row.answers[column] || "unreadable"));
  const same = given.every((answer) => answer === given[0]);
  return `${row.gold || "no gold"} ← ${same ? given[0] : given.join(" | ")}`;
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
