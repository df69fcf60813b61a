// The first view of a report without own runs: the picture, the best of each size, and a small heat map.

const MOST_SHOWN = 12; // models of the small heat map

function drawPublished() {
  const { tasks, rows } = selectedRows();
  if (!tasks.length) return [emptySelection()];
  const lines = heatLines(rows);
  const scored = onSameTasks(lines.filter((row) => isNumber(row.score)), tasks);
  if (!scored.length) return [nothing("No model has a score for these tasks.")];
  const [{ scored: n, total }] = scored;
  const some = n < total ? note(`No published model has a score for all ${total} tasks: here are means of the ${plural(scored.length, "model")} with scores for the same ${n}.`) : null;
  return [some, modelsPart(scored), mapPart(lines, tasks)].filter(Boolean);
}

// The rows over all tasks; where there are none, the most that are over the same ones.
function onSameTasks(rows, tasks) {
  const whole = rows.filter(isWholeRow);
  if (whole.length) return whole;
  const bySet = new Map();
  for (const row of rows) {
    const key = tasks.filter((task) => isNumber(resultOf(row.entry, row.strategy, task, "score"))).join();
    bySet.set(key, [...(bySet.get(key) ?? []), row]);
  }
  return [...bySet.values()].reduce((one, other) => (other.length > one.length ? other : one), []);
}

function modelsPart(scored) {
  const chosen = scatterChoice(scored);
  const several = severalStrategies(scored);
  const best = groupsTable({
    name: "sizes",
    caption: `The best of each size: ${selectionInWords()}`,
    heading: "Size",
    groups: SIZE_CLASSES.map(([, title, holds]) => [title, scored.filter((row) => holds(entries[row.entry].facts.size))]),
    nameOf: (row) => make("span", {}, modelLink(row.entry), several ? text("span", "soft", ` ${strategies[row.strategy][1]}`) : null),
  });
  const known = chosen ? scored.filter((row) => chosen.fact.value(row) !== null) : [];
  const rest = scored.length - known.length;
  return make(
    "section",
    { className: "beside-it" },
    make(
      "div",
      {},
      text("h3", "", chosen ? `Score by ${chosen.fact.name}` : "Scores"),
      chosen?.controls ?? null,
      known.length ? scatterPicture(known, chosen.fact, chosen.kindOf, several, besideRoom()) : null,
      chosen
        ? note(
            chosen.fact.better ? `The dashed line joins the models that nothing ${chosen.fact.better} beats.` : "",
            rest ? ` ${plural(rest, "model")} not shown: ${chosen.fact.name} not known.` : "",
          )
        : null,
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
  return titled(
    `${shown.length < lines.length ? `The best ${shown.length}` : "All models"} by ${what}`,
    ...heatOf(shown, columns, what).filter(Boolean),
    shown.length < lines.length ? make("p", {}, link(address("heatmap"), `All ${count(lines.length)} models`)) : null,
  );
}
