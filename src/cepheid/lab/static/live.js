// The page beside a stream: it asks every second what is new, also while the stream is down.

import { byId, h, s, table } from "./dom.js";

const KEPT = 400;
let batches = [];

const number = (value) => (value > 0 && value < 10 ? Math.round(value * 10) / 10 : Math.round(value))
  .toLocaleString("en-US");

function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let power = 0, left = bytes;
  while (left >= 1000 && power < units.length - 1) { left /= 1000; power += 1; }
  return `${power ? left.toFixed(1) : left} ${units[power]}`;
}

function long(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

const rate = (batch) => (batch.seconds ? batch.events / batch.seconds : 0);
const moment = (time, integers) => (integers ? number(time)
  : new Date(time).toISOString().replace("T", " ").slice(0, 19));

// A time is large, its day is small.
function timeTile(name, time, integers) {
  if (time === null) return tile(name, "–");
  if (integers) return tile(name, number(time));
  const [day, clock] = moment(time, false).split(" ");
  return tile(`${name}, ${day}`, clock);
}

function tile(name, value, bad = false) {
  return h("div", { class: bad ? "tile bad" : "tile" }, h("b", null, value), h("span", null, name));
}

function tiles(last) {
  const { totals } = last;
  // Time goes on with the events: a stream of old events is behind by nothing that a clock can tell.
  const newest = [...batches].reverse().find((batch) => batch.newest !== null)?.newest ?? null;
  const away = newest === null || last.integers ? null : (Date.now() - newest) / 1000;
  const lag = away !== null && Math.abs(away) < 86400 * 2 ? long(Math.max(0, away)) : null;
  const busy = [...batches].reverse().find((batch) => batch.events > 0) ?? last;
  const left = totals.late + totals.rejected + totals.future;
  return [
    tile("events per second", number(rate(busy))),
    lag !== null ? tile("behind the newest event", lag)
      : timeTile("newest event", newest, last.integers),
    timeTile("watermark", last.watermark, last.integers),
    tile("events of this run", number(totals.events)), tile("matches of this run", number(totals.matches)),
    tile("held in state", `${number(last.held)} · ${size(last.size)}`),
    tile("late", number(totals.late), totals.late > 0),
    tile(totals.future ? "rejected, or ahead of the clock" : "rejected",
      number(totals.rejected + totals.future), left - totals.late > 0),
    tile("batches of this run", number(totals.batches)),
    ...(totals.shed ? [tile("shed", number(totals.shed), true)] : []),
    ...(last.waiting ? [tile("files waiting", number(last.waiting))] : []),
  ];
}

function chart(values, ends, label) {
  if (!values.length) return [h("p", { class: "empty" }, "No batch yet.")];
  const most = Math.max(...values, 1e-9);
  const drawn = values.length === 1 ? [values[0], values[0]] : values;  // of one batch a level line
  const x = (n) => (1000 * n) / (drawn.length - 1);
  const y = (value) => 96 - (90 * value) / most;
  const points = drawn.map((value, n) => `${x(n)},${y(value)}`).join(" ");
  return [
    s("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", class: "chart", role: "img", "aria-label": label },
      s("polygon", { points: `0,96 ${points} 1000,96`, class: "under" }),
      s("polyline", { points, class: "line" }),
      s("line", { x1: 0, x2: 1000, y1: 96, y2: 96, class: "base" })),
    h("p", { class: "ends" }, h("span", null, ends[0]), h("span", null, label), h("span", null, ends[1])),
  ];
}

function show(state) {
  const status = byId("status");
  const say = (kind, text) => {
    status.className = kind;
    status.replaceChildren(h("span", { class: "dot" }), text);
  };
  if (state.waiting) {
    say("", state.waiting);
    return;
  }
  const known = new Set(batches.map((batch) => batch.at));
  batches = [...batches, ...state.batches.filter((batch) => !known.has(batch.at))].slice(-KEPT);
  byId("query-text").textContent = state.run.query;
  const last = batches.at(-1);
  if (!last) {
    say("", "the stream has begun; no batch yet");
    return;
  }
  const age = (Date.now() - last.at) / 1000;
  const runs = state.runs > 1 ? `, run ${state.runs} of this checkpoint` : "";
  if (state.ended) say("", `ended${runs}; last batch ${long(age)} ago`);
  else say(age < 120 ? "good" : "", `batch ${number(last.batch)}, ${long(age)} ago${runs}`);
  byId("tiles").replaceChildren(...tiles(last));
  const busy = batches.filter((batch) => batch.events > 0);
  const ends = (list) => (list.length ? [moment(list[0].at).slice(11), moment(list.at(-1).at).slice(11)] : ["", ""]);
  const rates = busy.map(rate);
  byId("rate").replaceChildren(...chart(rates, ends(busy), `up to ${number(Math.max(0, ...rates))} events/s`));
  const seconds = batches.map((batch) => batch.seconds);
  byId("seconds").replaceChildren(...chart(seconds, ends(batches), `up to ${Math.max(0, ...seconds).toFixed(1)} s`));
  byId("rules-section").hidden = !state.rules.length;
  byId("rules").replaceChildren(table(["rule", "matches"], state.rules.map((rule) =>
    h("tr", null, h("td", null, rule.name), h("td", null, number(rule.matches))))));
  const columns = state.matches.length ? Object.keys(state.matches[0]) : [];
  byId("newest").replaceChildren(state.matches.length
    ? table(columns, state.matches.map((row) => h("tr", null, columns.map((name) => h("td", null, row[name] ?? "")))), { class: "matches" })
    : h("p", { class: "empty" }, "No match yet."));
}

async function look() {
  try {
    const after = batches.length ? batches.at(-1).at : 0;
    const response = await fetch(`state?after=${after}`);
    if (!response.ok) throw new Error(await response.text());
    show(await response.json());
  } catch {
    const status = byId("status");
    status.className = "bad";
    status.replaceChildren(h("span", { class: "dot" }),
      "no answer: the command has ended; this page goes on when it is started again");
  }
  setTimeout(look, 1000);
}

look();
