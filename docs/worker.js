/* Search without a server: a page that was opened as a file may start no worker, so a frame does its
 * work. The theme looks for a class of this name. */
class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    const inner = frame.contentWindow;
    const load = (source) =>
      new Promise((resolve, reject) => {
        const script = inner.document.createElement("script");
        script.src = source;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${source} cannot be loaded`));
        inner.document.head.append(script);
      });
    inner.importScripts = (...sources) => Promise.all(sources.map(load));
    inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    this.frame = frame;
    this.loaded = load(new URL(url, location.href));
  }

  async postMessage(data) {
    await this.loaded;
    const { contentWindow: inner } = this.frame;
    inner.dispatchEvent(new inner.MessageEvent("message", { data }));
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = IFrameWorker;
}
