// The training panel: progress, losses, evaluations, ratings.

import { byId, create, setText } from "./elements.js";
import { figure, mark, percent, whole } from "./format.js";

const number = (text) => create("td", { class: "number", text });

/** A win rate and its confidence interval, as a bar from 0 to 1. */
function winCell({ win_rate: rate, low, high }) {
  if (rate === null) return create("td", { text: "–" });
  const interval = create("span", { class: "interval" });
  const point = create("span", { class: "point" });
  interval.style.left = `${(low ?? rate) * 100}%`;
  interval.style.width = `${((high ?? rate) - (low ?? rate)) * 100}%`;
  point.style.left = `${rate * 100}%`;
  const range = create("span", { class: "range", "aria-hidden": "true" }, interval, point);
  return create(
    "td",
    {},
    create(
      "span",
      { class: "load" },
      range,
      create("span", { class: "share", text: percent(rate) }),
    ),
  );
}

/** The mean reward; with its confidence interval if there is no win rate. */
function rewardCell({ win_rate: rate, low, high, mean_reward: mean }) {
  const interval =
    rate === null && low !== null && high !== null ? ` (${figure(low)} to ${figure(high)})` : "";
  return number(figure(mean) + interval);
}

const evaluationRow = (evaluation) =>
  create(
    "tr",
    {},
    number(mark(evaluation.step)),
    create("td", { text: evaluation.opponent || "–" }),
    number(whole(evaluation.games)),
    winCell(evaluation),
    rewardCell(evaluation),
  );

const ratingRow = (rating) =>
  create(
    "tr",
    {},
    create("td", { text: rating.player }),
    create("td", { text: rating.role }),
    number(figure(rating.rating)),
    number(whole(rating.games)),
  );

/** A section with rows, which is updated when its data changes and hidden if there are no rows. */
class Section {
  #data = "";

  constructor(name, createRow) {
    this.section = byId(`${name}-section`);
    this.body = byId(name);
    this.createRow = createRow;
  }

  update(rows) {
    const data = JSON.stringify(rows);
    if (data === this.#data) return;
    this.#data = data;
    this.section.hidden = rows.length === 0;
    this.body.replaceChildren(...rows.map(this.createRow));
  }
}

export class Training {
  #panel = byId("training");
  #losses = new Section("losses", ([name, value]) =>
    create("div", {}, create("dt", { text: name }), create("dd", { text: figure(value) })),
  );
  #evaluations = new Section("evaluations", evaluationRow);
  #ratings = new Section("ratings", ratingRow);

  update(training) {
    this.#panel.hidden = training === null;
    if (training === null) return;
    this.#evaluations.update(training.evaluations.toReversed());
    this.#ratings.update(
      training.ratings.toSorted((one, other) => (other.rating ?? 0) - (one.rating ?? 0)),
    );
    const { phase, phase_number: index, phases } = training;
    if (phase === undefined) return; // no progress has been reported yet
    setText(
      byId("phase-label"),
      phases > 1 ? `Phase ${index + 1} of ${phases}: ${phase}` : `Phase: ${phase}`,
    );
    this.#showProgress("phase", training.phase_share);
    this.#showProgress("run", training.share);
    setText(
      byId("training-pace"),
      `${whole(training.updates)} updates · ${figure(training.updates_per_second)}/s`,
    );
    this.#losses.update(Object.entries(training.losses));
  }

  #showProgress(name, share) {
    byId(`${name}-share`).value = share ?? 0;
    setText(byId(`${name}-percent`), percent(share));
  }
}
