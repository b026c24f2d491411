// The table of workers: who drives which slots, how busy, how often begun anew.

import { byId, make, say } from "./elements.js";
import { percent, several, slotRange, whole } from "./format.js";

export class Workers {
  #body = byId("workers");
  #note = byId("workers-note");
  #rows = [];

  update(workers) {
    while (this.#rows.length > workers.length) this.#rows.pop().row.remove();
    while (this.#rows.length < workers.length) this.#add();
    workers.forEach((worker, k) => this.#fill(this.#rows[k], worker));
    say(this.#note, several(workers.length, "worker"));
  }

  #add() {
    const name = make("span", { class: "name" });
    const where = make("span", { class: "where" });
    const slots = make("td", { class: "number" });
    const fill = make("span", { class: "fill" });
    const bar = make(
      "span",
      { class: "bar", role: "meter", "aria-valuemin": 0, "aria-valuemax": 100 },
      fill,
    );
    const load = make("span", { class: "share" });
    const restarts = make("td", { class: "number" });
    const who = make("th", { scope: "row" }, name, where);
    const row = make(
      "tr",
      {},
      who,
      slots,
      make("td", {}, make("span", { class: "load" }, bar, load)),
      restarts,
    );
    this.#body.append(row);
    this.#rows.push({ row, name, where, slots, bar, fill, load, restarts });
  }

  #fill({ row, name, where, slots, bar, fill, load, restarts }, worker) {
    say(name, worker.name);
    say(where, worker.where);
    say(slots, slotRange(worker.slots));
    say(load, percent(worker.load));
    const share = Math.min(1, worker.load ?? 0);
    fill.style.transform = `scaleX(${share.toFixed(3)})`;
    bar.setAttribute("aria-label", `Load of ${worker.name}`);
    bar.setAttribute("aria-valuenow", Math.round(share * 100));
    say(restarts, whole(worker.restarts));
    row.classList.toggle("restarted", worker.restarts > 0);
  }
}
