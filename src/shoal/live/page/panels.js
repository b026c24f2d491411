// The panels of numbers and charts: speed, batch times, returns, win rate.

import { byId, say } from "./elements.js";
import { LineChart } from "./linechart.js";
import { TimesChart } from "./timeschart.js";
import { clock, compact, figure, percent, span, whole } from "./format.js";

const orNull = (history) => (history.length ? history : null);

export class Panels {
  #rates = new LineChart(byId("rate-chart"), "Steps per second", {
    clocked: true,
    fromZero: true,
    words: compact,
  });
  #times = new TimesChart(byId("times-chart"));
  #returns = new LineChart(byId("return-chart"), "Mean return", { words: figure });
  #wins = new LineChart(byId("win-chart"), "Win rate", { top: 1, words: percent, yMarks: percent });

  update(state) {
    this.#speed(state);
    this.#batchTimes(state.step_times);
    this.#episodes(state.returns, state.wins);
  }

  #speed(state) {
    say(byId("rate"), compact(state.rate.now));
    this.#rates.show(orNull(state.rate.history));
    say(byId("steps"), whole(state.steps));
    say(byId("batches"), whole(state.batches));
    say(byId("episodes"), whole(state.episodes));
    say(byId("slots"), whole(state.num_envs));
    say(byId("elapsed"), clock(state.now - state.started));
    say(byId("cost"), percent(state.cost));
  }

  #batchTimes(times) {
    this.#times.show(times.counts.length ? times : null);
    for (const name of ["median", "p90", "p99", "longest"])
      say(byId(`time-${name}`), span(times[name]));
  }

  #episodes(returns, wins) {
    say(byId("return-mean"), figure(returns.mean));
    say(byId("return-length"), figure(returns.length));
    this.#returns.show(orNull(returns.history));
    byId("wins").hidden = wins === null;
    if (wins === null) return;
    say(byId("win-rate"), percent(wins.rate));
    this.#wins.show(orNull(wins.history));
  }
}
