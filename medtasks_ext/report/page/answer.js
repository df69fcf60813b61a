// One document: prompt, answers, readings, marked text, judges.

function drawDocument(head, { first, other }, view, place) {
  const columns = other === null ? [first] : [first, other];
  const prompts = columns.filter((column) => view.responses[column]?.turns.length);
  const turns = new Set(prompts.map((column) => JSON.stringify(view.responses[column].turns)));
  const named = (column) => (turns.size > 1 ? `Prompt to ${head.columns[column].label}` : "Prompt");
  const gold = view.target ? [text("h4", "", "Gold answer"), textBox(view.target, "Gold answer")] : null;
  return [
    ...prompts.slice(0, turns.size).map((column) => promptOf(view.responses[column], named(column))),
    gold && make("section", { className: "labelled" }, ...gold),
    make(
      "div",
      { className: columns.length > 1 ? "two answers" : "answers" },
      ...columns.map((column) => answerOf(head, head.columns[column], view.responses[column], place)),
    ),
  ];
}

// A text of any length in a box that scrolls, for the keyboard, too.
const textBox = (content, label, className = "") =>
  make("div", { className: `text ${className}`, tabIndex: 0, role: "group", "aria-label": label }, ...[content].flat());

// The turns of a prompt. A system turn is alike in all documents, so it is folded where others follow.
function promptOf({ turns, settings }, title) {
  const said = Object.entries(settings).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  const roleName = ({ role }) => (role === "text" ? "as text" : role);
  const turnBox = (turn) => textBox(turn.text, `Turn of ${roleName(turn)}`);
  const drawn = (turn) =>
    turn.role === "system" && turns.length > 1
      ? folded(`System, ${count(turn.length)} characters`, () => turnBox(turn), { className: "turn system" })
      : make("div", { className: `turn ${turn.role}` }, text("h4", "role", roleName(turn)), turnBox(turn));
  return folded(
    `${title}: ${plural(turns.length, "turn")}, ${count(sum(turns.map(({ length }) => length)))} characters`,
    () => [...turns.map(drawn), said.length ? note(`Settings: ${said.join(", ")}`) : null],
    { open: true, className: "prompt plain" },
  );
}

function answerOf(head, column, response, place) {
  const parts = () => [
    outcomeLine(head, column, response, place),
    responseBox(response, column),
    readingsTable(response, column),
    response.items ? itemsOf(response) : null,
    response.judges.length ? judgesOf(response) : null,
    figuresOf(response),
    commandFor(column, head.documents[place]),
  ];
  const fault = response?.fault && text("p", "fault", response.fault);
  const missing = response ? fault : text("p", "soft", "This document was not asked here.");
  const heading = make("h4", {}, column.label, column.sample ? sampleTag() : null);
  return make("section", { className: "answer", "aria-label": column.label }, heading, ...(missing ? [missing] : parts()));
}

function outcomeLine(head, column, { score, finish, tokens, seconds, cluster }, place) {
  const [kind, word] = outcomeOf(head, column, place);
  const facts = [
    isNumber(score) ? `score ${fixed(score)}` : "no score of its own",
    tokens ? `${plural(tokens[1], "token")}, prompt ${plural(tokens[0], "token")}` : "",
    finish ? `ended: ${finish}` : "",
    isNumber(seconds) ? `${fixed(seconds, 1)} s` : "",
  ];
  return make(
    "p",
    { className: "outcome-line" },
    text("span", `outcome-mark ${kind}`, word),
    has(column, place, FLAGS.truncated) ? text("span", "outcome-mark bad", "truncated") : null,
    text("span", "soft", facts.filter(Boolean).join(" · ")),
    cluster ? text("span", "cluster", cluster) : null,
  );
}

// The response, its trace apart, with what the reader took from it.
function responseBox({ stretches, length }, column) {
  const trace = stretches.filter((part) => part.trace);
  const reply = stretches.filter((part) => !part.trace);
  const characters = sum(trace.map((part) => part.text.length + part.left_out));
  const key = (mark) => make("span", {}, text("mark", `read ${mark}`, "marked"), ` what the ${mark} reading took`);
  const marks = [...new Set(reply.flatMap((part) => part.marks))].map(key);
  const isPart = stretches.some((part) => part.left_out);
  return make(
    "div",
    {},
    trace.length
      ? folded(`Reasoning trace, ${count(characters)} characters`, () => textBox(pieces(trace), "Reasoning trace", "trace"), {
          className: "trace-box",
        })
      : null,
    text("h5", "", "Response"),
    reply.some((part) => part.text.trim() || part.left_out)
      ? textBox(pieces(reply), `Response of ${column.label}`)
      : text("p", "soft", "The response is empty."),
    marks.length ? make("p", { className: "key-line" }, ...marks) : null,
    isPart ? note(`${count(length)} characters, shown in part; medtasks view RUN TASK DOCUMENT prints them all.`) : null,
  );
}

function pieces(parts) {
  return parts.flatMap(({ text: content, marks, left_out: left }, place) => {
    if (left) return text("span", "left-out", ` … ${count(left)} characters … `);
    const title = `${marks.join(" and ")} reading`;
    if (marks.length) return make("mark", { className: `read ${marks.join(" ")}`, textContent: content, title });
    return place ? content : content.trimStart(); // what a trace leaves behind
  });
}

function readingsTable({ readings }, { label }) {
  if (!readings.length) return null;
  const given = (value, none) => (value === null ? text("td", "soft", none) : text("td", "value", shownValue(value)));
  return table({
    className: "readings",
    caption: "What was read, and the gold answer it is compared with",
    region: `Readings of ${label}`, // several models may stand beside each other
    plain: true,
    rows: readings,
    columns: [
      wordColumn("reader", "Reading", { head: true }),
      { title: "Answer", cell: ({ answer }) => given(answer, "unreadable") },
      { title: "Gold", cell: ({ gold }) => given(gold, "none") },
      { title: "Why", cell: ({ why }) => text("td", "soft", why || NONE) },
    ],
  });
}

// A parsed answer in one line: items between semicolons, their parts between points.
function shownValue(value) {
  const content = oneLine(value, "; ");
  return content.length > 600 ? `${content.slice(0, 600)}… (${count(content.length)} characters)` : content || "nothing";
}

function oneLine(value, between) {
  if (Array.isArray(value)) return value.map((item) => oneLine(item, " · ")).join(between);
  if (value === null || typeof value !== "object") return String(value ?? "");
  if (Array.isArray(value.tuples)) return oneLine(value.tuples, "; ");
  const named = Object.entries(value).filter(([, said]) => isGiven(said) && said !== "");
  return named.map(([name, said]) => `${name} ${oneLine(said, " · ")}`).join(between);
}

// Items of an extraction: which were found, missed and spurious.
function itemsOf(response) {
  const group = (kind) => {
    const items = response.items[kind].map((item) => item.join(" · "));
    const heading = make("h5", {}, text("mark", `item ${kind}`, kind), ` ${count(items.length)}`);
    return make("div", { className: "items" }, heading, items.length ? bullets(items) : text("p", "soft", "none"));
  };
  return make("div", { className: "item-groups" }, ...["found", "missed", "spurious"].map(group));
}

// ------------------------------------------------------------------ judges, and the rest

function judgesOf({ judged, judges }) {
  const ratingsOf = (ratings) => Object.entries(ratings).map(([axis, rating]) => `${axis} ${rating}`).join(", ");
  const verdictOf = (verdict) => termList(Object.entries(verdict).map(([axis, said]) => [axis, reasonOf(said)]));
  return make(
    "div",
    { className: "judges" },
    text("h5", "", isNumber(judged) ? `Judges, together ${fixed(judged)}` : "Judges"),
    ...judges.map(({ judge, point, ratings, verdict }) =>
      folded(`${judge}${point ? `, ${point}` : ""}: ${ratingsOf(ratings)}`, () => verdictOf(verdict), {
        open: true,
        className: "judge",
      }),
    ),
  );
}

function reasonOf(said) {
  if (said === null || typeof said !== "object") return String(said);
  const reason = said.explanation ?? said.reason ?? said.rationale;
  if (typeof reason !== "string") return JSON.stringify(said);
  return [said.score ?? said.rating, reason].filter((part) => part !== undefined).join(": ");
}

function figuresOf({ metrics }) {
  const found = Object.entries(metrics).map(([name, value]) => `${name} ${fixed(value)}`);
  return found.length ? note(found.join(" · ")) : null;
}

// Where a server shows the page, it knows where the run lies.
const commandFor = ({ place, task }, key) =>
  place ? make("p", { className: "note command" }, text("code", "", `medtasks view ${place} ${task} ${key}`)) : null;
