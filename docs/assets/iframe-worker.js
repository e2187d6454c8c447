// A `Worker` for pages that were opened from disk. Browsers refuse real workers there, and the
// search of Material for MkDocs runs in one. This stand-in runs the same script in a hidden frame.
// Served pages keep the browser's own `Worker`.
if (location.protocol === "file:") {
  // Material's script looks for the name `IFrameWorker` to find out that it runs in a frame.
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const base = new URL(url, document.baseURI).href;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      const receive = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const load = (address) =>
        new Promise((resolve, reject) => {
          const script = inner.document.createElement("script");
          script.src = new URL(address, base).href;
          script.onload = resolve;
          script.onerror = reject;
          inner.document.head.append(script);
        });
      inner.postMessage = receive;
      inner.importScripts = (...addresses) =>
        addresses.reduce((before, address) => before.then(() => load(address)), Promise.resolve());
      this.addEventListener("message", (event) => this.onmessage && this.onmessage(event));
      load(base).then(() => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.deliver(data));
      });
    }

    postMessage(data) {
      if (this.ready) this.deliver(data);
      else this.waiting.push(data);
    }

    deliver(data) {
      const inner = this.frame.contentWindow;
      inner.dispatchEvent(new inner.MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
