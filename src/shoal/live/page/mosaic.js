// The tiles: a live picture of each slot that has one.

import { byId, make, say } from "./elements.js";
import { paint } from "./frames.js";
import { mark, several, whole } from "./format.js";

const SMALLEST = 68; // pixels across
const ROOM = 2.2; // how much wider than high the mosaic would best be

/** How many columns `count` tiles of this form look best in: a full last row, if possible. */
function columnsFor(count, form, width) {
  const most = Math.max(1, Math.min(count, Math.floor(width / SMALLEST)));
  const ideal = Math.min(most, Math.sqrt((count * ROOM) / form));
  const last = Math.min(most, Math.ceil(ideal * 1.25));
  let best = [Infinity];
  for (let columns = Math.ceil(ideal * 0.75); columns <= last; columns += 1) {
    const empty = Math.ceil(count / columns) * columns - count;
    const badness = empty / count + Math.abs(columns - ideal) / (4 * ideal);
    if (badness < best[0]) best = [badness, columns];
  }
  return best[1];
}

export class Mosaic {
  #place = byId("mosaic");
  #note = byId("mosaic-note");
  #none = byId("mosaic-none");
  #tiles = new Map();
  #columns = 1;
  #form = 1.5; // width by height of the first picture
  #width = 0;
  #onOpen;

  /** `onOpen(slot)` is called for a tile that is to be enlarged. */
  constructor(onOpen) {
    this.#onOpen = onOpen;
    this.#place.addEventListener("keydown", (event) => this.#move(event));
    new ResizeObserver(([{ contentRect }]) => {
      this.#width = contentRect.width;
      this.#arrange();
    }).observe(this.#place);
  }

  /** The slots that have tiles, in the order of the tiles. */
  get slots() {
    return [...this.#tiles.keys()];
  }

  canvasOf(slot) {
    return this.#tiles.get(slot)?.querySelector("canvas");
  }

  /** Puts the keyboard at a tile. */
  enter(slot) {
    const tile = this.#tiles.get(slot);
    if (!tile) return;
    this.#giveTab(tile);
    tile.focus();
  }

  /** Takes tiles as the server tells them; those that stay keep their pictures. */
  update({ tiles, shown_of: count, per_second: rate, why_none: why }) {
    if (tiles.join() !== this.slots.join()) {
      this.#tiles = new Map(tiles.map((slot) => [slot, this.#tiles.get(slot) ?? this.#make(slot)]));
      this.#place.replaceChildren(...this.#tiles.values());
      this.#arrange();
      const all = [...this.#tiles.values()];
      if (all.length) this.#giveTab(all.find((tile) => tile.tabIndex === 0) ?? all[0]);
    }
    this.#place.hidden = why !== null;
    this.#none.hidden = why === null;
    say(this.#none, why ?? "");
    const some = tiles.length < count;
    const shown = some ? `${whole(tiles.length)} of ${whole(count)}` : several(count, "slot");
    const pace = `${mark(Math.round(rate * 10) / 10)} pictures/s`;
    say(this.#note, why === null ? `${shown} · ${pace}` : "");
  }

  /** Shows a picture in its tile. */
  show(picture) {
    const tile = this.#tiles.get(picture.slot);
    if (!tile) return;
    tile.classList.remove("waiting");
    // One form for all tiles; a picture of another one is fitted in.
    const form = picture.width / picture.height;
    if (tile === this.#place.firstElementChild && form !== this.#form) {
      this.#form = form;
      this.#arrange();
    }
    paint(tile.querySelector("canvas"), picture);
  }

  /** Forgets all tiles: another run begins. */
  clear() {
    this.#tiles.clear();
    this.#place.replaceChildren();
  }

  #arrange() {
    if (!this.#tiles.size || !this.#width) return;
    this.#columns = columnsFor(this.#tiles.size, this.#form, this.#width);
    this.#place.style.setProperty("--columns", this.#columns);
    this.#place.style.setProperty("--form", this.#form);
  }

  #make(slot) {
    const canvas = make("canvas", { width: 3, height: 2 });
    const name = make("span", { text: String(slot) });
    const tile = make(
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
    tile.addEventListener("focus", () => this.#giveTab(tile));
    return tile;
  }

  // The tab key reaches one tile; from there, arrow keys reach the others.
  #giveTab(tile) {
    for (const other of this.#tiles.values()) other.tabIndex = other === tile ? 0 : -1;
  }

  #move(event) {
    const slots = this.slots;
    const now = slots.indexOf(Number(document.activeElement?.dataset.slot));
    if (now < 0) return;
    const to = {
      ArrowLeft: now - 1,
      ArrowRight: now + 1,
      ArrowUp: now - this.#columns,
      ArrowDown: now + this.#columns,
      Home: 0,
      End: slots.length - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to >= 0 && to < slots.length) this.enter(slots[to]);
  }
}
