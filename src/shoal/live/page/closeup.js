// One slot, enlarged: a dialog over the page.

import { byId, say } from "./elements.js";
import { paint } from "./frames.js";

export class Closeup {
  #dialog = byId("closeup");
  #canvas = byId("closeup-picture");
  #title = byId("closeup-title");
  #mosaic;
  #feed;
  #slot = null;

  constructor(mosaic, feed) {
    this.#mosaic = mosaic;
    this.#feed = feed;
    byId("closeup-before").addEventListener("click", () => this.#turn(-1));
    byId("closeup-after").addEventListener("click", () => this.#turn(1));
    this.#dialog.addEventListener("click", ({ target }) => {
      if (!target.closest(".closeup-bar") || target.id === "closeup-close") this.#dialog.close();
    });
    this.#dialog.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      if (!way) return;
      event.preventDefault(); // the page below stays where it is
      this.#turn(way);
    });
    // However it was closed, by Escape too.
    this.#dialog.addEventListener("close", () => this.#leave());
    addEventListener("pagehide", () => {
      if (this.#slot !== null) this.#feed.focus(null);
    });
  }

  open(slot) {
    this.#slot = slot;
    say(this.#title, `Slot ${slot}`);
    this.#copy(this.#mosaic.canvasOf(slot));
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#feed.focus(slot);
  }

  /** Shows a picture if it is of this slot. */
  show(picture) {
    if (picture.slot !== this.#slot) return;
    paint(this.#canvas, picture);
    this.#fit();
  }

  /** Closes if the slot has no tile any more. */
  update(tiles) {
    if (this.#slot !== null && !tiles.includes(this.#slot)) this.#dialog.close();
  }

  #turn(way) {
    const slots = this.#mosaic.slots;
    const to = slots.indexOf(this.#slot) + way;
    if (to >= 0 && to < slots.length) this.open(slots[to]);
  }

  #leave() {
    const slot = this.#slot;
    this.#slot = null;
    this.#feed.focus(null);
    this.#mosaic.enter(slot);
  }

  #copy(canvas) {
    [this.#canvas.width, this.#canvas.height] = [canvas.width, canvas.height];
    this.#canvas.getContext("2d").drawImage(canvas, 0, 0);
    this.#fit();
  }

  // As large as the window lets it be, in the form that the picture has.
  #fit() {
    this.#canvas.style.setProperty("--form", this.#canvas.width / this.#canvas.height);
  }
}
