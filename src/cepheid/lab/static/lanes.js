// Events on a time axis, a lane for each value of a column: they can be chosen, moved and added.

import { h, s } from "./dom.js";
import { moment, stepOf, timeText } from "./times.js";

const LANE = 40, AXIS = 26, BAND = 12, TOP = 6;
const CROWDED = 300;  // events of a lane that are drawn one by one
const LETTER = 8.6;   // pixels of a capital
const LANES = 24;     // lanes that are drawn
const BARS = 40;      // matches that are drawn

export class Lanes {
  // on: { choose(row), move(row, time, done), add(lane, time), match(number) }
  constructor(root, on) {
    this.root = root;
    this.on = on;
    this.view = null;
    this.data = null;
    new ResizeObserver(() => this.draw()).observe(root);
    root.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
  }

  // data: { rows, time, lane, moments, matches, lit, chosen, variables, stale }
  show(data) {
    this.data = data;
    this.draw();
  }

  all() { this.view = null; this.draw(); }

  zoom(factor, around = 0.5) {
    const [first, last] = this.#span();
    const middle = first + (last - first) * around;
    const least = this.data.moments ? 1000 : 4;
    if (factor < 1 && last - first <= least) return;
    this.view = [middle - (middle - first) * factor, middle + (last - middle) * factor];
    this.draw();
  }

  // Show a match, if it isn't in the view.
  reveal(match) {
    const [first, last] = this.#span();
    if (match.start >= first && match.end <= last) return;
    const room = Math.max((match.end - match.start) * 0.5, (last - first) * 0.1);
    this.view = [match.start - room, match.end + room];
  }

  get middle() {
    const [first, last] = this.#span();
    return Math.round((first + last) / 2);
  }

  #whole() {
    let first = Infinity, last = -Infinity;
    for (const row of this.data.rows) {
      const time = row[this.data.time];
      if (time === null) continue;
      if (time < first) first = time;
      if (time > last) last = time;
    }
    if (first > last) return [0, 10];
    const room = (last - first || (this.data.moments ? 60e6 : 4)) * 0.06;
    return [first - room, last + room];
  }

  #span() { return this.view ?? this.#whole(); }

  draw() {
    if (!this.data || !this.root.clientWidth) return;
    const { rows, lane, time, moments, matches, stale } = this.data;
    const width = this.root.clientWidth;
    const right = 14;
    const [first, last] = this.#span();
    const names = [...new Set(rows.map((row) => this.#name(row[lane])))].sort(
      (a, b) => a.localeCompare(b, "en", { numeric: true }));
    const shown = names.slice(0, LANES);
    const longest = Math.max(7, ...shown.map((name) => name.length));
    const left = Math.min(width < 500 ? 92 : 168, Math.max(72, longest * LETTER + 18));
    const x = (at) => left + ((at - first) / (last - first)) * (width - left - right);
    const number = new Map(shown.map((name, n) => [name, n]));
    const y = (n) => TOP + LANE * n + LANE / 2;
    const bars = this.#bars(matches, first, last);
    const below = TOP + LANE * Math.max(shown.length, 1);
    const deep = bars.length ? Math.max(...bars.map((bar) => bar.row)) + 1 : 0;
    const height = below + (deep ? 8 + BAND * deep : 0) + AXIS;
    const bound = new Set(matches.flatMap((match) => Object.values(match.rows).flat()));
    const inside = shown.map(() => []);
    rows.forEach((row, n) => {
      const place = number.get(this.#name(row[lane]));
      if (place !== undefined && row[time] !== null && row[time] >= first && row[time] <= last) {
        inside[place].push(n);
      }
    });
    this.frame = { x, y, left, right, width, first, last, shown };
    const picture = s("svg", {
      width, height, viewBox: `0 0 ${width} ${height}`, role: "img", class: stale ? "stale" : "",
      "aria-label": `${rows.length} events in ${names.length} lanes`,
      ondblclick: (event) => this.#add(event), onpointerdown: (event) => this.#down(event),
    },
      this.#axis(first, last, height, x, width, left, right, moments),
      shown.map((name, n) => this.#lane(name, n, inside[n], bound)),
      this.#lit(x, y, number),
      this.#bound(inside, x, y, bound),
      bars.map((bar) => this.#bar(bar, below + 8, x)),
      deep ? s("text", { x: left - 10, y: below + 17, class: "name soft" }, "matches") : null);
    const more = names.length > LANES
      ? [h("p", { class: "hint" }, `${names.length - LANES} more lanes`)] : [];
    const crowded = inside.some((found) => found.length > CROWDED)
      ? [h("p", { class: "hint" }, "Many events are drawn as bars; show a shorter time to move them.")]
      : [];
    this.root.replaceChildren(picture, ...more, ...crowded);
  }

  #name(value) { return value === null || value === undefined ? "no value" : String(value); }

  #axis(first, last, height, x, width, left, right, moments) {
    const step = stepOf(last - first, Math.max(2, Math.floor((width - left) / 90)), moments);
    const marks = [];
    for (let at = Math.ceil(first / step) * step + 0; at <= last; at += step) {
      const label = moments ? moment(at, step) : at.toLocaleString("en-US");
      marks.push(
        s("line", { x1: x(at), x2: x(at), y1: TOP, y2: height - AXIS + 4, class: "grid" }),
        s("text", { x: x(at), y: height - 8, class: "tick" }, label));
    }
    return marks;
  }

  #lane(name, n, found, bound) {
    const { x, y, left, right, width } = this.frame;
    const letters = Math.floor((left - 14) / LETTER);
    const label = name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
    const line = s("line", { x1: left, x2: width - right, y1: y(n), y2: y(n), class: "lane" });
    const text = s("text", { x: left - 10, y: y(n) + 4, class: "name" }, s("title", null, name), label);
    if (found.length <= CROWDED) return [text, line];
    const bins = Math.floor((width - left - right) / 5);
    const counts = new Array(bins).fill(0), taken = new Array(bins).fill(0);
    for (const row of found) {
      const at = x(this.data.rows[row][this.data.time]) - left;
      const bin = Math.min(bins - 1, Math.max(0, Math.floor(at / 5)));
      counts[bin] += 1;
      if (bound.has(row)) taken[bin] += 1;
    }
    const most = Math.max(...counts);
    const bar = (count, bin, kind) => s("rect", {
      x: left + bin * 5, width: 4, height: Math.max(1, (30 * count) / most),
      y: y(n) - Math.max(1, (30 * count) / most) / 2, class: kind,
    }, s("title", null, `${count} events`));
    return [text, line,
      counts.map((count, bin) => (count ? bar(count, bin, "many") : null)),
      taken.map((count, bin) => (count ? bar(count, bin, "many bound") : null))];
  }

  #bound(inside, x, y, bound) {
    const { rows, time, moments, chosen, lit } = this.data;
    const shining = new Set(lit ? Object.values(lit.rows).flat() : []);
    const front = (row) => 4 * shining.has(row) + 2 * chosen.has(row) + bound.has(row);
    return inside.flatMap((found, n) => (found.length > CROWDED
      ? found.filter((row) => shining.has(row) || chosen.has(row)) : found)
      .toSorted((one, other) => front(one) - front(other)).map((row) => {  // the last is in front
      const kind = ["event", bound.has(row) && "bound", shining.has(row) && "lit",
        chosen.has(row) && "chosen"].filter(Boolean).join(" ");
      return s("circle", {
        cx: x(rows[row][time]), cy: y(n), r: shining.has(row) ? 7 : 5.5, class: kind, "data-row": row,
      }, s("title", null, `row ${row} at ${timeText(rows[row][time], moments)}`));
    }));
  }

  // The line through the events of the match that is lit.
  #lit(x, y, number) {
    const { lit, rows, time, lane } = this.data;
    if (!lit) return null;
    const bound = Object.values(lit.rows).flat().filter((row) => rows[row] !== undefined)
      .sort((a, b) => rows[a][time] - rows[b][time]);
    const points = bound.filter((row) => number.has(this.#name(rows[row][lane])))
      .map((row) => `${x(rows[row][time])},${y(number.get(this.#name(rows[row][lane])))}`);
    return s("polyline", { points: points.join(" "), class: "through" });
  }

  // The matches of the view, each in a row of its own where they overlap.
  #bars(matches, first, last) {
    const ends = [];
    const kept = [];
    for (const [number, match] of matches.entries()) {
      const until = match.closes ?? match.end;
      if (until < first || match.start > last) continue;
      if (kept.length === BARS) break;
      let row = ends.findIndex((end) => end < match.start);
      if (row < 0) row = ends.length;
      ends[row] = until;
      kept.push({ number, match, row });
    }
    return kept;
  }

  #bar({ number, match, row }, top, x) {
    const { left, width, right } = this.frame;
    const inside = (at) => Math.min(Math.max(x(at), left), width - right);
    const from = inside(match.start), to = Math.max(inside(match.end), from + 3), y = top + row * BAND;
    const window = match.closes !== null && match.closes !== undefined && match.closes > match.end
      ? s("path", { d: `M${from} ${y + 8}v2H${inside(match.closes)}v-6`, class: "window" }) : null;
    return s("g", {
      class: this.data.lit === match ? "bar lit" : "bar", "data-match": number,
      onclick: () => this.on.match(number),
    }, s("title", null, `match ${number + 1}`),
    s("rect", { x: from, y: y - 1, width: to - from, height: BAND, fill: "transparent" }), window,
    s("rect", { x: from, y: y + 2, width: to - from, height: 6, rx: 3, class: "band" }));
  }

  // ── by hand ──

  #timeAt(event) {
    const { left, right, width, first, last } = this.frame;
    const part = (event.clientX - this.root.getBoundingClientRect().left - left) / (width - left - right);
    return this.#round(first + part * (last - first));
  }

  // To what a pixel can tell apart.
  #round(time) {
    const { first, last, width } = this.frame;
    const step = Math.max(1, stepOf((last - first) * 2, width, this.data.moments));
    return Math.round(time / step) * step;
  }

  #add(event) {
    if (event.target.closest("[data-row], [data-match]")) return;
    const at = event.clientY - this.root.getBoundingClientRect().top;
    const name = this.frame.shown[Math.floor((at - TOP) / LANE)];
    if (event.clientX - this.root.getBoundingClientRect().left < this.frame.left) return;
    this.on.add(name, this.#timeAt(event));
  }

  #down(event) {
    const circle = event.target.closest("[data-row]");
    if (!circle && (event.target.closest("[data-match]") || this.view === null)) return;
    const start = event.clientX;
    const { first, last, width, left, right } = this.frame;
    const row = circle ? Number(circle.dataset.row) : null;
    const before = circle ? this.data.rows[row][this.data.time] : null;
    const perPixel = (last - first) / (width - left - right);
    let moved = false;
    const viewed = this.view;
    const move = (now) => {
      const away = now.clientX - start;
      if (!moved && Math.abs(away) < 4) return;
      moved = true;
      if (circle) {
        this.view = [first, last];  // it stays where it is while an event moves
        this.on.move(row, this.#round(before + away * perPixel), false);
      } else {
        this.view = [first - away * perPixel, last - away * perPixel];
        this.draw();
      }
    };
    const up = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", up);
      window.removeEventListener("pointercancel", up);
      if (circle) this.view = viewed;
      if (circle && moved) this.on.move(row, this.data.rows[row][this.data.time], true);
      if (circle && !moved) this.on.choose(row);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", up);
    window.addEventListener("pointercancel", up);
  }

  #wheel(event) {
    if (!event.ctrlKey || !this.frame) return;
    event.preventDefault();
    const { left, right, width } = this.frame;
    const part = (event.clientX - this.root.getBoundingClientRect().left - left) / (width - left - right);
    this.zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.min(1, Math.max(0, part)));
  }
}
