// Elements, numbers as texts, the tooltip.

// Attributes that are not properties are given with a dash (`aria-label`, `data-key`).
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  setAll(element, properties);
  element.append(...children.filter(isGiven));
  return element;
}

const isGiven = (value) => value !== null && value !== undefined;

function setAll(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (!isGiven(value) || (name === "title" && !value)) continue;
    if (name.includes("-") || name === "role" || name === "scope") element.setAttribute(name, value);
    else element[name] = value;
  }
}

const text = (tag, className, content) => make(tag, { className, textContent: content });
const link = (target, content, properties = {}) => make("a", { href: target, textContent: content, ...properties });

// A section of a part.
const titled = (heading, ...content) => make("section", {}, make("h3", { textContent: heading }), ...content);
const note = (...content) => make("p", { className: "note" }, ...content);
const controls = (...content) => make("div", { className: "controls" }, ...content);

// A list of items, each a text, a node or several of them.
const bullets = (items, className = "") =>
  make("ul", { className }, ...items.map((item) => make("li", {}, ...[item].flat().filter(isGiven))));

// Terms and what they mean, [[term, meaning: text or node]]: below each other, or as `facts` beside each other.
const termList = (pairs, className = "words") =>
  make("dl", { className }, ...pairs.flatMap(([term, meaning]) => [make("dt", {}, term), make("dd", {}, meaning)]));
const factList = (pairs, className = "facts") =>
  make(
    "dl",
    { className },
    ...pairs
      .filter(([, meaning]) => isGiven(meaning) && meaning !== "")
      .map(([term, meaning]) => make("div", {}, make("dt", {}, term), make("dd", {}, meaning))),
  );

// What is wider or higher than its room scrolls, for the keyboard, too.
const scrollBox = (label, className, ...content) =>
  make("div", { className: `scroll ${className}`.trim(), tabIndex: 0, role: "region", "aria-label": label }, ...content);

// A part of a view that is built when it is opened, and on paper.
function folded(summary, build, { open = onPaper, className = "" } = {}) {
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

const button = (title, onclick, properties = {}) =>
  make("button", { type: "button", className: "small", textContent: title, onclick, ...properties });
const smallButton = (title, changes) => button(title, () => change(changes), { "data-key": `button ${title}` });

// A row of buttons of which one is pressed.
function switcher(label, key, options, current) {
  const buttons = options.map(([value, title]) =>
    button(title, () => change({ [key]: value === options[0][0] ? null : value }), {
      className: "",
      "aria-pressed": String(value === current),
      "data-key": `${key}=${value}`,
    }),
  );
  const name = text("span", "switch-label", label);
  return make("div", { className: "switch", role: "group", "aria-label": label }, name, ...buttons);
}

function selector(label, key, options, current, also = {}) {
  const select = make("select", {
    "data-key": `select ${key}`,
    onchange: () => change({ [key]: select.value, ...also }),
  });
  for (const [value, title] of options)
    select.append(make("option", { value, textContent: title, selected: value === current }));
  return make("label", { className: "select" }, text("span", "switch-label", label), select);
}

// A search whose words stand in the address.
function searchBox(key, placeholder, label, properties = {}) {
  const box = make("input", {
    type: "search",
    id: key === "q" ? "search" : key,
    "data-key": key,
    value: option(key),
    placeholder,
    "aria-label": label,
    oninput: () => change({ [key]: box.value || null }),
    ...properties,
  });
  return box;
}

// ------------------------------------------------------------------ numbers

const NONE = "–";
const isNumber = (value) => typeof value === "number";
const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => (values.length ? sum(values) / values.length : null);
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
  if (value >= 100) return `$${count(Math.round(value))}`;
  return value >= 0.01 || value === 0 ? `$${value.toFixed(2)}` : "<$0.01";
};
const probability = (value) => (!isNumber(value) ? NONE : value < 0.001 ? "<0.001" : value.toFixed(3));
const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

function interval({ low, high, approximate, rough, ofPaper }, format = fixed) {
  if (!isNumber(low) || !isNumber(high)) return `[${NONE}]`;
  return `${approximate ? "≈ " : ""}[${format(low)}, ${format(high)}]${rough ? "~" : ""}${ofPaper ? "p" : ""}`;
}

// Items in groups by a key, each group in the order in which it is met first.
function grouped(items, keyOf) {
  const found = new Map();
  for (const item of items) found.set(keyOf(item), [...(found.get(keyOf(item)) ?? []), item]);
  return [...found.values()];
}

// ------------------------------------------------------------------ names that lead somewhere

const sampleTag = () => tag("sample", "SAMPLE", "Synthetic rows: the score means nothing");
const tag = (kind, title, hint) => make("span", { className: `tag ${kind}`, textContent: title, title: hint ?? "" });
const modelAddress = (entry) => address("model", entries[entry].label);
const taskAddress = (task) => address("task", datasets[task].id);

const DRAWN = "Documents were drawn (--error): compared only by its interval, and in no rank";

function modelLink(entry) {
  const { label, sample, limited, estimates, kind } = entries[entry];
  const parts = [link(modelAddress(entry), ownEntries.length ? label : withoutOrigin(label), { className: "name" })];
  if (sample) parts.push(sampleTag());
  if (estimates.length)
    parts.push(tag("partial", estimates.join("; "), DRAWN));
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
