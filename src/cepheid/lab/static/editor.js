// The query: a text field, and below it the same text with colors and marks at what is wrong.

import { h } from "./dom.js";

const TOKEN = /(--[^\n]*)|('(?:[^']|'')*'?)|(`[^`]*`?)|(\b\d+(?:\.\d+)?\b)|(:\w+)|([A-Za-z_]\w*)/g;
const KINDS = ["comment", "text", "name", "number", "parameter"];
const MOST = 9;

export class Editor {
  // words: { keywords, functions, types, columns } of { name, doc }
  constructor(root, changed) {
    this.changed = changed;
    this.words = { keywords: [], functions: [], types: [], columns: [] };
    this.findings = [];
    this.listed = [];
    this.at = 0;
    this.shown = h("pre", { "aria-hidden": "true" });
    this.field = h("textarea", {
      spellcheck: "false", autocapitalize: "off", autocomplete: "off", autocorrect: "off",
      "aria-label": "Query", "aria-controls": "completions",
      oninput: () => this.#typed(), onkeydown: (event) => this.#key(event),
      onblur: () => this.#close(), onclick: () => this.#close(),
    });
    this.list = h("ul", { id: "completions", role: "listbox", hidden: true });
    root.append(this.shown, this.field, this.list);
  }

  get text() { return this.field.value; }

  set text(text) {
    this.field.value = text;
    this.findings = [];
    this.#draw();
  }

  mark(findings) {
    this.findings = findings;
    this.#draw();
  }

  goTo(place) {
    this.field.focus();
    this.field.setSelectionRange(place, place);
  }

  #typed() {
    this.findings = [];
    this.#draw();
    this.#complete(false);
    this.changed();
  }

  // ── colors ──

  #draw() {
    const text = this.text;
    const keywords = new Set(this.words.keywords.flatMap((word) => word.name.split(" ")));
    const cuts = new Set([0, text.length]);
    const kinds = [];
    for (const token of text.matchAll(TOKEN)) {
      const group = token.slice(1).findIndex((part) => part !== undefined);
      let kind = KINDS[group];
      if (!kind && (keywords.has(token[0].toUpperCase()) || keywords.has(token[0]))) kind = "word";
      if (!kind && text[token.index + token[0].length] === "(") kind = "call";
      if (!kind) continue;
      kinds.push([token.index, token.index + token[0].length, kind]);
      cuts.add(token.index).add(token.index + token[0].length);
    }
    for (const finding of this.findings) cuts.add(finding.start).add(finding.end);
    const places = [...cuts].filter((cut) => cut <= text.length).sort((a, b) => a - b);
    let next = 0;
    const parts = places.slice(1).map((end, n) => {
      const start = places[n];
      while (next < kinds.length && kinds[next][1] <= start) next += 1;
      const kind = next < kinds.length && kinds[next][0] <= start ? kinds[next][2] : "";
      const wrong = this.findings.find((f) => f.start <= start && end <= f.end);
      return h("span", { class: wrong ? `${kind} wrong` : kind }, text.slice(start, end));
    });
    this.shown.replaceChildren(...parts, "\n");
  }

  // ── completion ──

  #complete(asked) {
    const caret = this.field.selectionStart;
    const before = this.text.slice(0, caret);
    const word = /[A-Za-z_]\w*$/.exec(before)?.[0] ?? "";
    const ahead = before[before.length - word.length - 1];
    const inside = (before.match(/'/g) ?? []).length % 2 === 1 || /--[^\n]*$/.test(before);
    const wanted = word !== "" || ahead === "." || asked;
    const found = inside || !wanted ? [] : this.#candidates(word, ahead, before);
    this.listed = found.length === 1 && found[0].name === word ? [] : found;
    this.word = word;
    this.at = 0;
    this.#show(caret - word.length);
  }

  #candidates(word, ahead, before) {
    const { keywords, functions, types, columns } = this.words;
    const inPattern = !/\b(WHERE|HAVING|WITHIN|RETURN|GROUP)\b/i.test(before);
    const order = ahead === "." || ahead === "[" ? [columns]
      : inPattern ? [types, keywords] : [columns, functions, keywords, types];
    const start = word.toLowerCase();
    const known = order.flat().filter((w) => w.name.toLowerCase().startsWith(start));
    return [...new Map(known.map((w) => [w.name, w])).values()].slice(0, MOST);
  }

  #show(from) {
    this.list.hidden = this.listed.length === 0;
    if (this.list.hidden) return;
    this.list.replaceChildren(...this.listed.map((word, n) => h("li", {
      role: "option", "aria-selected": n === this.at,
      onpointerdown: (event) => { event.preventDefault(); this.#take(n); },
    }, h("b", null, word.name), h("span", null, word.doc))));
    const place = this.#place(from);
    const room = this.field.parentElement.clientWidth - this.list.offsetWidth - 4;
    this.list.style.left = `${Math.max(4, Math.min(place.left, room))}px`;
    this.list.style.top = `${place.bottom + 4}px`;
  }

  // Where a letter is: below the field stands the same text, which can be measured.
  #place(offset) {
    const walker = document.createTreeWalker(this.shown, NodeFilter.SHOW_TEXT);
    let left = offset;
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (left <= node.length) {
        const range = document.createRange();
        range.setStart(node, left);
        range.setEnd(node, left);
        const here = range.getBoundingClientRect();
        const frame = this.field.parentElement.getBoundingClientRect();
        return { left: here.left - frame.left, bottom: here.bottom - frame.top };
      }
      left -= node.length;
    }
    return { left: 0, bottom: 0 };
  }

  #close() {
    this.listed = [];
    this.list.hidden = true;
  }

  #take(n) {
    const caret = this.field.selectionStart;
    const name = this.listed[n].name;
    const call = name.endsWith("()");
    this.field.setRangeText(name, caret - this.word.length, caret, "end");
    if (call) this.field.setSelectionRange(this.field.selectionEnd - 1, this.field.selectionEnd - 1);
    this.#close();
    this.field.focus();
    this.findings = [];
    this.#draw();
    this.changed();
  }

  #key(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.#complete(true);
      return;
    }
    if (this.list.hidden) return;
    const count = this.listed.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.at = (this.at + (event.key === "ArrowDown" ? 1 : count - 1)) % count;
      [...this.list.children].forEach((item, n) => item.setAttribute("aria-selected", n === this.at));
    } else if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      this.#take(this.at);
    } else if (event.key === "Escape") {
      this.#close();
    }
  }
}
