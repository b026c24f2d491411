// The page: hears states, and draws the newest at most twice a second while someone can see it.

import { Closeup } from "./closeup.js";
import { byId, say } from "./elements.js";
import { Log } from "./log.js";
import { Mosaic } from "./mosaic.js";
import { Panels } from "./panels.js";
import { PictureFeed } from "./frames.js";
import { listen } from "./stream.js";
import { connectTheme } from "./theme.js";
import { Training } from "./training.js";
import { compact } from "./format.js";
import { Workers } from "./workers.js";

const DRAW_MS = 490;
const STILL_MS = 1500;

const log = new Log();
const panels = new Panels();
const training = new Training();
const workers = new Workers();
const mosaic = new Mosaic((slot) => closeup.open(slot));
const feed = new PictureFeed(
  (picture) => {
    mosaic.show(picture);
    closeup.show(picture);
  },
  () => paused || lost || document.hidden || Boolean(state?.ended),
);
const closeup = new Closeup(mosaic, feed);

let state = null; // the newest one
let movedAt = -Infinity; // when there was a new batch
let lost = false;
let paused = false;
let drawn = null; // the state that is on the screen
let drawnAt = -DRAW_MS;
let drawing = null; // what waits to draw

function hear(next) {
  if (state !== null && next.id !== state.id) beginAnew();
  if (next.batches !== (state?.batches ?? 0)) movedAt = performance.now();
  state = next;
  lost = false;
  log.add(next.log);
  showStatus();
  drawSoon();
}

function beginAnew() {
  log.clear();
  mosaic.clear();
  feed.restart();
}

function drawSoon() {
  if (drawing !== null || paused || document.hidden || state === drawn) return;
  const wait = drawnAt + DRAW_MS - performance.now();
  if (wait <= 0) {
    drawState();
    return;
  }
  drawing = setTimeout(() => {
    drawing = null;
    drawSoon();
  }, wait);
}

function drawState() {
  drawn = state;
  drawnAt = performance.now();
  byId("status").classList.toggle("beat");
  say(byId("title"), state.title);
  const plan = byId("plan");
  say(plan, state.plan);
  plan.hidden = !state.plan;
  panels.update(state);
  workers.update(state.workers);
  training.update(state.training);
  log.update();
  mosaic.update(state.pictures);
  closeup.update(state.pictures.tiles);
  if (state.pictures.why_none === null) feed.refresh();
}

/** How it is, in a word for the style sheet and in words for who reads. */
function status() {
  if (state?.ended) return ["ended", state.ended === "closed" ? "ended" : `ended: ${state.ended}`];
  if (lost) return ["lost", "connection lost, trying again"];
  if (state === null) return ["waiting", "connecting"];
  if (paused) return ["paused", "paused here"];
  if (performance.now() - movedAt > STILL_MS) return ["waiting", "waiting for a batch"];
  return ["running", "running"];
}

function showStatus() {
  const [name, words] = status();
  const place = byId("status");
  place.dataset.state = name;
  say(place, words);
  if (state === null) return;
  const head = name === "running" ? `${compact(state.rate.now)}/s` : words;
  const title = `${head} · ${state.title} · Shoal`;
  if (document.title !== title) document.title = title;
}

connectTheme(byId("theme"));
byId("pause").addEventListener("click", () => {
  paused = !paused;
  say(byId("pause"), paused ? "Resume" : "Pause");
  drawSoon();
  showStatus();
});
document.addEventListener("visibilitychange", drawSoon);
setInterval(showStatus, 1000);
listen(hear, () => {
  lost = true;
  showStatus();
});
