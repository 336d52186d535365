/* A browser starts no worker for a page that is opened as a file. The search of the site runs in one: for such
 * a page it runs in a hidden frame instead, with the same messages.
 *
 * The search looks for the name IFrameWorker, and finds its languages beside the script of the frame then. */
"use strict";
(() => {
  if (location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    #frame = document.createElement("iframe");
    #started;

    constructor(address) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => this.#tell(structuredClone(data));
      inside.importScripts = async (...addresses) => {
        for (const one of addresses) await FrameWorker.#load(inside.document, one);
      };
      this.#started = FrameWorker.#load(inside.document, address);
    }

    static #load(document, address) {
      return new Promise((loaded, failed) => {
        const script = document.createElement("script");
        script.src = new URL(address, location.href).href;
        script.onload = loaded;
        script.onerror = () => failed(new Error(`${script.src} was not loaded`));
        document.body.append(script);
      });
    }

    #tell(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      const event = () => new MessageEvent("message", { data: structuredClone(data) });
      this.#started.then(() => this.#frame.contentWindow.dispatchEvent(event()));
    }

    terminate() {
      this.#frame.remove();
    }
  }

  window.Worker = window.IFrameWorker = FrameWorker;
})();
