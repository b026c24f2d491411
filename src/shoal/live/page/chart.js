// The base of all charts: an SVG that fills its container, with axes and a readout at the pointer.

import { createSvg, setText } from "./elements.js";

const LEFT = 44;
const RIGHT = 14;
export const TOP = 8;
const BOTTOM = 22;
const NO_DATA = "no data yet";

/** Formats a coordinate for an SVG attribute. */
export const at = (value) => value.toFixed(1);

/**
 * A chart that is drawn again when its container changes its size.
 *
 * Subclasses implement `render(data)`, and `nearest(x)`, which returns the x coordinate of the data
 * nearest to `x` and its description, or null.
 */
export class Chart {
  #width = 0;
  #height = 0;
  #data = null;

  constructor(container) {
    this.root = createSvg("svg", { role: "img" });
    this.axes = createSvg("g", { class: "axes" });
    this.probe = createSvg("g", { class: "probe", visibility: "hidden" });
    this.probeLine = createSvg("line", { y1: TOP });
    this.probeText = createSvg("text", { y: TOP + 4, dy: "0.6em" });
    this.probe.append(this.probeLine, this.probeText);
    container.append(this.root);
    new ResizeObserver(([{ contentRect }]) => {
      [this.#width, this.#height] = [contentRect.width, contentRect.height];
      this.root.setAttribute("viewBox", `0 0 ${at(this.#width)} ${at(this.#height)}`);
      this.#render();
    }).observe(container);
    this.root.addEventListener("pointermove", (event) => this.#moveProbe(event));
    this.root.addEventListener("pointerleave", () =>
      this.probe.setAttribute("visibility", "hidden"),
    );
  }

  /** Draws the data; null means that there is none. */
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
    const isEmpty = this.#data === null;
    this.root.classList.toggle("bare", isEmpty);
    if (isEmpty) this.#renderEmpty();
    else this.render(this.#data);
  }

  #renderEmpty() {
    const middle = { x: at(this.#width / 2), y: at(this.#height / 2), "text-anchor": "middle" };
    this.axes.replaceChildren(createSvg("text", middle, NO_DATA));
    this.root.setAttribute("aria-label", NO_DATA);
  }

  /** Draws horizontal grid lines at the y marks, and labels at the marks of both axes. */
  renderAxes(x, xMarks, xLabel, y, yMarks, yLabel) {
    const parts = [];
    for (const value of yMarks) {
      const height = at(y(value));
      parts.push(createSvg("line", { x1: LEFT, x2: at(this.right), y1: height, y2: height }));
      const position = { x: LEFT - 8, y: height, dy: "0.35em", "text-anchor": "end" };
      parts.push(createSvg("text", position, yLabel(value)));
    }
    for (const value of xMarks) {
      const left = at(x(value));
      parts.push(
        createSvg("line", {
          class: "mark",
          x1: left,
          x2: left,
          y1: at(this.bottom),
          y2: at(this.bottom + 4),
        }),
      );
      const position = { x: left, y: at(this.bottom + 17), "text-anchor": "middle" };
      parts.push(createSvg("text", position, xLabel(value)));
    }
    this.axes.replaceChildren(...parts);
  }

  /** How many marks fit on the x axis if each takes `width` pixels. */
  capacity(width) {
    return Math.max(2, Math.floor((this.right - LEFT) / width));
  }

  #moveProbe(event) {
    if (this.#data === null) return;
    const nearest = this.nearest(event.clientX - this.root.getBoundingClientRect().left);
    if (!nearest) return;
    const [x, text] = nearest;
    this.probeLine.setAttribute("x1", at(x));
    this.probeLine.setAttribute("x2", at(x));
    this.probeLine.setAttribute("y2", at(this.bottom));
    const isRight = x > (LEFT + this.right) / 2;
    this.probeText.setAttribute("x", at(isRight ? x - 8 : x + 8));
    this.probeText.setAttribute("text-anchor", isRight ? "end" : "start");
    setText(this.probeText, text);
    this.probe.setAttribute("visibility", "visible");
  }
}
