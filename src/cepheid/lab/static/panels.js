// What stands below the query and the events: matches, reports, code.

import { copy, h, table } from "./dom.js";
import { spanText, timeText } from "./times.js";

const ROWS = 200;

export function matchesPanel(answer, situation, on) {
  const { matches, returned, variables, answers } = answer;
  const moments = situation.moments;
  const parts = [];
  if (answers) {
    parts.push(h("h3", null, "Answers"), plainTable(returned), h("h3", null, "Matches"));
  }
  if (!matches.length) {
    return [...parts, h("p", { class: "empty" },
      "No match. Click events that should have matched, or see ",
      h("button", { class: "link", onclick: () => on.tab("why") }, "why"), "."), adviceOf(answer)];
  }
  const names = variables.filter((v) => !v.negated).map((v) => v.name);
  const columns = answers ? [] : returned.columns;
  const rows = matches.slice(0, ROWS).map((match, n) => h("tr", {
    class: match === on.lit() ? "lit" : "", tabindex: "0", "data-match": n,
    onclick: () => on.match(n),
    onkeydown: (event) => { if (event.key === "Enter") on.match(n); },
  },
  h("td", { class: "number soft" }, String(n + 1)),
  columns.map((_, c) => h("td", null, returned.rows[n][c])),
  names.map((name) => h("td", null, rowsText(match.rows[name], situation))),
  h("td", { class: "number" }, timeText(match.start, moments)),
  h("td", { class: "number" }, spanText(match.end - match.start, moments))));
  const more = matches.length > ROWS || !answer.complete;
  const note = !more ? null : h("p", { class: "hint" },
    `The first ${Math.min(matches.length, ROWS)} of ${answer.complete ? "" : "more than "}` +
    `${matches.length.toLocaleString("en-US")} matches.`);
  return [...parts, table(["", ...columns, ...names, "start", "took"], rows, { class: "matches" }),
    note, adviceOf(answer)];
}

function adviceOf(answer) {
  return answer.notes.length ? h("ul", { class: "notes" }, answer.notes.map((n) => h("li", null, n))) : null;
}

function rowsText(rows, situation) {
  if (!rows?.length) return h("span", { class: "soft" }, "–");
  const { rows: events, time, moments } = situation;
  const first = timeText(events[rows[0]]?.[time] ?? null, moments);
  const text = moments ? first.slice(11) : first;
  return rows.length === 1 ? text : `${rows.length} events from ${text}`;
}

export function plainTable({ columns, rows }) {
  if (!rows.length) return h("p", { class: "empty" }, "None.");
  return table(columns, rows.slice(0, ROWS).map((row) => h("tr", null, row.map((cell) => h("td", null, cell)))));
}

const SIGNS = { true: "✓", false: "✗", unknown: "?", "not checked": "·" };

export function whyNotPanel(verdict, on) {
  if (verdict.problem) return [h("p", { class: "problem" }, verdict.problem)];
  const events = Object.entries(verdict.rows).map(([name, rows]) => `${name}: row ${rows.join(", ")}`);
  const conditions = verdict.conditions.map((c) => h("tr", { class: c.outcome.replace(" ", "-") },
    h("td", { class: "sign", title: c.outcome }, SIGNS[c.outcome]),
    h("td", null, h("code", null, c.text)),
    h("td", null, c.outcome),
    h("td", null, c.values.map(([name, value]) => `${name} is ${value}`).join(", "))));
  const change = verdict.matches ? null : verdict.change
    ? h("div", { class: "change" },
      h("p", null, "The smallest change: ", h("b", null, verdict.change)),
      h("button", { class: "main", id: "apply", onclick: () => on.apply(verdict.changed) }, "Apply it"))
    : h("p", { class: "change" }, "No single change is enough.");
  return [
    h("h3", { class: verdict.matches ? "good" : "bad" },
      verdict.matches ? "These events match." : "These events don't match together."),
    h("p", { class: "soft" }, events.join(" · ")),
    change,
    verdict.problems.length
      ? h("ul", { class: "problems" }, verdict.problems.map((text) => h("li", null, text))) : null,
    conditions.length ? table(["", "condition", "", "values"], conditions, { class: "checked" }) : null,
  ];
}

export function textPanel(text, ...more) {
  const button = h("button", { onclick: () => copy(text, button) }, "Copy");
  return [h("div", { class: "bar" }, button, ...more), h("pre", { class: "code" }, text)];
}

export function htmlPanel(html) {
  // Made by Cepheid's own reports, which escape whatever a query or an event holds.
  const part = h("div", { class: "report" });
  part.innerHTML = html;
  return [part];
}

export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  h("a", { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}
