// Receives states from the server's event stream, and reconnects after a lost connection.

const RECONNECT_MS = 500;
const TIMEOUT_MS = 10_000; // the server sends a state at least every two seconds

/**
 * Calls `onState(state)` for each state until one has ended, and `onLost()` when the connection is
 * lost.
 */
export function receiveStates(onState, onLost) {
  const source = new EventSource("events");
  let receivedAt = performance.now();

  const close = () => {
    source.close();
    clearInterval(timer);
  };
  const reconnect = () => {
    close();
    onLost();
    setTimeout(() => receiveStates(onState, onLost), RECONNECT_MS);
  };
  const timer = setInterval(() => {
    if (performance.now() - receivedAt > TIMEOUT_MS) reconnect();
  }, RECONNECT_MS);

  source.addEventListener("state", (event) => {
    receivedAt = performance.now();
    const state = JSON.parse(event.data);
    if (state.ended) close();
    onState(state);
  });
  source.addEventListener("error", reconnect);
}
