// Elements, numbers as texts, the tooltip.

// Attributes that are not properties are given with a dash (`aria-label`, `data-key`).
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  setAll(element, properties);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function setAll(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || (name === "title" && !value)) continue;
    if (name.includes("-") || name === "role" || name === "scope") element.setAttribute(name, value);
    else element[name] = value;
  }
}

const text = (tag, className, content) => make(tag, { className, textContent: content });
const link = (target, content, properties = {}) => make("a", { href: target, textContent: content, ...properties });

// A section of a part.
function titled(heading, ...content) {
  return make("section", {}, make("h3", { textContent: heading }), ...content);
}

function note(...content) {
  return make("p", { className: "note" }, ...content);
}

// A part of a view that is built when it is opened, or when it is printed with `open`.
function folded(summary, build, { open = false, className = "" } = {}) {
  const details = make("details", { className, open }, make("summary", { textContent: summary }));
  let built = false;
  const fill = () => {
    if (built || !details.open) return;
    built = true;
    details.append(...[build()].flat().filter(Boolean));
  };
  details.addEventListener("toggle", fill);
  fill();
  return details;
}

// A row of buttons of which one is pressed.
function switcher(label, key, options, current) {
  const group = make(
    "div",
    { className: "switch", role: "group", "aria-label": label },
    text("span", "switch-label", label),
  );
  for (const [value, title] of options) {
    group.append(
      make("button", {
        type: "button",
        textContent: title,
        "aria-pressed": String(value === current),
        "data-key": `${key}=${value}`,
        onclick: () => change({ [key]: value === options[0][0] ? null : value }),
      }),
    );
  }
  return group;
}

function selector(label, key, options, current) {
  const select = make("select", { "data-key": `select ${key}`, onchange: () => change({ [key]: select.value }) });
  for (const [value, title] of options)
    select.append(make("option", { value, textContent: title, selected: value === current }));
  return make("label", { className: "select" }, text("span", "switch-label", label), select);
}

function smallButton(title, changes) {
  return make("button", {
    type: "button",
    className: "small",
    textContent: title,
    "data-key": `button ${title}`,
    onclick: () => change(changes),
  });
}

// ------------------------------------------------------------------ numbers

const NONE = "–";
const isNumber = (value) => typeof value === "number";
const fixed = (value, digits = 3) => {
  if (!isNumber(value)) return NONE;
  const shown = value.toFixed(digits);
  return (Number(shown) === 0 ? shown.replace("-", "") : shown).replace("-", "−");
};
const signed = (value, digits = 3) =>
  isNumber(value) && Number(value.toFixed(digits)) > 0 ? `+${fixed(value, digits)}` : fixed(value, digits);
const percent = (value) => {
  if (!isNumber(value)) return NONE;
  const shown = (100 * value).toFixed(1);
  // a share that is not all, or not nothing, must not look as if it were
  if (shown === "100.0" && value < 1) return ">99.9 %";
  if (shown === "0.0" && value > 0) return "<0.1 %";
  return `${shown} %`;
};
const count = (value) => (isNumber(value) ? value.toLocaleString("en-GB") : NONE);
const dollars = (value) => {
  if (!isNumber(value)) return NONE;
  return value >= 100
    ? `$${count(Math.round(value))}`
    : value >= 0.01 || value === 0
      ? `$${value.toFixed(2)}`
      : "<$0.01";
};
const probability = (value) => (!isNumber(value) ? NONE : value < 0.001 ? "<0.001" : value.toFixed(3));
const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

function interval({ low, high, approximate, rough, ofPaper }, format = fixed) {
  if (!isNumber(low) || !isNumber(high)) return `[${NONE}]`;
  return `${approximate ? "≈ " : ""}[${format(low)}, ${format(high)}]${rough ? "~" : ""}${ofPaper ? "p" : ""}`;
}

// Round numbers inside a range, about `wanted` of them.
function ticks(low, high, wanted = 5) {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step)
    found.push(Number(value.toFixed(10)));
  return found;
}

// ------------------------------------------------------------------ names that lead somewhere

const tag = (kind, title, hint) => make("span", { className: `tag ${kind}`, textContent: title, title: hint ?? "" });
const modelAddress = (entry) => address("model", entries[entry].label);
const taskAddress = (task) => address("task", datasets[task].id);

function modelLink(entry) {
  const { label, sample, limited, estimates, kind } = entries[entry];
  const parts = [link(modelAddress(entry), ownEntries.length ? label : withoutOrigin(label), { className: "name" })];
  if (sample) parts.push(tag("sample", "SAMPLE", "Synthetic rows: the score means nothing"));
  if (estimates.length)
    parts.push(tag("partial", estimates.join("; "), "Documents were drawn (--error): compared by its interval alone, and in no rank"));
  else if (limited) parts.push(tag("partial", "limited", "Of some tasks, or of all, only some documents were asked"));
  if (kind === "published" && ownEntries.length && !/published/i.test(label)) parts.push(tag("", "published"));
  return make("span", { className: "model" }, ...parts);
}

// Where all models are published, their names need not say so.
const withoutOrigin = (label) => label.replace(/,? ?\(?published\)$/, (end) => (end.startsWith(",") ? ")" : ""));

// The label of an entry where no mark can stand beside it.
const markedName = (entry) => [entries[entry].label, entries[entry].sample ? "SAMPLE" : null].filter(Boolean).join(" · ");

function taskLink(task) {
  return link(taskAddress(task), datasets[task].name, { title: datasets[task].summary });
}

// ------------------------------------------------------------------ tooltip

const tipBox = document.getElementById("tip");
const tips = new WeakMap(); // element -> lines

function withTip(element, ...lines) {
  tips.set(element, lines);
  return element;
}

function showTip(lines, x, y) {
  tipBox.replaceChildren(...lines.filter(Boolean).map((line, index) => text(index ? "span" : "strong", "", line)));
  tipBox.hidden = false;
  const { width, height } = tipBox.getBoundingClientRect();
  const left = Math.max(4, Math.min(x + 12, innerWidth - width - 8));
  const top = y + height + 20 > innerHeight ? y - height - 10 : y + 16;
  tipBox.style.left = `${left}px`;
  tipBox.style.top = `${Math.max(4, top)}px`;
}

function hideTip() {
  tipBox.hidden = true;
}

function tipOf(target) {
  for (let element = target; element; element = element.parentElement) if (tips.has(element)) return element;
  return null;
}

function tipAtPointer(event) {
  if (event.target.closest?.(".drawing")) return; // pictures show their own
  const element = tipOf(event.target);
  if (element) showTip(tips.get(element), event.clientX, event.clientY);
  else hideTip();
}
document.addEventListener("pointermove", tipAtPointer);
document.addEventListener("pointerdown", tipAtPointer);
document.addEventListener("focusin", (event) => {
  const element = tipOf(event.target);
  if (!element || !event.target.matches(":focus-visible")) return hideTip();
  const box = element.getBoundingClientRect();
  return showTip(tips.get(element), box.left + box.width / 2, box.bottom);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
});
addEventListener("scroll", hideTip, { passive: true });
