// The first view of a report without own runs: the picture, the best of each size, and a small heat map.

const MOST_SHOWN = 12; // models of the small heat map

function drawPublished() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  const lines = heatLines(rows);
  const scored = onSameTasks(lines.filter((row) => isNumber(row.score)), tasks);
  if (!scored.length) return [nothing("No model has a score for these tasks.")];
  const [{ scored: n, total }] = scored;
  const some = `here are means of the ${plural(scored.length, "model")} with scores for the same ${n}.`;
  return [
    n < total ? note(`No published model has a score for all ${total} tasks: ${some}`) : null,
    modelsPart(scored),
    mapPart(lines, tasks),
  ];
}

// The rows over all tasks; where there are none, the most that are over the same ones.
function onSameTasks(rows, tasks) {
  const whole = rows.filter(isWholeRow);
  const tasksOf = (row) => tasks.filter((task) => isNumber(resultOf(row.entry, row.strategy, task, "score"))).join();
  return whole.length ? whole : grouped(rows, tasksOf).reduce((one, other) => (other.length > one.length ? other : one), []);
}

function modelsPart(scored) {
  const chosen = scatterChoice(scored);
  const several = severalStrategies(scored);
  const sized = ([, title, holds]) => [title, scored.filter((row) => holds(entries[row.entry].facts.size))];
  const best = groupsTable({
    name: "sizes",
    caption: `The best of each size: ${selectionInWords()}`,
    heading: "Size",
    groups: SIZE_CLASSES.map(sized),
    nameOf: (row) => namedWithStrategy(row, several),
  });
  const isThere = chosen ? scored.filter((row) => chosen.fact.value(row) !== null) : [];
  const rest = scored.length - isThere.length;
  const words = chosen && [
    chosen.fact.better ? `The dashed line joins the models that nothing ${chosen.fact.better} beats.` : "",
    rest ? ` ${plural(rest, "model")} not shown: ${chosen.fact.name} not known.` : "",
  ];
  return make(
    "section",
    { className: "beside-it" },
    make(
      "div",
      {},
      text("h3", "", chosen ? `Score by ${chosen.fact.name}` : "Scores"),
      chosen?.controls,
      isThere.length ? scatterPicture(isThere, chosen.fact, chosen.kindOf, several, besideRoom()) : null,
      chosen ? note(...words) : null,
    ),
    make("div", {}, text("h3", "", "Best of each size"), best),
  );
}

// The best models on the kinds of tasks; on single tasks where these lie on no axis.
function mapPart(lines, tasks) {
  const [key] = columnAxes(tasks, lines);
  const columns = key ? meanColumns(tasks, key) : taskColumns(tasks, "name", lines);
  if (columns.length < 2) return null;
  const what = key ? axisWords(key) : "task";
  const shown = lines.slice(0, MOST_SHOWN);
  const all = shown.length === lines.length;
  return titled(
    `${all ? "All models" : `The best ${shown.length}`} by ${what}`,
    ...heatOf(shown, columns, what),
    all ? null : make("p", {}, link(address("heatmap"), `All ${count(lines.length)} models`)),
  );
}
