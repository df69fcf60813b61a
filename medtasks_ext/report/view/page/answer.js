// One document: prompt, answers, readings, marked text, judges.

function drawDocument(head, chosen, view, whole) {
  const columns = [chosen.first, ...(chosen.other === null ? [] : [chosen.other])];
  const shown = columns.map((column) => [head.columns[column], view.responses[column], column]);
  const prompts = shown.filter(([, response]) => response?.turns.length);
  const differ = prompts.length > 1 && JSON.stringify(prompts[0][1].turns) !== JSON.stringify(prompts[1][1].turns);
  return [
    ...(differ
      ? prompts.map(([column, response]) => promptOf(response, `Prompt to ${column.label}`))
      : prompts.slice(0, 1).map(([, response]) => promptOf(response, "Prompt"))),
    view.target ? labelled("Gold answer", textBox(view.target, "Gold answer")) : null,
    make(
      "div",
      { className: shown.length > 1 ? "two answers" : "answers" },
      ...shown.map(([column, response, place]) => answerOf(head, column, response, place, view, whole)),
    ),
  ];
}

const labelled = (title, ...content) =>
  make("section", { className: "labelled" }, make("h4", { textContent: title }), ...content);

// A text of any length in a box that scrolls, for the keyboard, too.
function textBox(content, label, className = "") {
  const box = make("div", { className: `text ${className}`, tabIndex: 0, role: "group", "aria-label": label });
  if (typeof content === "string") box.textContent = content;
  else box.append(...content);
  return box;
}

// The turns of a prompt. A system turn is alike in all documents, so it is folded where others follow.
function promptOf(response, title) {
  const length = response.turns.reduce((sum, turn) => sum + turn.length, 0);
  const settings = Object.entries(response.settings).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return folded(
    `${title}: ${plural(response.turns.length, "turn")}, ${count(length)} characters`,
    () => [
      ...response.turns.map((turn) =>
        turn.role === "system" && response.turns.length > 1
          ? folded(`System, ${count(turn.length)} characters`, () => turnBox(turn), { className: "turn system" })
          : make("div", { className: `turn ${turn.role}` }, text("h4", "role", roleName(turn)), turnBox(turn)),
      ),
      settings.length ? text("p", "note", `Settings: ${settings.join(", ")}`) : null,
    ],
    { open: true, className: "prompt plain" },
  );
}

const roleName = (turn) => (turn.role === "text" ? "as text" : turn.role);
const turnBox = (turn) => textBox(turn.text, `Turn of ${roleName(turn)}`);

function answerOf(head, column, response, place, view, whole) {
  const box = make("section", { className: "answer", "aria-label": column.label });
  box.append(make("h4", {}, column.label, column.sample ? sampleTag() : null));
  if (!response) {
    box.append(text("p", "soft", "This document was not asked here."));
    return box;
  }
  if (response.fault) {
    box.append(text("p", "fault", response.fault));
    return box;
  }
  box.append(
    ...[
      outcomeLine(head, column, response, view),
      responseBox(response, view, whole, column),
      readingsTable(response),
      response.items ? itemsOf(response) : null,
      response.judges.length ? judgesOf(response) : null,
      moreFacts(response),
      commandFor(column, view.key),
    ].filter(Boolean),
  );
  return box;
}

function outcomeLine(head, column, response, view) {
  const [kind, word] = outcomeOf(head, column, head.documents.indexOf(view.key));
  const facts = [
    isNumber(response.score) ? `score ${fixed(response.score)}` : "no score of its own",
    response.outcome.tokens ? plural(response.outcome.tokens, "token") : "",
    response.outcome.prompt_tokens ? `prompt ${plural(response.outcome.prompt_tokens, "token")}` : "",
    response.outcome.finish ? `ended: ${response.outcome.finish}` : "",
    isNumber(response.outcome.seconds) ? `${fixed(response.outcome.seconds, 1)} s` : "",
  ];
  return make(
    "p",
    { className: "outcome-line" },
    make("span", { className: `outcome-mark ${kind}`, textContent: word }),
    response.flags & BITS.cut ? make("span", { className: "outcome-mark bad", textContent: "cut off" }) : null,
    text("span", "soft", facts.filter(Boolean).join(" · ")),
    response.cluster ? text("span", "cluster", `${response.cluster}${response.why ? `: ${response.why}` : ""}`) : null,
  );
}

// The response, its trace apart, with what each reader took from it.
function responseBox(response, view, whole, column) {
  const trace = response.stretches.filter((part) => part.trace);
  const reply = response.stretches.filter((part) => !part.trace);
  const left = response.stretches.some((part) => part.left_out);
  const marks = new Set(reply.flatMap((part) => part.marks));
  const length = trace.reduce((sum, part) => sum + part.text.length + part.left_out, 0);
  return make(
    "div",
    {},
    trace.length
      ? folded(
          `Reasoning trace, ${count(length)} characters`,
          () => textBox(pieces(trace), "Reasoning trace", "trace"),
          { className: "trace-box" },
        )
      : null,
    text("h5", "", "Response"),
    reply.some((part) => part.text.trim() || part.left_out)
      ? textBox(pieces(reply), `Response of ${column.label}`)
      : text("p", "soft", "The response is empty."),
    marks.size
      ? make(
          "p",
          { className: "key-line" },
          ...[...marks].map((mark) =>
            make(
              "span",
              {},
              make("mark", { className: `read ${mark}`, textContent: "marked" }),
              ` what the ${mark} reading took`,
            ),
          ),
        )
      : null,
    left && !whole
      ? make(
          "p",
          { className: "note" },
          `${count(response.length)} characters, shown in part. `,
          data.live
            ? make("button", {
                type: "button",
                className: "small",
                textContent: "Show the whole response",
                onclick: () => change({ whole: "1" }),
              })
            : null,
        )
      : null,
  );
}

function pieces(parts) {
  return parts.flatMap((part, index) => {
    if (part.left_out) return text("span", "left-out", ` … ${count(part.left_out)} characters … `);
    if (part.text.length > LONG_TEXT) return chunks(part.text);
    if (part.marks.length)
      return make("mark", {
        className: `read ${part.marks.join(" ")}`,
        textContent: part.text,
        title: `${part.marks.join(" and ")} reading`,
      });
    return index ? part.text : part.text.trimStart(); // what a trace leaves behind
  });
}

// From this length on a text stands in blocks, of which a browser lays out those that are seen.
const LONG_TEXT = 20_000;
const CHUNK = 4_000;

function chunks(content) {
  const found = [];
  for (let begin = 0; begin < content.length; begin += CHUNK)
    found.push(text("span", "chunk", content.slice(begin, begin + CHUNK)));
  return found;
}

function readingsTable(response) {
  if (!response.readings.length) return null;
  const cell = (value) => text("td", "value", shownValue(value));
  return make(
    "div",
    { className: "scroll", tabIndex: 0, role: "group", "aria-label": "Readings" },
    make(
      "table",
      { className: "readings" },
      make("caption", { textContent: "What was read, and the gold answer it is compared with" }),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          ...["Reading", "Answer", "Gold", "Why"].map((name) => make("th", { scope: "col", textContent: name })),
        ),
      ),
      make(
        "tbody",
        {},
        ...response.readings.map((reading) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, reading.reader),
            reading.answer === null ? text("td", "soft", "unreadable") : cell(reading.answer),
            reading.gold === null ? text("td", "soft", "none") : cell(reading.gold),
            text("td", "soft", reading.why || NONE),
          ),
        ),
      ),
    ),
  );
}

// A parsed answer in one line: items between semicolons, their parts between points.
function shownValue(value) {
  const content = oneLine(value, "; ");
  return content.length > 600
    ? `${content.slice(0, 600)}… (${count(content.length)} characters)`
    : content || "nothing";
}

function oneLine(value, between) {
  if (Array.isArray(value)) return value.map((item) => oneLine(item, " · ")).join(between);
  if (value !== null && typeof value === "object")
    return Array.isArray(value.tuples) ? oneLine(value.tuples, "; ") : JSON.stringify(value);
  return String(value ?? "");
}

// ------------------------------------------------------------------ items of an extraction

const ITEM_KINDS = [
  ["found", "found"],
  ["missed", "missed"],
  ["spurious", "spurious"],
];

function itemsOf(response) {
  const group = ([kind, title]) => {
    const items = response.items[kind];
    return make(
      "div",
      { className: "items" },
      make("h5", {}, make("mark", { className: `item ${kind}`, textContent: title }), ` ${count(items.length)}`),
      items.length
        ? make("ul", {}, ...items.map((item) => text("li", "", item.join(" · "))))
        : text("p", "soft", "none"),
    );
  };
  return make(
    "div",
    { className: "extraction" },
    response.pieces.length
      ? make(
          "div",
          {},
          text("h5", "", "In the document"),
          textBox(markedText(response.pieces), "The document with found, missed and spurious items"),
          note("Answers carry no places: an item is marked wherever its words stand."),
        )
      : null,
    make("div", { className: "item-groups" }, ...ITEM_KINDS.map(group)),
  );
}

const markedText = (parts) =>
  parts.map((part) =>
    part.marks.length
      ? make("mark", {
          className: `item ${part.marks.join(" ")}`,
          textContent: part.text,
          title: part.marks.join(" and "),
        })
      : part.text,
  );

// ------------------------------------------------------------------ judges, and the rest

function judgesOf(response) {
  return make(
    "div",
    { className: "judges" },
    text("h5", "", isNumber(response.judged) ? `Judges, together ${fixed(response.judged)}` : "Judges"),
    ...response.judges.map((word) =>
      folded(
        `${word.judge}${word.point ? `, ${word.point}` : ""}: ${Object.entries(word.ratings)
          .map(([axis, rating]) => `${axis} ${rating}`)
          .join(", ")}`,
        () =>
          make(
            "dl",
            { className: "words" },
            ...Object.entries(word.verdict).flatMap(([axis, said]) => [
              text("dt", "", axis),
              text("dd", "", reasonOf(said)),
            ]),
          ),
        { open: true, className: "judge" },
      ),
    ),
  );
}

function reasonOf(said) {
  if (said === null || typeof said !== "object") return String(said);
  const reason = said.explanation ?? said.reason ?? said.rationale;
  return typeof reason === "string"
    ? [said.score ?? said.rating, reason].filter((part) => part !== undefined).join(": ")
    : JSON.stringify(said);
}

function moreFacts(response) {
  const found = Object.entries(response.metrics);
  return found.length ? text("p", "note", found.map(([name, value]) => `${name} ${fixed(value)}`).join(" · ")) : null;
}

function commandFor(column, key) {
  const place = overviewOf?.runs[column.run]?.place;
  if (!data.live || !place) return null;
  return make(
    "p",
    { className: "note command" },
    make("code", { textContent: `medtasks view ${place} ${column.task} ${key}` }),
  );
}
