// Asks for pictures, takes them apart, and paints them.

const HEADER = 12; // slot, version, width, height
const CLOSE_MS = 66;
const QUIET_MS = 250;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The pictures of an answer: slot, version, width, height, and pixels as RGB. */
export function decode(buffer) {
  const view = new DataView(buffer);
  const pictures = [];
  let offset = 4;
  for (let left = view.getUint32(0, true); left > 0; left -= 1) {
    const slot = view.getUint32(offset, true);
    const version = view.getUint32(offset + 4, true);
    const width = view.getUint16(offset + 8, true);
    const height = view.getUint16(offset + 10, true);
    const pixels = new Uint8Array(buffer, offset + HEADER, width * height * 3);
    pictures.push({ slot, version, width, height, pixels });
    offset += HEADER + pixels.length;
  }
  return pictures;
}

/** Paints a picture pixel by pixel; the style sheet gives the canvas its size on the screen. */
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

/** What is there, or null where nobody answers; the stream tells of a lost connection. */
async function load(address) {
  try {
    const answer = await fetch(address);
    return answer.ok ? await answer.arrayBuffer() : null;
  } catch {
    return null;
  }
}

/** Fetches what is new, one request at a time, and hands each picture to `onPicture`. */
export class PictureFeed {
  #onPicture;
  #resting;
  #newest = 0;
  #close = null;
  #busy = false;

  /** `resting()` tells whether nobody could see a picture now. */
  constructor(onPicture, resting) {
    this.#onPicture = onPicture;
    this.#resting = resting;
  }

  /** Forgets what came before: another run begins. */
  restart() {
    this.#newest = 0;
  }

  /** Fetches what is new of all tiles. Pictures are taken only while somebody asks for them. */
  async refresh() {
    if (this.#busy || this.#close !== null || this.#resting()) return;
    this.#busy = true;
    try {
      const pictures = await this.#ask(this.#newest, "");
      this.#newest = Math.max(this.#newest, ...pictures.map(({ version }) => version));
    } finally {
      this.#busy = false;
    }
  }

  /** Asks the server to look at one slot more often, and follows that one alone; null ends it. */
  async focus(slot) {
    this.#close = slot;
    const body = JSON.stringify({ slot });
    // `keepalive`: a page that is closed says so.
    const headers = { "Content-Type": "application/json" };
    const told = fetch("focus", { method: "POST", body, headers, keepalive: true });
    await told.catch(() => {}); // the stream tells of a lost connection
    let version = 0;
    while (slot !== null && this.#close === slot) {
      const pictures = this.#resting() ? [] : await this.#ask(version, `&only=${slot}`);
      for (const picture of pictures) version = picture.version;
      await sleep(pictures.length ? CLOSE_MS : QUIET_MS);
    }
  }

  async #ask(after, only) {
    const buffer = await load(`pictures?after=${after}${only}`);
    const pictures = buffer === null ? [] : decode(buffer);
    pictures.forEach(this.#onPicture);
    return pictures;
  }
}
