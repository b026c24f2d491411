// A histogram of batch times.

import { at, Chart, TOP } from "./chart.js";
import { createSvg } from "./elements.js";
import { linear, logMarks } from "./scales.js";
import { span, spanMark, whole } from "./format.js";

/** A histogram on a logarithmic axis, with lines at the median, p90 and p99. */
export class TimesChart extends Chart {
  #times = null;
  #x = null;

  constructor(container) {
    super(container);
    this.bars = createSvg("path", { class: "bars" });
    this.lines = ["median", "p90", "p99"].map((name) => [
      name,
      createSvg("line", { class: `key ${name}`, y1: TOP }),
    ]);
    this.root.append(this.axes, this.bars, ...this.lines.map(([, line]) => line), this.probe);
  }

  render(times) {
    const { edges, counts } = times;
    const log = linear([Math.log(edges[0]), Math.log(edges.at(-1))], [this.left, this.right]);
    const x = (seconds) => log(Math.log(seconds));
    const most = Math.max(...counts, 1);
    const y = linear([0, most], [this.bottom, TOP]);
    const allMarks = logMarks(edges[0], edges.at(-1));
    const stride = Math.ceil(allMarks.length / this.capacity(52));
    const xMarks = allMarks.filter((_, k) => k % stride === 0);
    this.renderAxes(x, xMarks, spanMark, y, [0], () => "");

    const bars = counts.map((count, k) => {
      if (!count) return "";
      // A minimum height keeps rare batch times visible.
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
      const position = at(Math.min(this.right, Math.max(this.left, x(seconds))));
      for (const end of ["x1", "x2"]) line.setAttribute(end, position);
      line.setAttribute("y2", at(this.bottom));
    }
    this.root.setAttribute(
      "aria-label",
      `Batch times: median ${span(times.median)}, ` +
        `p99 ${span(times.p99)}, longest ${span(times.longest)}`,
    );
    this.#times = times;
    this.#x = x;
  }

  nearest(position) {
    const { edges, counts } = this.#times;
    const k = counts.findIndex(
      (_, k) => this.#x(edges[k]) <= position && position < this.#x(edges[k + 1]),
    );
    if (k < 0) return null;
    const middle = (this.#x(edges[k]) + this.#x(edges[k + 1])) / 2;
    return [middle, `${spanMark(edges[k])} to ${spanMark(edges[k + 1])}: ${whole(counts[k])}`];
  }
}
