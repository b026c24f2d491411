// What all charts are: an SVG as big as its place, with axes, that tells what is pointed at.

import { draw, say } from "./elements.js";

const LEFT = 44;
const RIGHT = 14;
export const TOP = 8;
const BOTTOM = 22;
const NOTHING = "nothing yet";

/** A coordinate, as attributes want it. */
export const at = (value) => value.toFixed(1);

/**
 * A drawing as big as its place, made again when that changes its size.
 *
 * A chart has `render(data)`, and `find(x)`: the x of what is nearest, and words for it, or null.
 */
export class Chart {
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
    this.root.addEventListener("pointerleave", () =>
      this.probe.setAttribute("visibility", "hidden"),
    );
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
    if (nothing) this.#renderNothing();
    else this.render(this.#data);
  }

  #renderNothing() {
    const middle = { x: at(this.#width / 2), y: at(this.#height / 2), "text-anchor": "middle" };
    this.axes.replaceChildren(draw("text", middle, NOTHING));
    this.root.setAttribute("aria-label", NOTHING);
  }

  /** Lines across at each y, and words below each x. */
  renderAxes(x, xMarks, xWords, y, yMarks, yWords) {
    const parts = [];
    for (const value of yMarks) {
      const height = at(y(value));
      parts.push(draw("line", { x1: LEFT, x2: at(this.right), y1: height, y2: height }));
      parts.push(
        draw("text", { x: LEFT - 8, y: height, dy: "0.35em", "text-anchor": "end" }, yWords(value)),
      );
    }
    for (const value of xMarks) {
      const place = at(x(value));
      parts.push(
        draw("line", {
          class: "mark",
          x1: place,
          x2: place,
          y1: at(this.bottom),
          y2: at(this.bottom + 4),
        }),
      );
      parts.push(
        draw("text", { x: place, y: at(this.bottom + 17), "text-anchor": "middle" }, xWords(value)),
      );
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
