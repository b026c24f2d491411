// The event log: newest first, filtered by kind; new events are announced to screen readers.

import { byId, create, setText } from "./elements.js";
import { several, timeOfDay } from "./format.js";

const MAX_EVENTS = 500;
const ALL = "all";

export class Log {
  #list = byId("log");
  #kinds = byId("log-kinds");
  #note = byId("log-note");
  #announcement = byId("log-announcement");
  #entries = [];
  #newestShown = 0; // the number of the newest event in the list
  #newestReceived = 0;
  #kind = ALL;

  constructor() {
    this.#kinds.addEventListener("change", ({ target }) => {
      this.#kind = target.value;
      this.#filter();
    });
    this.#addFilter(ALL);
  }

  /** Adds new events. After a reconnection some are received twice. */
  add(entries) {
    for (const entry of entries) {
      if (entry.n <= this.#newestReceived) continue;
      this.#newestReceived = entry.n;
      this.#entries.push(entry);
    }
    this.#entries = this.#entries.slice(-MAX_EVENTS);
  }

  /** Removes all events, because another run starts. */
  clear() {
    this.#entries = [];
    this.#newestShown = this.#newestReceived = 0;
    this.#kind = ALL;
    this.#list.replaceChildren();
    for (const label of this.#kinds.querySelectorAll("label")) label.remove();
    this.#addFilter(ALL);
  }

  /** Adds the received events to the list. */
  update() {
    const added = this.#entries.filter(({ n }) => n > this.#newestShown);
    if (!added.length) return;
    const isFirst = this.#newestShown === 0;
    this.#newestShown = added.at(-1).n;
    for (const entry of added) {
      if (!this.#inputOf(entry.kind)) this.#addFilter(entry.kind);
      this.#list.prepend(this.#createItem(entry, !isFirst));
    }
    while (this.#list.children.length > MAX_EVENTS) this.#list.lastElementChild.remove();
    setText(this.#note, several(this.#entries.length, "event"));
    if (!isFirst) this.#announce(added);
  }

  #announce(added) {
    const { kind, text } = added.at(-1);
    const prefix = added.length > 1 ? `${added.length} new events, the newest: ` : "";
    setText(this.#announcement, `${prefix}${kind}, ${text}`);
  }

  #inputOf(kind) {
    return [...this.#kinds.querySelectorAll("input")].find((input) => input.value === kind);
  }

  #addFilter(kind) {
    const input = create("input", { type: "radio", name: "log-kind", value: kind });
    input.checked = kind === this.#kind;
    const label = create("span", { text: kind });
    this.#kinds.append(create("label", { "data-kind": kind }, input, label));
  }

  #createItem({ time, kind, text }, isNew) {
    const moment = create("time", {
      datetime: new Date(time * 1000).toISOString(),
      text: timeOfDay(time),
    });
    const item = create(
      "li",
      { "data-kind": kind, class: isNew ? "new" : "" },
      moment,
      create("span", { class: "kind", text: kind }),
      create("span", { class: "text", text }),
    );
    item.hidden = this.#isHidden(kind);
    return item;
  }

  #isHidden(kind) {
    return this.#kind !== ALL && this.#kind !== kind;
  }

  #filter() {
    for (const item of this.#list.children) item.hidden = this.#isHidden(item.dataset.kind);
  }
}
