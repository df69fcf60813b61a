"use strict";
// The form is data: {export, form, title, introduction, notices, words, columns: [question],
// pages: [{above, answer: [{label, text}], prompts: [{row, question, label, help, options: [{value, label}]}]}]}.
// Where a prompt has no options, the expert may write. Texts only ever become text nodes.

const form = JSON.parse(document.getElementById("data").textContent);
const words = form.words;
const questions = form.columns;
const all = form.pages.flatMap((page, number) => page.prompts.map((prompt) => ({ ...prompt, page: number })));
const key = `medtasks-human ${form.export}/${form.form}`;

let answers = {}; // row -> question -> value
let page = 0;
let active = 0; // prompt of the page that the number keys answer
let keeps = true; // whether the browser keeps what is stored

// ------------------------------------------------------------------ small helpers

function fill(text, parts) {
  return text.replace(/\{(\w+)\}/g, (_, name) => parts[name]);
}

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function answerOf(prompt) {
  return (answers[prompt.row] || {})[prompt.question];
}

// What the expert may write, may stay out.
function isOpen(prompt) {
  return !answerOf(prompt) && prompt.options.length > 0;
}

function openPrompts() {
  return all.filter(isOpen);
}

function download(name, type, content) {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// ------------------------------------------------------------------ state

// Only rows, questions and options of this form are taken over, whatever was stored.
function known(stored) {
  const found = {};
  for (const prompt of all) {
    const value = stored && stored[prompt.row] && stored[prompt.row][prompt.question];
    const options = prompt.options;
    const fits = options.length ? options.some((option) => option.value === value) : typeof value === "string" && value;
    if (fits) (found[prompt.row] ||= {})[prompt.question] = value;
  }
  return found;
}

function snapshot() {
  return JSON.stringify({ medtasks: "human", export: form.export, form: form.form, saved: new Date().toISOString(), page, answers });
}

function store() {
  try {
    localStorage.setItem(key, snapshot());
    keeps = true;
  } catch {
    keeps = false;
  }
}

function restore() {
  try {
    const stored = JSON.parse(localStorage.getItem(key) || "{}");
    answers = known(stored.answers);
    page = Number.isInteger(stored.page) && form.pages[stored.page] ? stored.page : 0;
    localStorage.setItem(`${key} try`, "1");
    localStorage.removeItem(`${key} try`);
  } catch {
    keeps = false;
  }
}

function choose(number, value) {
  const prompt = form.pages[page].prompts[number];
  if (!prompt) return;
  const row = (answers[prompt.row] ||= {});
  if (!value) delete row[prompt.question];
  else row[prompt.question] = value;
  store();
  showAnswers();
  say(keeps ? fill(words.saved, { time: new Date().toLocaleTimeString() }) : words.not_saved, !keeps);
}

// ------------------------------------------------------------------ the frame

const title = make("h1", { textContent: form.title });
const asked = all.filter((prompt) => prompt.options.length);
const bar = make("progress", { max: asked.length });
const count = make("span", { className: "count" });
const state = make("span", { className: "state" });
state.setAttribute("role", "status");
document.getElementById("top").append(
  title,
  make("span", { className: "form", textContent: form.form }),
  make("span", { className: "progress" }, bar, count),
  state,
);

const about = make("section", { className: "about" });
about.setAttribute("aria-label", words.about);
for (const notice of form.notices) about.append(make("p", { className: "notice", textContent: notice }));
const introduction = make(
  "details",
  { open: true },
  make("summary", { textContent: words.about }),
  make("p", { textContent: form.introduction }),
  make("p", { className: "keys", textContent: words.keys }),
);
about.append(introduction);
document.getElementById("page").before(about);

const word = (text) => make("span", { className: "word", textContent: text });
const previous = make("button", { type: "button", title: words.previous, onclick: () => go(page - 1) }, "←", word(words.previous));
const next = make("button", { type: "button", title: words.next, onclick: () => go(page + 1) }, word(words.next), "→");
const nextOpen = make("button", { type: "button", textContent: words.next_open, onclick: goToOpen });
const choice = make("select", { onchange: () => go(Number(choice.value)) });
choice.setAttribute("aria-label", words.page_choice);
form.pages.forEach((_, number) => choice.append(make("option", { value: String(number) })));
const picker = make("input", { type: "file", accept: ".json,application/json", onchange: loadCopy });
document.getElementById("turn").append(previous, choice, next, nextOpen);
document.getElementById("bottom").append(
  make("button", { type: "button", id: "save-copy", textContent: words.save_copy, onclick: saveCopy }),
  make("label", { className: "button" }, words.load_copy, picker),
  make("button", { type: "button", id: "export", className: "main", textContent: words.export, onclick: exportCsv }),
);

function say(text, bad = false) {
  state.textContent = text;
  state.classList.toggle("bad", bad);
}

// ------------------------------------------------------------------ a page

function texts(items, tag) {
  return items.map((item) =>
    make(
      tag,
      { className: tag === "details" ? "above" : "answer", open: true },
      make(tag === "details" ? "summary" : "h2", { textContent: item.label }),
      make("div", { className: "text", textContent: item.text }),
    ),
  );
}

function fieldsetOf(prompt, number) {
  const set = make("fieldset", { onclick: () => activate(number) }, make("legend", { textContent: prompt.label }));
  if (prompt.help) set.append(make("p", { textContent: prompt.help }));
  if (!prompt.options.length) {
    const field = make("textarea", { rows: 4, onfocus: () => activate(number), oninput: () => choose(number, field.value) });
    field.setAttribute("aria-label", prompt.label);
    set.append(field);
    return set;
  }
  const long = prompt.options.some((option) => option.label.length > 14);
  const options = make("div", { className: long ? "options long" : "options" });
  for (const option of prompt.options) {
    const input = make("input", {
      type: "radio",
      name: `${prompt.row} ${prompt.question}`,
      value: option.value,
      onchange: () => {
        activate(number);
        choose(number, option.value);
      },
    });
    options.append(make("label", {}, input, option.label));
  }
  set.append(options);
  return set;
}

function show() {
  const here = form.pages[page];
  const list = make("div", { className: "list" }, ...here.prompts.map(fieldsetOf));
  const side = make(
    "section",
    { className: "questions" },
    make("h2", { textContent: words.questions }),
    list,
    make("p", { className: "complete" }),
  );
  const columns = make("div", { className: here.answer.length > 1 ? "answers two" : "answers" }, ...texts(here.answer, "article"));
  const read = make("div", { className: "read" }, ...texts(here.above, "details"), columns);
  const bare = here.answer.length + here.above.length === 0;
  document.getElementById("page").replaceChildren(
    bare ? make("div", { className: "sheet bare" }, side) : make("div", { className: "sheet" }, read, side),
  );
  previous.disabled = page === 0;
  next.disabled = page === form.pages.length - 1;
  const open = here.prompts.findIndex(isOpen);
  activate(Math.max(open, 0));
  showAnswers();
}

function showAnswers() {
  const sets = document.querySelectorAll("fieldset");
  form.pages[page].prompts.forEach((prompt, number) => {
    for (const input of sets[number].querySelectorAll("input")) input.checked = input.value === answerOf(prompt);
    const field = sets[number].querySelector("textarea");
    if (field && field !== document.activeElement) field.value = answerOf(prompt) || "";
  });
  const open = openPrompts();
  bar.value = asked.length - open.length;
  count.textContent = fill(words.answered, { done: asked.length - open.length, all: asked.length });
  nextOpen.disabled = open.length === 0;
  form.pages.forEach((item, number) => {
    const mark = item.prompts.some(isOpen) ? "" : "✓ ";
    choice.options[number].textContent = mark + fill(words.page, { page: number + 1, pages: form.pages.length });
  });
  choice.value = String(page);
  const complete = !form.pages[page].prompts.some(isOpen);
  document.querySelector(".complete").textContent = complete ? (open.length ? words.page_done : words.finished) : "";
}

function activate(number) {
  active = number;
  document.querySelectorAll("fieldset").forEach((set, place) => set.classList.toggle("active", place === number));
}

function go(number) {
  if (!form.pages[number]) return;
  page = number;
  introduction.open = false;
  store();
  show();
  document.getElementById("page").focus({ preventScroll: true });
  scrollTo(0, 0);
}

function goToOpen() {
  const open = openPrompts();
  if (open.length) go((open.find((prompt) => prompt.page > page) || open[0]).page);
}

// ------------------------------------------------------------------ keys

function move(step) {
  const last = form.pages[page].prompts.length - 1;
  activate(Math.min(Math.max(active + step, 0), last));
  const set = document.querySelectorAll("fieldset")[active];
  (set.querySelector("input:checked") || set.querySelector("input, textarea")).focus({ preventScroll: true });
  set.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  const asked = document.getElementById("open").open;
  if (asked || event.ctrlKey || event.metaKey || event.altKey || ["SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
  const inQuestions = event.target.closest(".questions");
  if (/^[0-9]$/.test(event.key)) {
    const option = form.pages[page].prompts[active].options[Number(event.key) - 1];
    if (!option && event.key !== "0") return;
    choose(active, option && option.value);
    if (option && active < form.pages[page].prompts.length - 1) {
      if (inQuestions) move(1);
      else activate(active + 1);
    }
  } else if (event.key === "ArrowLeft") go(page - 1);
  else if (event.key === "ArrowRight") go(page + 1);
  else if (event.key === "ArrowUp" && inQuestions) move(-1);
  else if (event.key === "ArrowDown" && inQuestions) move(1);
  else return; // elsewhere the arrows scroll
  event.preventDefault();
});

// ------------------------------------------------------------------ copies and the CSV

function saveCopy() {
  download(`${form.form}.copy.json`, "application/json", snapshot());
}

async function loadCopy() {
  const file = picker.files[0];
  picker.value = "";
  if (!file) return;
  let copy = null;
  try {
    copy = JSON.parse(await file.text());
  } catch {
    copy = null;
  }
  if (!copy || copy.medtasks !== "human" || copy.export !== form.export || copy.form !== form.form) {
    say(fill(words.wrong_copy, { file: file.name }), true);
    return;
  }
  const loaded = known(copy.answers);
  for (const row of Object.keys(loaded)) answers[row] = { ...answers[row], ...loaded[row] };
  store();
  show();
  say(fill(words.loaded, { n: Object.values(loaded).reduce((sum, row) => sum + Object.keys(row).length, 0) }));
}

function writeCsv() {
  // a spreadsheet takes what begins so for a formula
  const safe = (value) => (/^[=+\-@]/.test(value) ? `'${value}` : value);
  const quoted = (value) => `"${safe(value).replaceAll('"', '""')}"`;
  const lines = [["form", "row", ...questions]];
  for (const row of new Set(all.map((prompt) => prompt.row))) {
    lines.push([`${form.export}/${form.form}`, row, ...questions.map((name) => (answers[row] || {})[name] || "")]);
  }
  const content = lines.map((line) => line.map(quoted).join(",") + "\r\n").join("");
  download(`${form.form}.csv`, "text/csv;charset=utf-8", `\ufeff${content}`);
  say(fill(words.exported, { file: `${form.form}.csv` }));
}

function exportCsv() {
  const open = openPrompts();
  if (!open.length) {
    writeCsv();
    return;
  }
  const dialog = document.getElementById("open");
  const button = (text, className, then) =>
    make("button", {
      type: "button",
      textContent: text,
      className,
      onclick: () => {
        dialog.close();
        then();
      },
    });
  dialog.replaceChildren(
    make("h2", { textContent: words.open_title }),
    make("p", { textContent: fill(words.open_text, { n: open.length, page: open[0].page + 1 }) }),
    make("div", {}, button(words.export_anyway, "", writeCsv), button(words.go_there, "main", () => go(open[0].page))),
  );
  dialog.showModal();
}

// ------------------------------------------------------------------ start

// another tab with the same form
addEventListener("storage", (event) => {
  if (event.key !== key || !event.newValue) return;
  answers = known(JSON.parse(event.newValue).answers);
  showAnswers();
});

const header = document.getElementById("top");
new ResizeObserver(() => document.documentElement.style.setProperty("--top", `${header.offsetHeight}px`)).observe(header);

restore();
introduction.open = Object.keys(answers).length === 0;
show();
say(keeps ? words.nothing_yet : words.not_saved, !keeps);
