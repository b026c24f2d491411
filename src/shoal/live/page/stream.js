// Hears what the server tells, and tries again when the connection was lost.

const AGAIN_MS = 500;
const SILENT_MS = 10_000; // the server says something every two seconds, whatever happens

/**
 * Calls `onState(state)` with each state until one has ended, and `onLost()` when the connection
 * breaks.
 */
export function listen(onState, onLost) {
  const source = new EventSource("events");
  let heardAt = performance.now();

  const leave = () => {
    source.close();
    clearInterval(watch);
  };
  const tryAgain = () => {
    leave();
    onLost();
    setTimeout(() => listen(onState, onLost), AGAIN_MS);
  };
  const watch = setInterval(() => {
    if (performance.now() - heardAt > SILENT_MS) tryAgain();
  }, AGAIN_MS);

  source.addEventListener("state", (event) => {
    heardAt = performance.now();
    const state = JSON.parse(event.data);
    if (state.ended) leave();
    onState(state);
  });
  source.addEventListener("error", tryAgain);
}
