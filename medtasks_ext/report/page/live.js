// Runs under way: how far, and how their answers end. A page that a server shows looks again.

const POLL = 2000; // milliseconds
const liveNow = report.answers.live ?? null; // as it was when the page was made
let live = liveNow;

function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const share = (n, of) => (of ? `${percent(n / of)} of ${count(of)}` : NONE);

const livePart = () => (live?.runs.length ? make("div", { className: "live-runs" }, ...live.runs.map(liveRun)) : null);

function liveRun(run) {
  const [word, hint] = run.worker
    ? ["going on", "Its tasks are not all finished; the page looks again"]
    : ["stopped", "Nobody works on it: the same command goes on where it ended"];
  const faults = run.faults.map((item) => `${plural(item.n, "request")} without an answer: ${item.reason}`);
  return make(
    "section",
    { className: "live" },
    make("h3", {}, run.label, tag("partial", word, hint)),
    make("progress", { max: run.asked || 1, value: run.done, "aria-label": `Answers of ${run.label}` }),
    liveFacts(run),
    faults.length ? bullets(faults, "faults") : null,
    ...run.notes.map((words) => note(words)),
  );
}

function liveFacts({ answers, tasks, finished, worker, done, asked, left }) {
  const time = left ? `about ${duration(left)}` : done < asked ? "not known yet" : "";
  return factList(
    [
      ["Answers", `${count(done)} of ${count(asked)}`],
      ["Tasks", `${count(finished)} of ${count(tasks)} finished`],
      ["Time left", worker ? time : "nobody works on it"],
      ["Empty", answers.answers ? share(answers.empty, answers.answers) : ""],
      ["Truncated", answers.answers ? share(answers.cut, answers.answers) : ""],
    ],
    "live-facts",
  );
}

// The page is loaded anew as soon as a run has another result, but not under the eyes of who reads an answer.
async function look() {
  try {
    if (document.hidden) return;
    const found = await (await fetch("live")).json();
    if (found.state !== liveNow.state && !option("doc")) return location.reload();
    const changed = JSON.stringify(found.runs) !== JSON.stringify(live.runs);
    live = found;
    if (!changed || option("doc")) return;
    if (view !== "answers" || !viewId) show();
    else if (headOf?.columns.some(({ totals }) => totals.waiting)) {
      for (const name of loaded.keys()) if (name !== viewId) loaded.delete(name);
      load(viewId); // what is shown stays until there is more
    }
  } catch {
    live = null; // the server has ended
  } finally {
    if (live?.runs.length) setTimeout(look, POLL);
  }
}

if (liveNow?.runs.length) setTimeout(look, POLL);
