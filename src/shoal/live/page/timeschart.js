// The distribution of times, from the shortest to the longest.

import { at, Chart, TOP } from "./chart.js";
import { draw } from "./elements.js";
import { linear, logMarks } from "./scales.js";
import { span, spanMark, whole } from "./format.js";

/** How often a batch took how long, with lines where median, p90 and p99 are. */
export class TimesChart extends Chart {
  #times = null;
  #x = null;

  constructor(place) {
    super(place);
    this.bars = draw("path", { class: "bars" });
    this.lines = ["median", "p90", "p99"].map((name) => [
      name,
      draw("line", { class: `key ${name}`, y1: TOP }),
    ]);
    this.root.append(this.axes, this.bars, ...this.lines.map(([, line]) => line), this.probe);
  }

  render(times) {
    const { edges, counts } = times;
    const log = linear([Math.log(edges[0]), Math.log(edges.at(-1))], [this.left, this.right]);
    const x = (seconds) => log(Math.log(seconds));
    const most = Math.max(...counts, 1);
    const y = linear([0, most], [this.bottom, TOP]);
    const every = logMarks(edges[0], edges.at(-1));
    const kept = Math.ceil(every.length / this.fitting(52));
    const xMarks = every.filter((_, k) => k % kept === 0);
    this.renderAxes(x, xMarks, spanMark, y, [0], () => "");

    const bars = counts.map((count, k) => {
      if (!count) return "";
      // What is there at all can be seen: a batch in a million may be the one that is looked for.
      const height = Math.max(1.5, this.bottom - y(count));
      const [from, to] = [x(edges[k]), x(edges[k + 1])];
      const gap = to - from > 4 ? 0.75 : 0;
      const [left, width] = [from + gap, to - from - 2 * gap];
      return `M${at(left)},${at(this.bottom)}v${at(-height)}h${at(width)}v${at(height)}z`;
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
    this.root.setAttribute(
      "aria-label",
      `Times of batches: median ${span(times.median)}, ` +
        `p99 ${span(times.p99)}, longest ${span(times.longest)}`,
    );
    this.#times = times;
    this.#x = x;
  }

  find(place) {
    const { edges, counts } = this.#times;
    const k = counts.findIndex(
      (_, k) => this.#x(edges[k]) <= place && place < this.#x(edges[k + 1]),
    );
    if (k < 0) return null;
    const middle = (this.#x(edges[k]) + this.#x(edges[k + 1])) / 2;
    return [middle, `${spanMark(edges[k])} to ${spanMark(edges[k + 1])}: ${whole(counts[k])}`];
  }
}
