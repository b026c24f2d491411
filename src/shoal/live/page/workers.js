// The table of workers: their slots, location, load and restarts.

import { byId, create, setText } from "./elements.js";
import { percent, several, slotRange, whole } from "./format.js";

export class Workers {
  #body = byId("workers");
  #note = byId("workers-note");
  #rows = [];

  update(workers) {
    while (this.#rows.length > workers.length) this.#rows.pop().row.remove();
    while (this.#rows.length < workers.length) this.#addRow();
    workers.forEach((worker, k) => this.#fillRow(this.#rows[k], worker));
    setText(this.#note, several(workers.length, "worker"));
  }

  #addRow() {
    const name = create("span", { class: "name" });
    const location = create("span", { class: "location" });
    const slots = create("td", { class: "number" });
    const fill = create("span", { class: "fill" });
    const bar = create(
      "span",
      { class: "bar", role: "meter", "aria-valuemin": 0, "aria-valuemax": 100 },
      fill,
    );
    const load = create("span", { class: "share" });
    const restarts = create("td", { class: "number" });
    const header = create("th", { scope: "row" }, name, location);
    const row = create(
      "tr",
      {},
      header,
      slots,
      create("td", {}, create("span", { class: "load" }, bar, load)),
      restarts,
    );
    this.#body.append(row);
    this.#rows.push({ row, name, location, slots, bar, fill, load, restarts });
  }

  #fillRow({ row, name, location, slots, bar, fill, load, restarts }, worker) {
    setText(name, worker.name);
    setText(location, worker.location);
    setText(slots, slotRange(worker.slots));
    setText(load, percent(worker.load));
    const share = Math.min(1, worker.load ?? 0);
    fill.style.transform = `scaleX(${share.toFixed(3)})`;
    bar.setAttribute("aria-label", `Load of ${worker.name}`);
    bar.setAttribute("aria-valuenow", Math.round(share * 100));
    setText(restarts, whole(worker.restarts));
    row.classList.toggle("restarted", worker.restarts > 0);
  }
}
