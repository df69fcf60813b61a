// What is shown lives in the address, so that it can be linked and printed: `#view/id?key=value`, or `#key=value` on a
// page of one view. Keys that stand at their default are left out.

const DEFAULTS = {};
let view = "";
let viewId = "";
let parameters = new Map();

function readAddress() {
  const hash = location.hash.slice(1);
  const [path, query = ""] = hash.includes("?") ? hash.split(/\?(.*)/s) : hash.includes("=") ? ["", hash] : [hash];
  const slash = path.indexOf("/");
  view = slash < 0 ? path : path.slice(0, slash);
  viewId = slash < 0 ? "" : decoded(path.slice(slash + 1));
  parameters = new Map(new URLSearchParams(query));
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function option(key, fallback = "") {
  return parameters.get(key) ?? DEFAULTS[key] ?? fallback;
}

// One of the allowed values, or the first of them.
function choice(key, allowed) {
  const value = option(key);
  return allowed.includes(value) ? value : allowed[0];
}

// Texts of a list may hold anything, commas too.
function listOption(key) {
  return option(key).split(",").filter(Boolean).map(decoded);
}

const asList = (values) => values.map((value) => encodeURIComponent(value)).join(",");

// The address of a view with changed keys; null removes one.
function address(target, id = "", changes = {}) {
  const next = new Map(parameters);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === (DEFAULTS[key] ?? "")) next.delete(key);
    else next.set(key, value);
  }
  const query = new URLSearchParams([...next]).toString();
  return `#${target}${id ? `/${encodeURIComponent(id)}` : ""}${query && target ? "?" : ""}${query}`;
}

// Change what is shown without a new step in the browser's history.
function change(changes) {
  history.replaceState(null, "", address(view, viewId, changes));
  readAddress();
  show();
}
