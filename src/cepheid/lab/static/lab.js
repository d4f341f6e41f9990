// The page: a query and events, matched again at every change.

import { byId, copy, h } from "./dom.js";
import { Editor } from "./editor.js";
import { Lanes } from "./lanes.js";
import { decode, encode, LONGEST } from "./link.js";
import { download, htmlPanel, matchesPanel, textPanel, whyNotPanel } from "./panels.js";
import { isMoment, timeText } from "./times.js";

const TABS = [
  ["matches", "Matches"], ["why", "Why"], ["why-not", "Why not these"], ["funnel", "Funnel"],
  ["plan", "Plan"], ["python", "Python"], ["command", "Command"], ["case", "Keep as test"],
];

const state = {
  situation: null,  // query, events { columns, rows }, time, type, tie, unit, params, source, sample
  answer: null,     // the last matches
  lit: null,        // the match that is lit
  chosen: new Set(),
  lane: null,       // the column of the lanes
  tab: "matches",
  verdict: null,
  wrong: false,     // whether the last query had a mistake
  words: null,
  version: 0,       // grows with every change
};

const soon = (work, delay) => {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(work, delay); };
};

// ── asking ──

async function ask(task, body) {
  const response = await fetch(`ask/${task}`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  if (!response.ok) return { problem: await response.text() };
  return response.json();
}

async function tried(task, body) {
  try {
    return await ask(task, body);
  } catch {
    return { problem: "the lab doesn't answer: has its command ended?" };
  }
}

// ── the situation ──

const columns = () => state.situation.events.columns;
const column = (name) => columns().findIndex((c) => c.name === name);
const rows = () => state.situation.events.rows;
const timeColumn = () => column(state.situation.time);
const moments = () => isMoment(columns()[timeColumn()]?.type ?? "");

function take(situation) {
  state.situation = situation;
  state.answer = state.lit = state.verdict = null;
  state.wrong = false;
  state.chosen.clear();
  editor.text = situation.query;
  state.lane = null;
  lanes.view = null;
  eventsChanged();
}

// The events are others: what is completed and the lanes follow.
function eventsChanged() {
  const { type } = state.situation;
  const types = type === null ? [] : [...new Set(rows().map((row) => row[column(type)]))]
    .filter((name) => name !== null).sort().slice(0, 500);
  editor.words = {
    ...state.words,
    types: types.map((name) => ({ name: String(name), doc: "a type of events" })),
    columns: columns().map((c) => ({ name: c.name, doc: c.type })),
  };
  const fit = columns().map((c) => c.name).filter((name) => name !== state.situation.time);
  if (state.lane === null || !fit.includes(state.lane)) {
    state.lane = type ?? fit[0] ?? state.situation.time;
  }
  byId("lanes-by").replaceChildren(...fit.map((name) =>
    h("option", { value: name, selected: name === state.lane }, name)));
  const { sample } = state.situation;
  byId("sample").hidden = !sample;
  byId("sample").textContent = sample ? `${sample}, of ${state.situation.source}` : "";
  changed();
}

// The events were changed by hand, so they are no longer those of a file.
function edited() {
  state.situation.source = "";
  state.situation.sample = null;
}

function changed() {
  state.version += 1;
  state.situation.query = editor.text;
  draw(true);
  matchSoon();
  waitSoon();
  linkSoon();
}

// What takes long says so.
const waitSoon = soon(() => {
  if (Number(byId("status").dataset.version) === state.version) return;
  byId("status").className = "";
  byId("status").textContent = "matching …";
}, 400);

let matching = false;
const matchSoon = soon(match, 15);

async function match() {
  if (matching) return;  // it looks again when it is done
  matching = true;
  const { version } = state;
  const began = performance.now();
  const answer = await tried("match", state.situation);
  matching = false;
  if (version !== state.version || answer.superseded) {
    matchSoon();
    return;
  }
  found(answer, performance.now() - began);
}

function found(answer, took) {
  const findings = answer.diagnostics ?? [];
  editor.mark(findings);
  byId("findings").replaceChildren(...findings.map((f) => h("li", null,
    h("button", { class: "link", onclick: () => editor.goTo(f.start) }, f.code), " ", f.message,
    f.hint ? h("span", { class: "soft" }, ` – ${f.hint}`) : null)),
  ...(answer.problem ? [h("li", null, answer.problem)] : []));
  const good = Boolean(answer.matches);
  state.wrong = !good;
  const number = answer.matches?.length ?? 0;
  const status = byId("status");
  status.className = good ? (number ? "good" : "") : "bad";
  const count = `${answer.complete === false ? "more than " : ""}${number.toLocaleString("en-US")}`;
  status.textContent = good
    ? `${count} ${number === 1 ? "match" : "matches"} in ${rows().length.toLocaleString("en-US")} events · ${Math.round(took)} ms`
    : answer.problem ? "stopped" : `${findings.length} ${findings.length === 1 ? "mistake" : "mistakes"}`;
  status.dataset.version = String(state.version);
  if (good) {
    const before = state.lit && JSON.stringify(state.lit.rows);
    state.answer = answer;
    state.lit = before === null ? null
      : answer.matches.find((m) => JSON.stringify(m.rows) === before) ?? null;
  }
  draw(!good);
  panelSoon();
}

// ── drawing ──

function draw(stale = false) {
  const lane = column(state.lane);
  lanes.show({
    rows: rows(), time: timeColumn(), lane, moments: moments(), stale,
    matches: (state.answer?.matches ?? []).filter((m) =>
      Object.values(m.rows).flat().every((row) => row < rows().length)),
    lit: state.lit, chosen: state.chosen,
  });
  drawChosen();
}

function drawChosen() {
  const place = byId("chosen");
  const chosen = [...state.chosen].sort((a, b) => a - b);
  if (!chosen.length) {
    place.dataset.rows = "";
    place.replaceChildren(h("p", { class: "hint" },
      "Click events to choose them, drag to move them, double-click a lane to add one."));
    return;
  }
  const label = (row) => {
    const type = state.situation.type === null ? "" : rows()[row][column(state.situation.type)];
    return `${type ?? ""}@${timeText(rows()[row][timeColumn()], moments())}`;
  };
  // Fields stay where they are: one may be about to be filled in.
  if (place.dataset.rows === chosen.join()) {
    place.querySelectorAll(".chip").forEach((chip, n) => { chip.textContent = label(chosen[n]); });
    place.querySelectorAll(".fields input").forEach((field, n) => {
      const wrong = field.getAttribute("aria-invalid") === "true";
      if (field !== document.activeElement && !wrong) field.value = fieldText(chosen[0], n);
    });
    return;
  }
  place.dataset.rows = chosen.join();
  const chips = chosen.map((row) => h("button", {
    class: "chip", title: `row ${row}: click to leave it out`, onclick: () => choose(row),
  }, label(row)));
  const tools = h("div", { class: "bar" },
    h("button", { class: "main", id: "ask-why-not", onclick: whyNot }, "Why not these?"),
    h("button", { onclick: removeChosen }, chosen.length === 1 ? "Delete event" : "Delete events"),
    h("button", { onclick: () => { state.chosen.clear(); draw(); } }, "Clear"));
  const fields = chosen.length === 1 ? fieldsOf(chosen[0]) : null;
  place.replaceChildren(h("div", { class: "chips" }, chips), ...(fields ? [fields] : []), tools);
}

function fieldsOf(row) {
  return h("div", { class: "fields" }, columns().map((c, n) => {
    const field = h("input", {
      value: fieldText(row, n), placeholder: "no value", "aria-label": c.name, autocomplete: "off",
      onchange: () => { setValue(row, n, field); },
    });
    return h("label", { title: c.type }, h("span", null, c.name), field);
  }));
}

// A moment as people write it, in UTC; other times are integers.
function fieldText(row, n) {
  const value = rows()[row][n];
  if (value === null) return "";
  return n === timeColumn() && moments() ? timeText(value, true) : String(value);
}

function readTime(text) {
  if (!moments() || /^-?\d+$/.test(text)) return Number(text);
  const zone = /(z|[+-]\d\d:?\d\d)$/i.test(text) ? "" : "Z";
  return 1000 * Date.parse(text.replace(" ", "T") + zone);
}

function setValue(row, n, field) {
  const { type } = columns()[n];
  const text = field.value.trim();
  const isNumber = /^(byte|tinyint|short|smallint|int|integer|long|bigint|float|real|double)$/.test(type);
  let value = text;
  if (text === "" && !(type === "string" && rows()[row][n] === "")) value = null;
  else if (n === timeColumn()) value = readTime(text);
  else if (isNumber && !/^-?\d{16,}$/.test(text)) value = Number(text);  // longer ones stay exact as texts
  else if (type === "boolean") value = text === "true";
  const wrong = (typeof value === "number" && Number.isNaN(value))
    || (type === "boolean" && !["true", "false", ""].includes(text));
  field.setAttribute("aria-invalid", String(wrong));
  if (wrong) return;
  rows()[row][n] = value;
  edited();
  eventsChanged();
}

// ── events by hand ──

function choose(row) {
  if (!state.chosen.delete(row)) state.chosen.add(row);
  draw();
}

function move(row, time, done) {
  rows()[row][timeColumn()] = time;
  edited();
  if (done) eventsChanged();
  else changed();
}

function add(name, time) {
  const lane = column(state.lane);
  const row = columns().map(() => null);
  const like = rows().find((known) => String(known[lane]) === name) ?? rows()[0];
  if (like) like.forEach((value, n) => { row[n] = value; });
  row[timeColumn()] = time;
  rows().push(row);
  state.chosen = new Set([rows().length - 1]);
  edited();
  eventsChanged();
}

function removeChosen() {
  state.situation.events.rows = rows().filter((_, n) => !state.chosen.has(n));
  state.chosen.clear();
  state.lit = state.answer = null;
  edited();
  eventsChanged();
}

async function whyNot() {
  state.tab = "why-not";
  state.verdict = null;
  drawTabs();
  byId("panel").replaceChildren(h("p", { class: "soft" }, "Looking …"));
  const verdict = await tried("why-not", { ...state.situation, rows: [...state.chosen] });
  if (verdict.superseded) return;
  state.verdict = verdict;
  drawPanel();
}

// ── events as text ──

// What was typed before the answer came stays.
async function showText() {
  const field = byId("events-text");
  field.value = "";
  const { text, problem } = await tried("write", state.situation);
  if (field.value !== "") return;
  field.value = text ?? "";
  byId("events-problem").textContent = problem ?? "";
}

const NUMBER = /^(byte|short|int|long|float|double|decimal)/;

// Whether a column of this type can have the values that were typed, whose type is `read`.
function holds(type, read) {
  if (read === "long") return NUMBER.test(type);
  if (read === "double") return /^(float|double|decimal)/.test(type);
  if (read === "string") return !NUMBER.test(type) && type !== "boolean";
  return type === read;
}

const readSoon = soon(async () => {
  const text = byId("events-text").value;
  const { events, problem } = await tried("read", { text });
  if (byId("events-text").value !== text) return;
  byId("events-problem").textContent = problem ?? "";
  if (!events) return;
  const { situation } = state;
  const known = new Map(columns().map((c) => [c.name, c.type]));
  const wasMoments = moments();
  for (const c of events.columns) {
    if (c.name === "ts") {
      c.name = situation.time;
      if (isMoment(c.type) && wasMoments) c.type = known.get(c.name);
    } else if (c.name === "type" && situation.type !== null) {
      c.name = situation.type;
    } else if (known.has(c.name) && holds(known.get(c.name), c.type)) {
      c.type = known.get(c.name);
    }
  }
  situation.events = events;
  state.chosen.clear();
  state.answer = state.lit = null;
  lanes.view = null;
  edited();
  eventsChanged();
}, 120);

function showAs(text) {
  byId("as-lanes").setAttribute("aria-pressed", String(!text));
  byId("as-text").setAttribute("aria-pressed", String(text));
  byId("typed").hidden = !text;
  for (const id of ["lanes", "lane-tools", "chosen"]) byId(id).hidden = text;
  if (text) showText();
  else draw();
}

// ── panels ──

function drawTabs() {
  document.querySelector(".tabs").replaceChildren(...TABS.map(([id, name]) => h("button", {
    role: "tab", id: `tab-${id}`, "aria-selected": String(id === state.tab),
    onclick: () => { state.tab = id; drawTabs(); drawPanel(); },
  }, name)));
}

const panelSoon = soon(() => drawPanel(), 60);

async function drawPanel() {
  const { tab, version } = state;
  const panel = byId("panel");
  const show = (parts) => panel.replaceChildren(...parts.filter(Boolean));
  if (tab === "matches") {
    const { answer, wrong } = state;
    const known = { rows: rows(), time: timeColumn(), moments: moments() };
    const older = wrong ? h("p", { class: "hint" }, "These are the matches before the last change.") : null;
    if (answer && !(wrong && !answer.matches.length)) show([older, ...matchesPanel(answer, known, panelActions)]);
    else show([h("p", { class: "empty" }, state.wrong ? "No matches yet: the query has a mistake." : "Matching …")]);
    return;
  }
  if (tab === "why-not") {
    show(state.verdict ? whyNotPanel(state.verdict, panelActions)
      : [h("p", { class: "empty" }, "Click events that should have matched, then “Why not these?”.")]);
    return;
  }
  const answer = await tried(tab === "python" || tab === "command" ? "code" : tab, state.situation);
  if (answer.superseded || tab !== state.tab || version !== state.version) return;
  if (answer.problem) show([h("p", { class: "problem" }, h("pre", null, answer.problem))]);
  else if (answer.html) show(htmlPanel(answer.html));
  else if (tab === "case") {
    show(textPanel(answer.case, h("p", { class: "hint" },
      "A case for tests/corpus. Its matches are those on this page: keep it if they are right.")));
  } else {
    const file = answer.lines ? h("button", { onclick: () => download("events.jsonl", answer.lines) }, "Save events.jsonl") : null;
    show(textPanel(answer[tab], file));
  }
}

const panelActions = {
  lit: () => state.lit,
  match: (n) => {
    const match = state.answer?.matches[n];
    state.lit = state.lit === match ? null : match ?? null;
    if (state.lit) lanes.reveal(state.lit);
    draw();
    drawPanel();
  },
  tab: (id) => { state.tab = id; drawTabs(); drawPanel(); },
  apply: (text) => {
    editor.text = text;
    state.tab = "matches";
    drawTabs();
    changed();
  },
};

// ── the address ──

const linkSoon = soon(async () => {
  const { version } = state;
  const packed = await encode(state.situation);
  if (version !== state.version) return;
  const button = byId("copy-link");
  button.disabled = packed.length > LONGEST;
  button.title = button.disabled ? "These are too many events for an address: take fewer"
    : "The address reproduces this query and these events";
  own = packed.length > LONGEST ? "" : `#${packed}`;
  history.replaceState(null, "", own || location.pathname);
}, 350);
let own = "";

async function fromAddress() {
  if (location.hash.length < 2) return null;
  try {
    const situation = await decode(location.hash.slice(1));
    const fits = situation && typeof situation.query === "string" && typeof situation.time === "string"
      && Array.isArray(situation.events?.columns) && Array.isArray(situation.events?.rows)
      && situation.events.columns.some((c) => c.name === situation.time);
    if (fits) return { type: null, tie: null, unit: null, params: {}, source: "", sample: null, ...situation };
  } catch { /* a damaged link */ }
  byId("findings").replaceChildren(h("li", null, "This link is damaged: the page begins as usual."));
  return null;
}

// ── beginning ──

const editor = new Editor(byId("editor"), changed);
const lanes = new Lanes(byId("lanes"), { choose, move, add, match: panelActions.match });

function snippet(recipes, number) {
  const recipe = recipes[number];
  tried("read", { text: recipe.events }).then(({ events }) => {
    take({ query: recipe.query, events, time: "ts", type: recipe.typed ? "type" : null,
      tie: null, unit: null, params: {}, source: "", sample: null });
    if (!byId("typed").hidden) showText();
  });
}

async function begin() {
  drawTabs();
  let start;
  try {
    start = await (await fetch("start")).json();
  } catch {
    byId("status").textContent = "the lab doesn't answer: has its command ended?";
    return;
  }
  state.words = start.words;
  const list = byId("snippets");
  list.append(...start.snippets.map((recipe, n) => h("option", { value: n }, recipe.title)));
  list.addEventListener("change", () => {
    if (list.value !== "") snippet(start.snippets, Number(list.value));
    list.value = "";
  });
  byId("copy-link").addEventListener("click", async (event) => {
    await copy(location.href.split("#")[0] + own, event.currentTarget ?? byId("copy-link"));
  });
  byId("lanes-by").addEventListener("change", (event) => { state.lane = event.target.value; draw(); });
  byId("zoom-in").addEventListener("click", () => lanes.zoom(0.5));
  byId("zoom-out").addEventListener("click", () => lanes.zoom(2));
  byId("zoom-all").addEventListener("click", () => lanes.all());
  byId("add-event").addEventListener("click", () => add(lanes.frame?.shown[0], lanes.middle));
  byId("as-lanes").addEventListener("click", () => showAs(false));
  byId("as-text").addEventListener("click", () => showAs(true));
  byId("events-text").addEventListener("input", readSoon);
  window.addEventListener("hashchange", async () => {
    if (location.hash === own) return;
    const situation = await fromAddress();
    if (situation) take(situation);
  });
  take((await fromAddress()) ?? start.situation);
  byId("work").inert = false;
}

begin();
