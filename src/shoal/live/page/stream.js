// Hears what the server tells, and tries again when the connection was lost.

const AGAIN_MS = 3000;
const SILENT_MS = 10_000; // the server says something every two seconds, whatever happens

/** Calls `onState(state)` with each state until one has ended, and `onLost()` when the connection breaks. */
export function listen(onState, onLost) {
  const source = new EventSource("events");
  let heardAt = performance.now();

  const giveUp = () => {
    source.close();
    clearInterval(watch);
  };
  const watch = setInterval(() => {
    if (performance.now() - heardAt > SILENT_MS) again(0);
  }, 1000);
  const again = (wait) => {
    giveUp();
    onLost();
    setTimeout(() => listen(onState, onLost), wait);
  };

  source.addEventListener("state", (event) => {
    heardAt = performance.now();
    const state = JSON.parse(event.data);
    if (state.ended) giveUp();
    onState(state);
  });
  source.addEventListener("error", () => {
    heardAt = performance.now();
    // The browser comes back by itself unless it was told no, as by another program at this port.
    if (source.readyState === EventSource.CLOSED) again(AGAIN_MS);
    else onLost();
  });
}
