// The event log: newest first, one kind or all, new ones announced.

import { byId, make, say } from "./elements.js";
import { several, timeOfDay } from "./format.js";

const KEPT = 500;
const ALL = "all";

export class Log {
  #list = byId("log");
  #kinds = byId("log-kinds");
  #note = byId("log-note");
  #news = byId("log-news");
  #entries = [];
  #shown = 0; // the number of the newest that is in the list
  #heard = 0; // the number of the newest that has come
  #kind = ALL;

  constructor() {
    this.#kinds.addEventListener("change", ({ target }) => {
      this.#kind = target.value;
      this.#filter();
    });
    this.#offer(ALL);
  }

  /** Takes entries that are new; after a lost connection some may come twice. */
  add(entries) {
    for (const entry of entries) {
      if (entry.n <= this.#heard) continue;
      this.#heard = entry.n;
      this.#entries.push(entry);
    }
    if (this.#entries.length > KEPT) this.#entries.splice(0, this.#entries.length - KEPT);
  }

  /** Forgets everything: another run begins. */
  clear() {
    this.#entries = [];
    this.#shown = this.#heard = 0;
    this.#kind = ALL;
    this.#list.replaceChildren();
    for (const label of this.#kinds.querySelectorAll("label")) label.remove();
    this.#offer(ALL);
  }

  /** Brings the list to what has come. */
  update() {
    const fresh = this.#entries.filter(({ n }) => n > this.#shown);
    if (!fresh.length) return;
    const first = this.#shown === 0;
    this.#shown = fresh.at(-1).n;
    for (const entry of fresh) {
      if (!this.#inputOf(entry.kind)) this.#offer(entry.kind);
      this.#list.prepend(this.#make(entry, !first));
    }
    while (this.#list.children.length > KEPT) this.#list.lastElementChild.remove();
    say(this.#note, several(this.#entries.length, "event"));
    if (!first) this.#announce(fresh);
  }

  #announce(fresh) {
    const { kind, text } = fresh.at(-1);
    const before = fresh.length > 1 ? `${fresh.length} new events, the last one: ` : "";
    say(this.#news, `${before}${kind}, ${text}`);
  }

  #inputOf(kind) {
    return [...this.#kinds.querySelectorAll("input")].find((input) => input.value === kind);
  }

  #offer(kind) {
    const input = make("input", { type: "radio", name: "log-kind", value: kind });
    input.checked = kind === this.#kind;
    this.#kinds.append(make("label", { "data-kind": kind }, input, make("span", { text: kind })));
  }

  #make({ time, kind, text }, isNew) {
    const moment = make("time", {
      datetime: new Date(time * 1000).toISOString(),
      text: timeOfDay(time),
    });
    const item = make(
      "li",
      { "data-kind": kind, class: isNew ? "new" : "" },
      moment,
      make("span", { class: "kind", text: kind }),
      make("span", { class: "text", text }),
    );
    item.hidden = this.#hides(kind);
    return item;
  }

  #hides(kind) {
    return this.#kind !== ALL && this.#kind !== kind;
  }

  #filter() {
    for (const item of this.#list.children) item.hidden = this.#hides(item.dataset.kind);
  }
}
