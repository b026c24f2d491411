/* Search on pages that are opened as files. Such a page must not start a worker, so this class, which
 * the theme looks up by its name, runs the worker's script in a hidden frame. */
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
