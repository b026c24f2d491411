// The page: receives states, and draws the newest at most twice a second while it is visible.

import { Closeup } from "./closeup.js";
import { byId, setText } from "./elements.js";
import { Log } from "./log.js";
import { Mosaic } from "./mosaic.js";
import { Panels } from "./panels.js";
import { FrameFeed } from "./frames.js";
import { receiveStates } from "./stream.js";
import { connectTheme } from "./theme.js";
import { Training } from "./training.js";
import { compact } from "./format.js";
import { Workers } from "./workers.js";

const DRAW_INTERVAL_MS = 490;
const WAITING_AFTER_MS = 1500;

const log = new Log();
const panels = new Panels();
const training = new Training();
const workers = new Workers();
const mosaic = new Mosaic((slot) => closeup.open(slot));
const feed = new FrameFeed(
  (frame) => {
    mosaic.show(frame);
    closeup.show(frame);
  },
  () => isPaused || isLost || document.hidden || Boolean(state?.ended),
);
const closeup = new Closeup(mosaic, feed);

let state = null; // the newest one
let lastBatchAt = -Infinity;
let isLost = false;
let isPaused = false;
let drawnState = null;
let drawnAt = -DRAW_INTERVAL_MS;
let drawTimer = null;

function onState(newState) {
  if (state !== null && newState.id !== state.id) clearRun();
  if (newState.batches !== (state?.batches ?? 0)) lastBatchAt = performance.now();
  state = newState;
  isLost = false;
  log.add(newState.log);
  showStatus();
  scheduleDraw();
}

function clearRun() {
  log.clear();
  mosaic.clear();
  feed.restart();
}

function scheduleDraw() {
  if (drawTimer !== null || isPaused || document.hidden || state === drawnState) return;
  const wait = drawnAt + DRAW_INTERVAL_MS - performance.now();
  if (wait <= 0) {
    drawState();
    return;
  }
  drawTimer = setTimeout(() => {
    drawTimer = null;
    scheduleDraw();
  }, wait);
}

function drawState() {
  drawnState = state;
  drawnAt = performance.now();
  byId("status").classList.toggle("beat");
  setText(byId("title"), state.title);
  const plan = byId("plan");
  setText(plan, state.plan);
  plan.hidden = !state.plan;
  panels.update(state);
  workers.update(state.workers);
  training.update(state.training);
  log.update();
  mosaic.update(state.pictures);
  closeup.update(state.pictures.tiles);
  if (state.pictures.unavailable === null) feed.refresh();
}

/** Returns the status as a name for the style sheet and a text for the user. */
function status() {
  if (state?.ended) return ["ended", state.ended === "closed" ? "ended" : `ended: ${state.ended}`];
  if (isLost) return ["lost", "connection lost, reconnecting"];
  if (state === null) return ["waiting", "connecting"];
  if (isPaused) return ["paused", "paused"];
  if (performance.now() - lastBatchAt > WAITING_AFTER_MS) return ["waiting", "waiting for a batch"];
  return ["running", "running"];
}

function showStatus() {
  const [name, text] = status();
  const element = byId("status");
  element.dataset.state = name;
  setText(element, text);
  if (state === null) return;
  const head = name === "running" ? `${compact(state.rate.now)}/s` : text;
  const title = `${head} · ${state.title} · Shoal`;
  if (document.title !== title) document.title = title;
}

connectTheme(byId("theme"));
byId("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  setText(byId("pause"), isPaused ? "Resume" : "Pause");
  scheduleDraw();
  showStatus();
});
document.addEventListener("visibilitychange", scheduleDraw);
setInterval(showStatus, 1000);
receiveStates(onState, () => {
  isLost = true;
  showStatus();
});
