// Whether a result was asked as a paper asked, by the table that `results/rule_table.py` exports; a test holds
// both languages to the same answers. `table` is that table, a record is one of `runs/conditions.py`.

const stable = (value) =>
  JSON.stringify(value, (_, item) => (item && typeof item === "object" && !Array.isArray(item) ? Object.fromEntries(Object.entries(item).sort(([one], [other]) => (one < other ? -1 : 1))) : item));
const same = (one, other) => stable(one) === stable(other);

// A value as it is meant: command lines write numbers, lists and mappings as text.
function readValue(value) {
  if (typeof value !== "string") return value ?? null;
  const text_ = value.trim();
  if (/^(none|null)$/i.test(text_)) return null;
  if (/^(true|false)$/i.test(text_)) return text_.toLowerCase() === "true";
  try {
    return JSON.parse(text_);
  } catch {
    const quoted = /^'([^'\\]*)'$/.exec(text_);
    return quoted ? quoted[1] : text_;
  }
}

const isOneOf = (value, known) => {
  const read = readValue(value);
  return known.some((item) => (typeof read === "boolean") === (typeof item === "boolean") && same(read, item));
};

function effectOf(table, place, name, value) {
  const line = table.settings[place][name];
  if (!Object.hasOwn(table.settings[place], name)) return "moves";
  if (!["harmless", "said"].includes(line[0]) && isOneOf(value, line[1])) return "harmless";
  return line[0];
}

// The settings among some that have an effect; what a template is given stands by name.
function withEffect(table, place, values, effect) {
  const found = [];
  for (const [name, value] of Object.entries(values ?? {})) {
    const inner = table.nested.includes(name) ? readValue(value) : null;
    const isMapping = inner !== null && typeof inner === "object" && !Array.isArray(inner);
    if (isMapping) for (const [key, item] of Object.entries(inner)) found.push(["template", key, item]);
    else if (!table.nested.includes(name)) found.push([place, name, value]);
    else if (!isOneOf(value, table.unset)) found.push(["template", name, value]);
  }
  const settings = new Map(found.filter(([at, name, value]) => effectOf(table, at, name, value) === effect).map(([, name, value]) => [name, frozen(value)]));
  return [...settings].sort(([one], [other]) => (one < other ? -1 : 1));
}

function frozen(value) {
  const read = readValue(value);
  return read !== null && typeof read === "object" ? stable(read) : read;
}

// The settings that make answers differ from the likeliest ones; null where nobody recorded it.
function drawnSettings(table, decoding) {
  const temperature = readValue(decoding.temperature);
  if (temperature === null && "do_sample" in decoding && decoding.do_sample === null) return null;
  if (readValue(decoding.do_sample) !== true && !temperature) return [];
  const names = ["temperature", "top_p", "top_k"].filter((name) => (decoding[name] ?? null) !== null);
  const found = names.map((name) => [name, frozen(decoding[name])]);
  const known = ["do_sample", "seed", ...names];
  const others = withEffect(table, "generation", decoding, "draws").filter(([name]) => !known.includes(name));
  return [...(found.length ? found : [["do_sample", true]]), ...others];
}

function stopsOf(decoding) {
  const until = readValue(decoding.until);
  const found = (Array.isArray(until) ? until : [until]).filter((item) => item !== null && item !== "").map(String);
  return [...new Set(found)].sort();
}

const SHOTS = { zero_shot: 0, cot: 0, five_shot: 5 };
const shotsOf = (strategy) => SHOTS[strategy] ?? (Number(/(\d+)/.exec(strategy)?.[1] ?? 0));
const any = (number) => (isNumber(number) ? number > 0 : null);

function accounted({ asked, observed }) {
  const stated = asked.rows?.n_of_suite ?? 0;
  const rows = observed.n_here ?? observed.n ?? null;
  if (rows === null) return null;
  return rows >= stated ? rows : Math.min(rows + (observed.n_held_out ?? 0) + (observed.n_dropped ?? 0), stated);
}

// Whether answers have fewer tokens than the suite, or the task, gives them; null where nobody says.
function lessRoom({ budget = null, context = null }, [most, share]) {
  if (budget === null) return null;
  return budget < (context === null || share === null ? most : Math.max(1, Math.min(most, Math.trunc(context * share))));
}

const judgeOf = ({ name, model = null, served = [] }) => ({ name, model, request: null, served });

// What requests to judges say besides the question; null where nobody recorded it.
function requestsOf(jury) {
  const found = [...(jury?.judges ?? []), jury?.adjudicator].filter(Boolean).map((one) => one.request ?? null);
  return found.some(Boolean) ? found : null;
}

// What of a record is compared. `room`: of the dataset, as `budget_record` has it.
function factsOf(table, record, room) {
  const { asked = {}, observed = {} } = record;
  const { rows = {}, wording = {}, layout = {}, shots = {}, jury = null, decoding = null } = asked;
  const strategy = asked.strategy ?? "zero_shot";
  const examples = shotsOf(strategy);
  const versions = (observed.versions ?? []).at(-1) ?? {};
  const engine = (observed.engines ?? []).at(-1) ?? null;
  const settings = asked.arguments ?? {};
  const packages = table.rounding_packages.filter((name) => versions[name]).map((name) => [name, versions[name]]);
  const rounding = new Map([...withEffect(table, "model", settings, "close"), ...withEffect(table, "generation", decoding, "close")]);
  if (engine?.dtype) rounding.set("dtype", engine.dtype);
  return {
    strategy,
    version: asked.version ? asked.version.split("-")[0] || null : null,
    wording: wording.kind ?? null,
    artefact: wording.artefact || wording.revision ? [wording.artefact ?? null, wording.revision ?? null] : null,
    prompt: wording.kind ? (wording.hash ?? null) : null,
    examples: examples ? (shots.hash ?? null) : null,
    examples_cut: examples ? any(observed.shots_dropped) : null,
    source: rows.source ?? null,
    revision: rows.revision ?? null,
    rows: rows.hash || null,
    differs: Boolean(rows.differs),
    documents: rows.documents ?? null,
    n: (observed.n ?? null) === (observed.n_here ?? null) ? accounted({ asked, observed }) : (observed.n ?? null),
    n_of_suite: rows.source === "synthetic" ? null : rows.n_of_suite || null,
    held_out: observed.n_held_out ?? null,
    budget: asked.budget ?? null,
    less_room: asked.dataset ? lessRoom(asked, room) : null,
    answers_cut: any(observed.answers_cut),
    context: asked.context ?? null,
    inputs_cut: any(observed.inputs_cut),
    decoding: decoding === null ? null : drawnSettings(table, decoding),
    generation: withEffect(table, "generation", decoding, "moves"),
    stop: decoding === null ? null : stopsOf(decoding),
    seed: asked.seed ?? null,
    arguments: withEffect(table, "model", settings, "moves"),
    variant: [...withEffect(table, "model", settings, "model"), ...withEffect(table, "generation", decoding, "model")],
    brought: withEffect(table, "generation", engine?.generation ?? {}, "moves"),
    rounding: (asked.arguments ?? null) === null ? null : [...rounding].sort(([one], [other]) => (one < other ? -1 : 1)),
    template: layout.chat_template ?? null,
    template_hash: layout.own_template || engine?.template || null,
    own_template: layout.own_template || "",
    local_template: engine?.local_template || "",
    system: layout.system_role ?? null,
    system_text: layout.system_instruction ? `given ${layout.system_instruction}` : "",
    turns: examples ? (layout.shots_as_turns ?? null) : null,
    delimiter: (layout.target_delimiter ?? null) === null ? "" : `given ${layout.target_delimiter}`,
    jury: jury ? [(jury.judges ?? []).map(judgeOf), jury.adjudicator ? judgeOf(jury.adjudicator) : null] : null,
    requests: requestsOf(jury),
    protocol: jury?.protocol ? [jury.protocol, jury.wording ?? null, jury.hash ?? null] : null,
    judged: observed.judged ?? 1,
    engine: asked.engine ?? null,
    versions: packages.length ? packages : null,
  };
}

function gradeOf(table, rule, one, other) {
  const [mine, theirs] = [one[rule.field] ?? null, other[rule.field] ?? null];
  const { field } = rule;
  if (mine === null || theirs === null) {
    const stated = theirs === null ? one : other;
    if (field === "budget" && stated.less_room && stated.answers_cut !== false) return "other";
    if (table.not_of_a_paper.includes(field) || (["n", "documents"].includes(field) && one.source === other.source)) return null;
    if (["examples", "turns"].includes(field) && shotsOf(one.strategy) === 0 && shotsOf(other.strategy) === 0) return null;
    return "close";
  }
  if (field === "budget" && !(one.answers_cut || other.answers_cut)) return one.answers_cut !== null && other.answers_cut !== null ? "close" : "other";
  if (field === "context" && (one.inputs_cut || other.inputs_cut)) return "other";
  if (field === "seed" && same(one.decoding, []) && same(other.decoding, [])) return null;
  if (field === "prompt" && one.wording !== other.wording) return null;
  if (["n", "rows", "revision"].includes(field) && one.source !== other.source) return null;
  const hash = table.said_by[field];
  if (hash && one[hash] && other[hash]) return one[hash] === other[hash] ? "close" : null;
  return rule.moves ? "other" : "close";
}

// {grade, moving: conditions that can move the score}
function comparable(table, one, other) {
  const grades = ["same", "close", "other"];
  const theirs = { ...table.defaults, ...other };
  let worst = 0;
  const moving = [];
  for (const rule of table.rules) {
    if (same(one[rule.field] ?? null, theirs[rule.field] ?? null)) continue;
    const grade = gradeOf(table, rule, one, theirs);
    if (grade === null) continue;
    worst = Math.max(worst, grades.indexOf(grade));
    if (grade === "other" && !moving.includes(rule.title)) moving.push(rule.title);
  }
  return { grade: grades[worst], moving };
}

// Whether a score rests on all rows, answers and judgements.
function isWhole({ asked = {}, observed = {} }, n) {
  const synthetic = asked.rows?.source === "synthetic";
  const stated = synthetic ? 0 : (asked.rows?.n_of_suite ?? 0);
  const lacks = stated > 0 && (accounted({ asked, observed }) ?? 0) < stated;
  const short = (isNumber(observed.n_here) && n < observed.n_here) || lacks || (observed.n_faulty ?? 0) > 0;
  return !short && (observed.judged ?? 1) === 1;
}

// The mean over parts, each the mean of its tasks that have a score.
function weightsOf(suite, scored) {
  const parts = suite.parts.map((part) => part.filter((name) => scored.has(name))).filter((part) => part.length);
  const weights = new Map();
  for (const part of parts) for (const name of part) weights.set(name, (weights.get(name) ?? 0) + 1 / parts.length / part.length);
  return weights;
}

const meanOf = (weights, scores) => [...weights].reduce((sum, [name, weight]) => sum + weight * scores[name], 0);
