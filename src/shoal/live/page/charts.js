// Small charts, drawn as SVG: a line with a band, and a histogram of times.

import { draw, say } from "./elements.js";
import { clockMarks, linear, logMarks, marks, marksAround } from "./scales.js";
import { clock, mark, span, spanMark, whole } from "./words.js";

const LEFT = 44;
const RIGHT = 14;
const TOP = 8;
const BOTTOM = 22;

const at = (value) => value.toFixed(1);
const corners = (points) => points.map(([x, y]) => `${at(x)},${at(y)}`).join("L");

/** A drawing as big as its place, made again when that changes its size. */
class Chart {
  #width = 0;
  #height = 0;
  #data = null;

  constructor(place) {
    this.root = draw("svg", { role: "img" });
    this.axes = draw("g", { class: "axes" });
    this.probe = draw("g", { class: "probe", visibility: "hidden" });
    this.probeLine = draw("line", { y1: TOP });
    this.probeText = draw("text", { y: TOP + 4, dy: "0.6em" });
    this.probe.append(this.probeLine, this.probeText);
    place.append(this.root);
    new ResizeObserver(([{ contentRect }]) => {
      [this.#width, this.#height] = [contentRect.width, contentRect.height];
      this.root.setAttribute("viewBox", `0 0 ${at(this.#width)} ${at(this.#height)}`);
      this.#render();
    }).observe(place);
    this.root.addEventListener("pointermove", (event) => this.#point(event));
    this.root.addEventListener("pointerleave", () => this.probe.setAttribute("visibility", "hidden"));
  }

  /** Draws this, or nothing where it is null. */
  show(data) {
    this.#data = data;
    this.#render();
  }

  get left() {
    return LEFT;
  }

  get right() {
    return this.#width - RIGHT;
  }

  get bottom() {
    return this.#height - BOTTOM;
  }

  #render() {
    if (this.#width < LEFT + RIGHT) return;
    const nothing = this.#data === null;
    this.root.classList.toggle("bare", nothing);
    if (nothing) {
      this.axes.replaceChildren();
      this.root.setAttribute("aria-label", "nothing yet");
    } else this.render(this.#data);
  }

  /** Lines across at each y, and words below each x. */
  renderAxes(x, xMarks, xWords, y, yMarks, yWords) {
    const parts = [];
    for (const value of yMarks) {
      const height = at(y(value));
      parts.push(draw("line", { x1: LEFT, x2: at(this.right), y1: height, y2: height }));
      parts.push(draw("text", { x: LEFT - 8, y: height, dy: "0.35em", "text-anchor": "end" }, yWords(value)));
    }
    for (const value of xMarks) {
      const place = at(x(value));
      parts.push(draw("line", { class: "mark", x1: place, x2: place, y1: at(this.bottom), y2: at(this.bottom + 4) }));
      parts.push(draw("text", { x: place, y: at(this.bottom + 17), "text-anchor": "middle" }, xWords(value)));
    }
    this.axes.replaceChildren(...parts);
  }

  /** How many marks of `room` pixels there is room for. */
  fitting(room) {
    return Math.max(2, Math.floor((this.right - LEFT) / room));
  }

  #point(event) {
    if (this.#data === null) return;
    const found = this.find(event.clientX - this.root.getBoundingClientRect().left);
    if (!found) return;
    const [x, words] = found;
    this.probeLine.setAttribute("x1", at(x));
    this.probeLine.setAttribute("x2", at(x));
    this.probeLine.setAttribute("y2", at(this.bottom));
    const before = x > (LEFT + this.right) / 2;
    this.probeText.setAttribute("x", at(before ? x - 8 : x + 8));
    this.probeText.setAttribute("text-anchor", before ? "end" : "start");
    say(this.probeText, words);
    this.probe.setAttribute("visibility", "visible");
  }
}

/** Points `[x, y]`, or `[x, y, low, high]` with a band from low to high. */
export class LineChart extends Chart {
  #points = [];
  #x = null;

  /**
   * @param name What the line is, for who cannot see it.
   * @param options.clocked Whether x is seconds, else it is a number of steps.
   * @param options.fromZero Whether y begins at 0; else it begins where the values do.
   * @param options.top Where y ends, if that is known beforehand.
   * @param options.words Puts a y into words; `marks` those at the axis.
   */
  constructor(place, name, { clocked = false, fromZero = false, top = null, words = mark, yMarks = mark } = {}) {
    super(place);
    this.name = name;
    this.options = { clocked, fromZero, top, words, yMarks };
    this.area = draw("path", { class: "area" });
    this.line = draw("path", { class: "line" });
    this.end = draw("circle", { class: "end", r: 3 });
    this.root.append(this.axes, this.area, this.line, this.end, this.probe);
  }

  render(points) {
    const { clocked, fromZero, top, words, yMarks } = this.options;
    const lows = points.map((point) => point[2] ?? point[1]);
    const highs = points.map((point) => point[3] ?? point[1]);
    const lowest = fromZero ? 0 : Math.min(...lows);
    const levels = top === null ? marksAround(lowest, Math.max(...highs), 3) : marks(0, top, 3);
    const low = levels[0];
    const [first, last] = [points[0][0], points.at(-1)[0]];
    const x = linear([first, Math.max(last, first + 1e-9)], [this.left, this.right]);
    const y = linear([low, levels.at(-1)], [this.bottom, TOP]);
    const xMarks = (clocked ? clockMarks : marks)(first, last, this.fitting(80));
    this.renderAxes(x, xMarks, clocked ? clock : mark, y, levels, yMarks);

    const middle = points.map((point) => [x(point[0]), y(point[1])]);
    const banded = points.some((point) => point.length > 2);
    const above = banded ? points.map((point, k) => [x(point[0]), y(highs[k])]) : middle;
    const below = banded ? points.map((point, k) => [x(point[0]), y(lows[k])]) : [[x(first), y(low)], [x(last), y(low)]];
    this.area.setAttribute("d", `M${corners(above)}L${corners(below.reverse())}Z`);
    this.line.setAttribute("d", `M${corners(middle)}`);
    const [endX, endY] = middle.at(-1);
    this.end.setAttribute("cx", at(endX));
    this.end.setAttribute("cy", at(endY));
    this.root.setAttribute("aria-label", `${this.name}: now ${words(points.at(-1)[1])}, between ${words(Math.min(...lows))} and ${words(Math.max(...highs))}`);
    this.#points = points;
    this.#x = x;
  }

  find(place) {
    const gap = (point) => Math.abs(this.#x(point[0]) - place);
    const point = this.#points.reduce((best, other) => (gap(other) < gap(best) ? other : best));
    const { clocked, words } = this.options;
    const band = point.length > 2 ? ` (${words(point[2])} to ${words(point[3])})` : "";
    const where = clocked ? `at ${clock(point[0])}` : `at ${mark(point[0])} steps`;
    return [this.#x(point[0]), `${words(point[1])}${band} ${where}`];
  }
}

/** How often a batch took how long, with lines where median, p90 and p99 are. */
export class TimesChart extends Chart {
  #times = null;
  #x = null;

  constructor(place) {
    super(place);
    this.bars = draw("path", { class: "bars" });
    this.lines = ["median", "p90", "p99"].map((name) => [name, draw("line", { class: `key ${name}`, y1: TOP })]);
    this.root.append(this.axes, this.bars, ...this.lines.map(([, line]) => line), this.probe);
  }

  render(times) {
    const { edges, counts } = times;
    const log = linear([Math.log(edges[0]), Math.log(edges.at(-1))], [this.left, this.right]);
    const x = (seconds) => log(Math.log(seconds));
    const most = Math.max(...counts, 1);
    const y = linear([0, most], [this.bottom, TOP]);
    const room = this.fitting(52);
    const every = logMarks(edges[0], edges.at(-1));
    const kept = Math.ceil(every.length / room);
    this.renderAxes(x, every.filter((_, k) => k % kept === 0), spanMark, y, [0], () => "");

    const bars = counts.map((count, k) => {
      if (!count) return "";
      // What is there at all can be seen: a batch in a million may be the one that is looked for.
      const height = Math.max(1.5, this.bottom - y(count));
      const [from, to] = [x(edges[k]), x(edges[k + 1])];
      const gap = to - from > 4 ? 0.75 : 0;
      return `M${at(from + gap)},${at(this.bottom)}v${at(-height)}h${at(to - from - 2 * gap)}v${at(height)}z`;
    });
    this.bars.setAttribute("d", bars.join(""));
    for (const [name, line] of this.lines) {
      const seconds = times[name];
      line.setAttribute("visibility", seconds === null ? "hidden" : "inherit");
      if (seconds === null) continue;
      const place = at(Math.min(this.right, Math.max(this.left, x(seconds))));
      for (const end of ["x1", "x2"]) line.setAttribute(end, place);
      line.setAttribute("y2", at(this.bottom));
    }
    this.root.setAttribute("aria-label", `Times of batches: median ${span(times.median)}, p99 ${span(times.p99)}, longest ${span(times.longest)}`);
    this.#times = times;
    this.#x = x;
  }

  find(place) {
    const { edges, counts } = this.#times;
    const k = counts.findIndex((_, k) => this.#x(edges[k]) <= place && place < this.#x(edges[k + 1]));
    if (k < 0) return null;
    const middle = (this.#x(edges[k]) + this.#x(edges[k + 1])) / 2;
    return [middle, `${spanMark(edges[k])} to ${spanMark(edges[k + 1])}: ${whole(counts[k])}`];
  }
}
