// The frame: header, routes, keyboard, looking again while a run goes on, paper.

const main = document.getElementById("main");
const said = document.getElementById("said");
const POLL = 2000; // milliseconds
const FIRST_POLL = 500; // before the first answer
let CLUSTER_NAMES = [];
let overviewOf = null;
let drawing = 0; // number of the last drawing that was begun
let polling = 0;

function buildHeader() {
  const keys = folded(
    "Keys",
    () =>
      make(
        "dl",
        { className: "keys" },
        ...KEYS.flatMap(([key, words]) => [make("dt", {}, make("kbd", { textContent: key })), text("dd", "", words)]),
      ),
    { className: "keys-box" },
  );
  document
    .getElementById("top")
    .replaceChildren(
      make(
        "div",
        { className: "heading" },
        make("h1", {}, link(overviewAddress(), "medtasks view")),
        text(
          "p",
          "facts-line",
          data.live
            ? "On this machine alone; the address holds what is shown"
            : "A file that asks no server; the address holds what is shown",
        ),
        keys,
        themeMenu(applyTheme),
      ),
      overviewOf.sample ? sampleBanner() : "",
    );
}

function sampleBanner() {
  return make(
    "div",
    { className: "banner", role: "note" },
    text("strong", "", "SAMPLE DATA"),
    text(
      "span",
      "",
      "Answers to synthetic rows are here. Their scores show how the software works; they say nothing about any model.",
    ),
  );
}

// ------------------------------------------------------------------ drawing

async function route() {
  readAddress();
  await show();
}

async function show() {
  drawing += 1;
  const mine = drawing;
  let content;
  try {
    content = await drawn();
  } catch (error) {
    content = [
      make("h2", {}, link(overviewAddress(), "Answers /", { className: "back" }), " This cannot be shown"),
      text("p", "fault", error.message),
    ];
  }
  if (mine !== drawing) return; // a later drawing is under way
  main.classList.toggle("reading", Boolean(option("doc")) && !option("part"));
  keepPlace(() => main.replaceChildren(...content.filter(Boolean)));
  main.dataset.shown = location.hash;
  hideTip();
  pollAgain();
}

async function drawn() {
  const dataset = data.live ? option("dataset") : (data.dataset?.id ?? "");
  if (!overviewOf || !dataset) {
    overviewOf = await ask("overview");
    buildHeader();
  }
  document.title = dataset ? `${dataset} · answers` : "Answers";
  if (!dataset) {
    headOf = null;
    return drawOverview(overviewOf);
  }
  const head = await ask("dataset", { dataset });
  CLUSTER_NAMES = head.cluster_names;
  return drawDataset(head);
}

// What had the focus, or was scrolled, is drawn anew: its successor takes over.
function keepPlace(draw) {
  const active = document.activeElement;
  const held = active?.dataset?.key ?? "";
  const id = active?.id ?? "";
  const caret = active?.selectionStart;
  const scrolled = main.querySelector(".documents")?.scrollTop ?? 0;
  draw();
  const list = main.querySelector(".documents");
  if (list) {
    list.scrollTop = scrolled;
    const current = list.querySelector(".current");
    if (
      current &&
      (current.offsetTop < list.scrollTop ||
        current.offsetTop + current.offsetHeight > list.scrollTop + list.clientHeight)
    )
      list.scrollTop = current.offsetTop - list.clientHeight / 2;
  }
  const next =
    (held && main.querySelector(`[data-key="${CSS.escape(held)}"]`)) ||
    (id && main.contains(document.getElementById(id)) && document.getElementById(id));
  if (next) {
    next.focus({ preventScroll: true });
    if (isNumber(caret) && next.type === "search") next.setSelectionRange(caret, caret);
  }
}

// ------------------------------------------------------------------ while a run goes on

function pollAgain() {
  clearTimeout(polling);
  const unfinished = headOf
    ? !headOf.complete || headOf.columns.some((column) => column.state === "waiting")
    : overviewOf?.live;
  const waits = overviewOf?.runs.some((run) => run.live?.worker && !run.live.speed) ? FIRST_POLL : POLL;
  if (data.live && unfinished) polling = setTimeout(look, headOf && !headOf.complete ? 100 : waits);
}

async function look() {
  if (document.hidden) return pollAgain();
  try {
    if (headOf) {
      if (headOf.complete) await ask("overview"); // a task may have become complete
      if (!worthDrawing(await ask("progress", { dataset: headOf.id }))) return pollAgain();
    } else if (JSON.stringify(await ask("overview")) === JSON.stringify(overviewOf)) return pollAgain();
  } catch (error) {
    said.textContent = error.message;
    return undefined;
  }
  return show();
}

// A large file is drawn anew when all is read, or twice as much as is shown.
function worthDrawing(progress) {
  const read = (columns) => columns.reduce((sum, column) => sum + column.read, 0);
  const states = (columns) => columns.map((column) => `${column.state} ${column.score}`).join();
  if (progress.complete !== headOf.complete || states(progress.columns) !== states(headOf.columns)) return true;
  const [now, shown] = [read(progress.columns), read(headOf.columns)];
  return now > shown && (headOf.complete || now >= 2 * shown);
}

// ------------------------------------------------------------------ keyboard

const KEYS = [
  ["j", "next document"],
  ["k", "document before"],
  ["/", "search"],
  ["0 – 9", "filters, as their hints say"],
  ["s", "the other run's answers first"],
  ["Esc", "leave the search; back to the list"],
];

function typing(target) {
  return target.matches("input, select, textarea");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (typing(event.target)) event.target.blur();
    else if (option("doc")) change({ doc: null });
    return;
  }
  if (typing(event.target)) return;
  if (event.key === "/") {
    const search = document.getElementById("search") ?? document.getElementById("find");
    if (search) {
      event.preventDefault();
      search.focus();
    }
    return;
  }
  if (!headOf || option("part")) return;
  if (event.key === "j") stepBy(1);
  if (event.key === "k") stepBy(-1);
  const { first, other } = chosenColumns(headOf);
  if (event.key === "s" && other !== null) change({ a: String(other), b: String(first) });
  const filter = FILTERS.find((item) => item.key === event.key);
  if (filter) change({ only: filter.id, cell: null, doc: null });
});

// ------------------------------------------------------------------ paper, and the start

const openedForPaper = [];
addEventListener("beforeprint", () => {
  onPaper = true;
  applyTheme();
  for (const details of main.querySelectorAll("details:not([open])")) {
    details.open = true;
    openedForPaper.push(details);
  }
});
addEventListener("afterprint", () => {
  onPaper = false;
  applyTheme();
  for (const details of openedForPaper.splice(0)) details.open = false;
});
prefersDark.addEventListener("change", applyTheme);
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address holds what is shown
  main.focus();
});
addEventListener("hashchange", async () => {
  const before = [option("dataset"), option("part")].join();
  await route();
  if (before !== [option("dataset"), option("part")].join()) scrollTo(0, 0);
  else if (option("doc") && innerWidth < 736) document.getElementById("document")?.scrollIntoView();
});
route();
