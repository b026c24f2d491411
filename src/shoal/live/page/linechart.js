// A line over time or steps, with the area below it or a band around it.

import { at, Chart, TOP } from "./chart.js";
import { createSvg } from "./elements.js";
import { linear, marks, marksAround, timeMarks } from "./scales.js";
import { clock, mark } from "./format.js";

const path = (points) => points.map(([x, y]) => `${at(x)},${at(y)}`).join("L");

/** Draws points `[x, y]`, or `[x, y, low, high]` with a band from low to high. */
export class LineChart extends Chart {
  #points = [];
  #x = null;

  /**
   * @param name The accessible name of the line.
   * @param options.isTime Whether x is a time in seconds; otherwise it is a number of steps.
   * @param options.fromZero Whether the y axis starts at 0; otherwise at the lowest value.
   * @param options.top The end of the y axis, if it is fixed.
   * @param options.format Formats a y value; `options.formatMark` formats the marks of its axis.
   */
  constructor(
    container,
    name,
    { isTime = false, fromZero = false, top = null, format = mark, formatMark = mark } = {},
  ) {
    super(container);
    this.name = name;
    this.options = { isTime, fromZero, top, format, formatMark };
    this.area = createSvg("path", { class: "area" });
    this.line = createSvg("path", { class: "line" });
    this.end = createSvg("circle", { class: "end", r: 3 });
    this.root.append(this.axes, this.area, this.line, this.end, this.probe);
  }

  render(points) {
    const { isTime, fromZero, top, format, formatMark } = this.options;
    const lows = points.map((point) => point[2] ?? point[1]);
    const highs = points.map((point) => point[3] ?? point[1]);
    const lowest = fromZero ? 0 : Math.min(...lows);
    const levels = top === null ? marksAround(lowest, Math.max(...highs), 3) : marks(0, top, 3);
    const low = levels[0];
    const [first, last] = [points[0][0], points.at(-1)[0]];
    const x = linear([first, Math.max(last, first + 1e-9)], [this.left, this.right]);
    const y = linear([low, levels.at(-1)], [this.bottom, TOP]);
    const xMarks = (isTime ? timeMarks : marks)(first, last, this.capacity(80));
    this.renderAxes(x, xMarks, isTime ? clock : mark, y, levels, formatMark);

    const middle = points.map((point) => [x(point[0]), y(point[1])]);
    const hasBand = points.some((point) => point.length > 2);
    const upper = hasBand ? points.map((point, k) => [x(point[0]), y(highs[k])]) : middle;
    const lower = points.map((point, k) => [x(point[0]), y(hasBand ? lows[k] : low)]);
    this.area.setAttribute("d", `M${path(upper)}L${path(lower.reverse())}Z`);
    this.line.setAttribute("d", `M${path(middle)}`);
    const [endX, endY] = middle.at(-1);
    this.end.setAttribute("cx", at(endX));
    this.end.setAttribute("cy", at(endY));
    this.root.setAttribute(
      "aria-label",
      `${this.name}: now ${format(points.at(-1)[1])}, ` +
        `between ${format(Math.min(...lows))} and ${format(Math.max(...highs))}`,
    );
    this.#points = points;
    this.#x = x;
  }

  nearest(position) {
    const distance = (point) => Math.abs(this.#x(point[0]) - position);
    const point = this.#points.reduce((best, other) =>
      distance(other) < distance(best) ? other : best,
    );
    const { isTime, format } = this.options;
    const band = point.length > 2 ? ` (${format(point[2])} to ${format(point[3])})` : "";
    const location = isTime ? `at ${clock(point[0])}` : `at ${mark(point[0])} steps`;
    return [this.#x(point[0]), `${format(point[1])}${band} ${location}`];
  }
}
