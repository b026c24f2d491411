// The mosaic of tiles: the newest frame of each slot that has a tile.

import { byId, create, setText } from "./elements.js";
import { paint } from "./frames.js";
import { mark, several, whole } from "./format.js";

const MIN_WIDTH = 68; // of a tile, in pixels
const IDEAL_ASPECT = 2.2; // of the whole mosaic

/** Returns the number of columns for `count` tiles: a good shape, with few gaps in the last row. */
function columnsFor(count, aspect, width) {
  const most = Math.max(1, Math.min(count, Math.floor(width / MIN_WIDTH)));
  const ideal = Math.min(most, Math.sqrt((count * IDEAL_ASPECT) / aspect));
  const last = Math.min(most, Math.ceil(ideal * 1.25));
  let best = [Infinity];
  for (let columns = Math.ceil(ideal * 0.75); columns <= last; columns += 1) {
    const gaps = Math.ceil(count / columns) * columns - count;
    const cost = gaps / count + Math.abs(columns - ideal) / (4 * ideal);
    if (cost < best[0]) best = [cost, columns];
  }
  return best[1];
}

export class Mosaic {
  #container = byId("mosaic");
  #note = byId("mosaic-note");
  #message = byId("mosaic-message");
  #tiles = new Map();
  #columns = 1;
  #aspect = 1.5; // width divided by height of the first frame
  #width = 0;
  #onOpen;

  /** `onOpen(slot)` is called when the user enlarges a tile. */
  constructor(onOpen) {
    this.#onOpen = onOpen;
    this.#container.addEventListener("keydown", (event) => this.#onKey(event));
    new ResizeObserver(([{ contentRect }]) => {
      this.#width = contentRect.width;
      this.#layOut();
    }).observe(this.#container);
  }

  /** The slots that have tiles, in display order. */
  get slots() {
    return [...this.#tiles.keys()];
  }

  canvasOf(slot) {
    return this.#tiles.get(slot)?.querySelector("canvas");
  }

  /** Moves the keyboard focus to a tile. */
  focus(slot) {
    const tile = this.#tiles.get(slot);
    if (!tile) return;
    this.#setTabStop(tile);
    tile.focus();
  }

  /** Updates the tiles from the server's state; tiles that remain keep their frames. */
  update({ tiles, num_slots: count, per_second: rate, unavailable: reason }) {
    if (tiles.join() !== this.slots.join()) {
      const tileOf = (slot) => this.#tiles.get(slot) ?? this.#createTile(slot);
      this.#tiles = new Map(tiles.map((slot) => [slot, tileOf(slot)]));
      this.#container.replaceChildren(...this.#tiles.values());
      this.#layOut();
      const all = [...this.#tiles.values()];
      if (all.length) this.#setTabStop(all.find((tile) => tile.tabIndex === 0) ?? all[0]);
    }
    this.#container.hidden = reason !== null;
    this.#message.hidden = reason === null;
    setText(this.#message, reason ?? "");
    const isPartial = tiles.length < count;
    const shown = isPartial ? `${whole(tiles.length)} of ${whole(count)}` : several(count, "slot");
    const frequency = `${mark(Math.round(rate * 10) / 10)} frames/s`;
    setText(this.#note, reason === null ? `${shown} · ${frequency}` : "");
  }

  /** Shows a frame in its tile. */
  show(frame) {
    const tile = this.#tiles.get(frame.slot);
    if (!tile) return;
    tile.classList.remove("waiting");
    // All tiles have the aspect ratio of the first frame; other frames are scaled to fit.
    const aspect = frame.width / frame.height;
    if (tile === this.#container.firstElementChild && aspect !== this.#aspect) {
      this.#aspect = aspect;
      this.#layOut();
    }
    paint(tile.querySelector("canvas"), frame);
  }

  /** Removes all tiles, because another run starts. */
  clear() {
    this.#tiles.clear();
    this.#container.replaceChildren();
  }

  #layOut() {
    if (!this.#tiles.size || !this.#width) return;
    this.#columns = columnsFor(this.#tiles.size, this.#aspect, this.#width);
    this.#container.style.setProperty("--columns", this.#columns);
    this.#container.style.setProperty("--aspect", this.#aspect);
  }

  #createTile(slot) {
    const canvas = create("canvas", { width: 3, height: 2 });
    const name = create("span", { text: String(slot) });
    const tile = create(
      "button",
      {
        type: "button",
        class: "tile waiting",
        tabindex: -1,
        "data-slot": slot,
        "aria-label": `Slot ${slot}, enlarge`,
      },
      canvas,
      name,
    );
    tile.addEventListener("click", () => this.#onOpen(slot));
    tile.addEventListener("focus", () => this.#setTabStop(tile));
    return tile;
  }

  // Tab reaches one tile only; arrow keys move from there to the others.
  #setTabStop(tile) {
    for (const other of this.#tiles.values()) other.tabIndex = other === tile ? 0 : -1;
  }

  #onKey(event) {
    const slots = this.slots;
    const now = slots.indexOf(Number(document.activeElement?.dataset.slot));
    if (now < 0) return;
    const next = {
      ArrowLeft: now - 1,
      ArrowRight: now + 1,
      ArrowUp: now - this.#columns,
      ArrowDown: now + this.#columns,
      Home: 0,
      End: slots.length - 1,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (next >= 0 && next < slots.length) this.focus(slots[next]);
  }
}
