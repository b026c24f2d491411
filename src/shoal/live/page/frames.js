// Requests, decodes and paints frames.

const HEADER = 12; // slot, version, width, height
const FOCUS_INTERVAL_MS = 66;
const RETRY_INTERVAL_MS = 250;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Decodes a response into frames with slot, version, width, height, and RGB pixels. */
export function decode(buffer) {
  const view = new DataView(buffer);
  const frames = [];
  let offset = 4;
  for (let remaining = view.getUint32(0, true); remaining > 0; remaining -= 1) {
    const slot = view.getUint32(offset, true);
    const version = view.getUint32(offset + 4, true);
    const width = view.getUint16(offset + 8, true);
    const height = view.getUint16(offset + 10, true);
    const pixels = new Uint8Array(buffer, offset + HEADER, width * height * 3);
    frames.push({ slot, version, width, height, pixels });
    offset += HEADER + pixels.length;
  }
  return frames;
}

/** Paints a frame pixel by pixel; the style sheet scales the canvas. */
export function paint(canvas, { width, height, pixels }) {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const target = image.data;
  for (let from = 0, to = 0; from < pixels.length; from += 3, to += 4) {
    target[to] = pixels[from];
    target[to + 1] = pixels[from + 1];
    target[to + 2] = pixels[from + 2];
    target[to + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/** Returns the content of an address; null on failure, which the event stream reports. */
async function load(address) {
  try {
    const response = await fetch(address);
    return response.ok ? await response.arrayBuffer() : null;
  } catch {
    return null;
  }
}

/** Requests new frames, one request at a time, and passes each frame to `onFrame`. */
export class FrameFeed {
  #onFrame;
  #isIdle;
  #newest = 0;
  #focused = null;
  #isBusy = false;

  /** `isIdle()` returns whether no frame could be seen at the moment. */
  constructor(onFrame, isIdle) {
    this.#onFrame = onFrame;
    this.#isIdle = isIdle;
  }

  /** Starts over with another run. */
  restart() {
    this.#newest = 0;
  }

  /** Requests the new frames of all tiles. The server captures none without requests. */
  async refresh() {
    if (this.#isBusy || this.#focused !== null || this.#isIdle()) return;
    this.#isBusy = true;
    try {
      const frames = await this.#request(this.#newest, "");
      this.#newest = Math.max(this.#newest, ...frames.map(({ version }) => version));
    } finally {
      this.#isBusy = false;
    }
  }

  /** Sets the focused slot, and requests frames of that slot only; null removes the focus. */
  async focus(slot) {
    this.#focused = slot;
    const body = JSON.stringify({ slot });
    // `keepalive`: the request is sent even if the page is being closed.
    const headers = { "Content-Type": "application/json" };
    const request = fetch("focus", { method: "POST", body, headers, keepalive: true });
    await request.catch(() => {}); // the event stream reports lost connections
    let version = 0;
    while (slot !== null && this.#focused === slot) {
      const frames = this.#isIdle() ? [] : await this.#request(version, `&only=${slot}`);
      for (const frame of frames) version = frame.version;
      await sleep(frames.length ? FOCUS_INTERVAL_MS : RETRY_INTERVAL_MS);
    }
  }

  async #request(after, only) {
    const buffer = await load(`pictures?after=${after}${only}`);
    const frames = buffer === null ? [] : decode(buffer);
    frames.forEach(this.#onFrame);
    return frames;
  }
}
