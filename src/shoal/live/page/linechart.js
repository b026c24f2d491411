// A line over time or steps, with the area below it, or a band around it.

import { at, Chart, TOP } from "./chart.js";
import { draw } from "./elements.js";
import { clockMarks, linear, marks, marksAround } from "./scales.js";
import { clock, mark } from "./format.js";

const corners = (points) => points.map(([x, y]) => `${at(x)},${at(y)}`).join("L");

/** Points `[x, y]`, or `[x, y, low, high]` with a band from low to high. */
export class LineChart extends Chart {
  #points = [];
  #x = null;

  /**
   * @param name What the line is, for who cannot see it.
   * @param options.clocked Whether x is seconds, else it is a number of steps.
   * @param options.fromZero Whether y begins at 0; else it begins where the values do.
   * @param options.top Where y ends, if that is known beforehand.
   * @param options.words Puts a y into words; `options.yMarks` does where it is at the axis.
   */
  constructor(
    place,
    name,
    { clocked = false, fromZero = false, top = null, words = mark, yMarks = mark } = {},
  ) {
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
    const floor = (k) => y(banded ? lows[k] : low);
    const below = points.map((point, k) => [x(point[0]), floor(k)]);
    this.area.setAttribute("d", `M${corners(above)}L${corners(below.reverse())}Z`);
    this.line.setAttribute("d", `M${corners(middle)}`);
    const [endX, endY] = middle.at(-1);
    this.end.setAttribute("cx", at(endX));
    this.end.setAttribute("cy", at(endY));
    this.root.setAttribute(
      "aria-label",
      `${this.name}: now ${words(points.at(-1)[1])}, ` +
        `between ${words(Math.min(...lows))} and ${words(Math.max(...highs))}`,
    );
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
