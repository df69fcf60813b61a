// Several runs in the order in which they were named: the course of scores, and documents that got worse.

function courseLink(overview) {
  return data.live && overview.runs.length > 1
    ? make("p", {}, link(addressWith({ part: "course" }), "Scores over the runs, and what got worse"))
    : null;
}

function drawCourse(course) {
  return [
    make("h2", {}, link(overviewAddress(), "Answers /", { className: "back" }), " Over the runs"),
    text("p", "about", "The runs stand in the order in which they were named. A group counts the tasks that all runs with a score in it have scored so far."),
    ...course.faults.map((item) => text("p", "note", `${item.where}: ${item.what} → ${item.remedy}`)),
    titled("Scores", courseTable(course)),
    titled("Right before, and not any more", ...course.steps.map((step) => regressions(step, course))),
  ];
}

function courseTable(course) {
  const rows = course.groups.map((group) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", textContent: group.name }),
      make("td", {}, curve(group)),
      ...group.points.map((point, place) =>
        make("td", { className: "number" }, point ? pointCell(point, changeAt(course, group, place)) : NONE),
      ),
    ),
  );
  const heads = ["Group", "Course", ...course.runs];
  return make(
    "div",
    { className: "scroll", tabIndex: 0, role: "group", "aria-label": "Scores over the runs" },
    make(
      "table",
      { className: "datasets" },
      make("caption", { textContent: "Mean scores with 95 % intervals, and the change on the documents that both runs answered" }),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          ...heads.map((name, place) =>
            make("th", { scope: "col", className: place > 1 ? "number" : "", textContent: name }),
          ),
        ),
      ),
      make("tbody", {}, ...rows),
    ),
  );
}

const changeAt = (course, group, place) => course.steps[place - 1]?.groups.find((item) => item.name === group.name);

function pointCell(point, change) {
  const sure = change && change.p_holm < 0.05 ? (change.difference > 0 ? ", better" : ", worse") : "";
  return make(
    "span",
    { className: "stacked" },
    make("span", {}, text("span", "score", fixed(point.score)), text("span", "soft", ` ${interval(point)}`)),
    point.tasks < point.of ? text("span", "soft", `${count(point.tasks)} of ${plural(point.of, "task")}`) : null,
    change ? text("span", "soft", `${signed(change.difference)}${sure}`) : null,
  );
}

// A line through the scores, 0 to 1, with their intervals.
function curve(group) {
  const [width, height, edge] = [120, 36, 4];
  const shape = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const x = (place) => edge + (place * (width - 2 * edge)) / Math.max(1, group.points.length - 1);
  const y = (score) => height - edge - score * (height - 2 * edge);
  const known = group.points.map((point, place) => ({ ...point, place })).filter((point) => isNumber(point.score));
  const drawing = shape("svg", {
    class: "curve",
    width,
    height,
    role: "img",
    "aria-label": `${group.name}: ${known.map((point) => fixed(point.score)).join(", ")}`,
  });
  for (const point of known.filter((item) => isNumber(item.low)))
    drawing.append(
      shape("line", { class: "spread", x1: x(point.place), x2: x(point.place), y1: y(point.low), y2: y(point.high) }),
    );
  drawing.append(shape("polyline", { points: known.map((point) => `${x(point.place)},${y(point.score)}`).join(" ") }));
  for (const point of known) drawing.append(shape("circle", { cx: x(point.place), cy: y(point.score), r: 2.5 }));
  return drawing;
}

function regressions(step, course) {
  const name = `${course.runs[step.before]} → ${course.runs[step.after]}`;
  if (step.why) return text("p", "note", `${name}: ${step.why}`);
  const more = step.n_regressed > step.regressed.length ? `; the first ${count(step.regressed.length)} are listed` : "";
  return folded(
    `${name}: ${plural(step.n_regressed, "document")}${more}`,
    () =>
      make(
        "ul",
        { className: "regressed" },
        ...step.regressed.map((item) =>
          make(
            "li",
            {},
            link(
              addressWith({ dataset: item.dataset, doc: item.document }, new URLSearchParams()),
              `${item.task} ${item.document}`,
            ),
            text("span", "soft", ` ${fixed(item.before)} → ${fixed(item.after)}`),
          ),
        ),
      ),
    { open: step.n_regressed > 0 && course.steps.length === 1 },
  );
}
