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
const UNSCORED = { done: "no score", waiting: "going on", answered: "to be scored", incomplete: "answers are missing" };
function unscored(answer, run) {
  const task = run?.live?.under_way.find((item) => item.task === answer.task);
  if (task && task.done < task.asked) return `${count(task.done)} of ${count(task.asked)}`;
  return UNSCORED[answer.state] ?? answer.state;
}

function liveRun(run) {
  const { label, live } = run;
  const problems = live.problems.map((item) => `${item.where}: ${item.what} → ${item.remedy}`);
  const reasons = live.clusters.map((item) => `${item.cluster} ${count(item.n)}`).join(", ");
  const faults = live.faults.map((item) => `${plural(item.n, "request")} without an answer: ${item.reason}`);
  return make(
    "section",
    { className: "live" },
    make("h3", {}, label, tag("partial", ...goingOnWords(run))),
    make("progress", { max: live.asked || 1, value: live.done, "aria-label": `Answers of ${label}` }),
    liveFacts(live),
    faults.length ? bullets(faults, "faults") : null,
    reasons ? note(`Why answers of the sample cannot be read: ${reasons}`) : null,
    live.under_way.length ? underWay(live) : null,
    ...[...live.notes, ...problems].map((words) => note(words)),
  );
}

function liveFacts({ answers, tasks, speed, worker, done, asked, counting, left, usd }) {
  const states = [[tasks.under_way, "under way"], [tasks.to_be_scored, "to be scored"]];
  const more = states.filter(([n]) => n).map(([n, words]) => `, ${count(n)} ${words}`).join("");
  const time = left ? `about ${duration(left)}` : done < asked ? "not known yet" : "";
  return factList(
    [
      ["Answers", `${count(done)} of ${count(asked)}${counting ? ", still counting" : ""}`],
      ["Tasks", `${count(tasks.finished)} of ${count(tasks.all)} finished${more}`],
      ["Time left", worker ? time : "nobody works on it"],
      ["Speed", speedWords(speed, worker)],
      ["Cost of this call", isNumber(usd) ? `${usd.toFixed(2)} USD` : ""],
      ["Readable", answers.read ? share(answers.readable, answers.read) : ""],
      ["Empty", answers.answers ? share(answers.empty, answers.answers) : ""],
      ["Cut at the budget", answers.answers ? share(answers.cut, answers.answers) : ""],
    ],
    "live-facts",
  );
}

function speedWords(speed, worker) {
  if (!speed) return worker ? "no answer yet" : "";
  const since = `${rate(speed.since_start)} ${speed.of}/s since the start`;
  if (!worker) return since;
  if (speed.silent > 60) return `no answer for ${duration(speed.silent)}; ${since}`;
  return `${rate(speed.now)} ${speed.of}/s now, ${since}`;
}

function underWay(live) {
  const part = (name) => (task) => (task.answers ? percent(task[name] / task.answers) : NONE);
  const readable = (task) => make("span", { title: task.unread }, task.read ? share(task.readable, task.read) : NONE);
  return table({
    className: "datasets",
    caption: "Tasks under way; readable: of the answers that were read so far",
    plain: true,
    rows: live.under_way,
    columns: [
      wordColumn("task", "Task under way", { head: true }),
      { title: "Answers", numeric: true, cell: ({ done, asked }) => `${count(done)} of ${count(asked)}` },
      { title: "Readable", numeric: true, cell: readable },
      { title: "Empty", numeric: true, cell: part("empty") },
      { title: "Cut", numeric: true, cell: part("cut") },
      numberColumn("faults", "Without an answer", { format: count }),
    ],
  });
}
