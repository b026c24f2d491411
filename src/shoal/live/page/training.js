// The training panel: how far it is, losses, evaluations, ratings.

import { byId, make, say } from "./elements.js";
import { figure, mark, percent, whole } from "./format.js";

const number = (text) => make("td", { class: "number", text });

/** A win rate with the interval that it lies in, as a bar from 0 to 1. */
function winCell({ win_rate: rate, low, high }) {
  if (rate === null) return make("td", { text: "–" });
  const interval = make("span", { class: "interval" });
  const point = make("span", { class: "point" });
  interval.style.left = `${(low ?? rate) * 100}%`;
  interval.style.width = `${((high ?? rate) - (low ?? rate)) * 100}%`;
  point.style.left = `${rate * 100}%`;
  const range = make("span", { class: "range", "aria-hidden": "true" }, interval, point);
  return make(
    "td",
    {},
    make("span", { class: "load" }, range, make("span", { class: "share", text: percent(rate) })),
  );
}

/** The mean reward, with its interval where that is what was measured. */
function rewardCell({ win_rate: rate, low, high, mean_reward: mean }) {
  const interval =
    rate === null && low !== null && high !== null ? ` (${figure(low)} to ${figure(high)})` : "";
  return number(figure(mean) + interval);
}

const evaluationRow = (evaluation) =>
  make(
    "tr",
    {},
    number(mark(evaluation.step)),
    make("td", { text: evaluation.opponent || "–" }),
    number(whole(evaluation.games)),
    winCell(evaluation),
    rewardCell(evaluation),
  );

const ratingRow = (rating) =>
  make(
    "tr",
    {},
    make("td", { text: rating.player }),
    make("td", { text: rating.role }),
    number(figure(rating.rating)),
    number(whole(rating.games)),
  );

/** Fills a part with rows where they are others than before, and hides it where there are none. */
class Part {
  #told = "";

  constructor(name, makeRow) {
    this.part = byId(`${name}-part`);
    this.body = byId(name);
    this.makeRow = makeRow;
  }

  update(values) {
    const told = JSON.stringify(values);
    if (told === this.#told) return;
    this.#told = told;
    this.part.hidden = values.length === 0;
    this.body.replaceChildren(...values.map(this.makeRow));
  }
}

export class Training {
  #panel = byId("training");
  #losses = new Part("losses", ([name, value]) =>
    make("div", {}, make("dt", { text: name }), make("dd", { text: figure(value) })),
  );
  #evaluations = new Part("evaluations", evaluationRow);
  #ratings = new Part("ratings", ratingRow);

  update(training) {
    this.#panel.hidden = training === null;
    if (training === null) return;
    this.#evaluations.update(training.evaluations.toReversed());
    this.#ratings.update(
      training.ratings.toSorted((one, other) => (other.rating ?? 0) - (one.rating ?? 0)),
    );
    const { phase, phase_number: at, phases } = training;
    if (phase === undefined) return; // it has only just begun
    say(
      byId("phase-label"),
      phases > 1 ? `Phase ${at + 1} of ${phases}: ${phase}` : `Phase: ${phase}`,
    );
    this.#progress("phase", training.phase_share);
    this.#progress("run", training.share);
    say(
      byId("training-pace"),
      `${whole(training.updates)} updates · ${figure(training.updates_per_second)} a second`,
    );
    this.#losses.update(Object.entries(training.losses));
  }

  #progress(name, share) {
    byId(`${name}-share`).value = share ?? 0;
    say(byId(`${name}-percent`), percent(share));
  }
}
