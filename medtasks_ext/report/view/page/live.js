// Runs under way: how far, how fast, what it costs, and what the answers so far are worth.

function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const rate = (value) => (value >= 10 ? count(Math.round(value)) : value.toFixed(1));
const share = (n, of) => (of ? `${percent(n / of)} of ${count(of)}` : NONE);

function goingOnWords(run) {
  return run.live && !run.live.worker
    ? ["stopped", "Nobody works on it: the same command goes on where it ended"]
    : ["going on", "Its tasks are not all finished; the page looks again"];
}

// What stands in place of a score.
function unscored(answer, run) {
  const task = run?.live?.under_way.find((item) => item.task === answer.task);
  if (task && task.done < task.asked) return `${count(task.done)} of ${count(task.asked)}`;
  return (
    { done: "no score", waiting: "going on", answered: "to be scored", incomplete: "answers are missing" }[answer.state] ??
    answer.state
  );
}

function liveRuns(overview) {
  const runs = overview.runs.filter((run) => run.live);
  return runs.length ? make("div", { className: "live-runs" }, ...runs.map(liveRun)) : null;
}

function liveRun(run) {
  const live = run.live;
  return make(
    "section",
    { className: "live" },
    make("h3", {}, run.label, tag("partial", ...goingOnWords(run))),
    make("progress", {
      max: live.asked || 1,
      value: live.done,
      "aria-label": `Answers of ${run.label}`,
    }),
    facts(live),
    faults(live),
    clusterLine(live),
    underWay(live),
    ...[...live.notes, ...live.problems.map((item) => `${item.where}: ${item.what} → ${item.remedy}`)].map((words) =>
      text("p", "note", words),
    ),
  );
}

function facts(live) {
  const { answers, tasks, speed } = live;
  const rows = [
    ["Answers", `${count(live.done)} of ${count(live.asked)}${live.counting ? ", still counting" : ""}`],
    ["Tasks", taskWords(tasks)],
    ["Time left", left(live)],
    ["Speed", speedWords(speed, live.worker)],
    ["Cost of this call", isNumber(live.usd) ? `${live.usd.toFixed(2)} USD` : ""],
    ["Readable", answers.read ? share(answers.readable, answers.read) : ""],
    ["Empty", answers.answers ? share(answers.empty, answers.answers) : ""],
    ["Cut at the budget", answers.answers ? share(answers.cut, answers.answers) : ""],
  ];
  return make(
    "dl",
    { className: "live-facts" },
    ...rows
      .filter(([, value]) => value)
      .map(([name, value]) => make("div", {}, text("dt", "soft", name), text("dd", "", value))),
  );
}

function taskWords(tasks) {
  const parts = [`${count(tasks.finished)} of ${count(tasks.all)} finished`];
  if (tasks.under_way) parts.push(`${count(tasks.under_way)} under way`);
  if (tasks.to_be_scored) parts.push(`${count(tasks.to_be_scored)} to be scored`);
  return parts.join(", ");
}

function left(live) {
  if (!live.worker) return "nobody works on it";
  if (!live.left) return live.done < live.asked ? "not known yet" : "";
  return `about ${duration(live.left)}`;
}

function speedWords(speed, worker) {
  if (!speed) return worker ? "no answer yet" : "";
  const since = `${rate(speed.since_start)} ${speed.of}/s since the start`;
  if (!worker) return since;
  return speed.silent > 60
    ? `no answer for ${duration(speed.silent)}; ${since}`
    : `${rate(speed.now)} ${speed.of}/s now, ${since}`;
}

function faults(live) {
  return live.faults.length
    ? make(
        "ul",
        { className: "faults" },
        ...live.faults.map((item) => text("li", "", `${plural(item.n, "request")} without an answer: ${item.reason}`)),
      )
    : null;
}

function clusterLine(live) {
  return live.clusters.length
    ? text(
        "p",
        "note",
        `Why answers of the sample cannot be read: ${live.clusters.map((item) => `${item.cluster} ${count(item.n)}`).join(", ")}`,
      )
    : null;
}

function underWay(live) {
  if (!live.under_way.length) return null;
  const heads = ["Task under way", "Answers", "Readable", "Empty", "Cut", "Without an answer"];
  const rows = live.under_way.map((task) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", textContent: task.task }),
      text("td", "number", `${count(task.done)} of ${count(task.asked)}`),
      make("td", { className: "number", title: task.unread }, task.read ? share(task.readable, task.read) : NONE),
      text("td", "number", task.answers ? percent(task.empty / task.answers) : NONE),
      text("td", "number", task.answers ? percent(task.cut / task.answers) : NONE),
      text("td", "number", count(task.faults)),
    ),
  );
  return make(
    "div",
    { className: "scroll", tabIndex: 0, role: "group", "aria-label": "Tasks under way" },
    make(
      "table",
      { className: "datasets" },
      make("caption", { textContent: "Tasks under way; readable: of the answers that were read so far" }),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          ...heads.map((name, place) =>
            make("th", { scope: "col", className: place ? "number" : "", textContent: name }),
          ),
        ),
      ),
      make("tbody", {}, ...rows),
    ),
  );
}
