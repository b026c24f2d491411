// A dialog that shows one slot enlarged.

import { byId, setText } from "./elements.js";
import { paint } from "./frames.js";

export class Closeup {
  #dialog = byId("closeup");
  #canvas = byId("closeup-frame");
  #title = byId("closeup-title");
  #mosaic;
  #feed;
  #slot = null;

  constructor(mosaic, feed) {
    this.#mosaic = mosaic;
    this.#feed = feed;
    byId("closeup-previous").addEventListener("click", () => this.#move(-1));
    byId("closeup-next").addEventListener("click", () => this.#move(1));
    this.#dialog.addEventListener("click", ({ target }) => {
      if (!target.closest(".closeup-bar") || target.id === "closeup-close") this.#dialog.close();
    });
    this.#dialog.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      if (!step) return;
      event.preventDefault(); // do not scroll the page
      this.#move(step);
    });
    // Also fired when the dialog is closed with Escape.
    this.#dialog.addEventListener("close", () => this.#onClose());
    addEventListener("pagehide", () => {
      if (this.#slot !== null) this.#feed.focus(null);
    });
  }

  open(slot) {
    this.#slot = slot;
    setText(this.#title, `Slot ${slot}`);
    this.#copy(this.#mosaic.canvasOf(slot));
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#feed.focus(slot);
  }

  /** Shows a frame if it belongs to the open slot. */
  show(frame) {
    if (frame.slot !== this.#slot) return;
    paint(this.#canvas, frame);
    this.#fit();
  }

  /** Closes the dialog if the slot no longer has a tile. */
  update(tiles) {
    if (this.#slot !== null && !tiles.includes(this.#slot)) this.#dialog.close();
  }

  #move(step) {
    const slots = this.#mosaic.slots;
    const index = slots.indexOf(this.#slot) + step;
    if (index >= 0 && index < slots.length) this.open(slots[index]);
  }

  #onClose() {
    const slot = this.#slot;
    this.#slot = null;
    this.#feed.focus(null);
    this.#mosaic.focus(slot);
  }

  #copy(canvas) {
    [this.#canvas.width, this.#canvas.height] = [canvas.width, canvas.height];
    this.#canvas.getContext("2d").drawImage(canvas, 0, 0);
    this.#fit();
  }

  // As large as the window allows, with the aspect ratio of the frame.
  #fit() {
    this.#canvas.style.setProperty("--aspect", this.#canvas.width / this.#canvas.height);
  }
}
