// The panels with numbers and charts: speed, batch times, returns, win rate.

import { byId, setText } from "./elements.js";
import { LineChart } from "./linechart.js";
import { TimesChart } from "./timeschart.js";
import { clock, compact, figure, percent, span, whole } from "./format.js";

const orNull = (history) => (history.length ? history : null);

export class Panels {
  #rates = new LineChart(byId("rate-chart"), "Steps per second", {
    isTime: true,
    fromZero: true,
    format: compact,
  });
  #times = new TimesChart(byId("times-chart"));
  #returns = new LineChart(byId("return-chart"), "Mean return", { format: figure });
  #wins = new LineChart(byId("win-chart"), "Win rate", {
    top: 1,
    format: percent,
    formatMark: percent,
  });

  update(state) {
    this.#updateSpeed(state);
    this.#updateBatchTimes(state.step_times);
    this.#updateEpisodes(state.returns, state.wins);
  }

  #updateSpeed(state) {
    setText(byId("rate"), compact(state.rate.now));
    this.#rates.show(orNull(state.rate.history));
    setText(byId("steps"), whole(state.steps));
    setText(byId("batches"), whole(state.batches));
    setText(byId("episodes"), whole(state.episodes));
    setText(byId("slots"), whole(state.num_envs));
    setText(byId("elapsed"), clock(state.now - state.started));
    setText(byId("cost"), percent(state.cost));
  }

  #updateBatchTimes(times) {
    this.#times.show(times.counts.length ? times : null);
    for (const name of ["median", "p90", "p99", "longest"])
      setText(byId(`time-${name}`), span(times[name]));
  }

  #updateEpisodes(returns, wins) {
    setText(byId("return-mean"), figure(returns.mean));
    setText(byId("return-length"), figure(returns.length));
    this.#returns.show(orNull(returns.history));
    byId("wins").hidden = wins === null;
    if (wins === null) return;
    setText(byId("win-rate"), percent(wins.rate));
    this.#wins.show(orNull(wins.history));
  }
}
