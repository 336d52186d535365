// Opens pages of the site in frames, as wide as a phone and as a desk, light and dark, and writes down what is
// wrong with them: text of too little contrast, a page wider than its frame, what was fetched from elsewhere.
const linear = (value) => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
const luminance = (colour) =>
  0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2]);
const over = (front, back) => back.map((value, at) => front[at] * front[3] + value * (1 - front[3]));
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function rgba(text) {
  pixel.clearRect(0, 0, 1, 1);
  pixel.fillStyle = text;
  pixel.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
  return [red, green, blue, alpha / 255];
}

function background(view, element) {
  const layers = [];
  for (let one = element; one; one = one.parentElement) {
    const colour = rgba(view.getComputedStyle(one).backgroundColor);
    if (colour[3] > 0) layers.push(colour);
    if (colour[3] > 0.999) break;
  }
  return layers.reverse().reduce((below, colour) => over(colour, below), [255, 255, 255]);
}

// The texts below the contrast that WCAG 2 asks for: 4.5 to 1, of large text 3 to 1.
function faint(view) {
  const found = new Set();
  let texts = 0;
  const walker = view.document.createTreeWalker(view.document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (!text || element.closest("script,style,template,svg") || !element.getClientRects().length) continue;
    const style = view.getComputedStyle(element);
    if (style.visibility === "hidden") continue;
    let opacity = 1;
    for (let one = element; one; one = one.parentElement) opacity *= view.getComputedStyle(one).opacity;
    if (opacity < 0.1) continue;
    const back = background(view, element);
    const colour = rgba(style.color);
    colour[3] *= opacity;
    const [low, high] = [luminance(over(colour, back)), luminance(back)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    texts += 1;
    if (ratio < (isLarge ? 3 : 4.5)) found.add(`contrast ${ratio.toFixed(2)} of "${text.slice(0, 30)}"`);
  }
  return [texts, [...found]];
}

function opened(page, width) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width: ${width}px; height: 1000px; border: 0`;
  return new Promise((done) => {
    frame.onload = () => done(frame);
    frame.src = page;
    document.body.append(frame);
  });
}

function elements(root) {
  return [...root.querySelectorAll("*")].flatMap((one) =>
    one.shadowRoot ? [one, ...elements(one.shadowRoot)] : [one]);
}

// Types a word after "/", as one who has no mouse, and gives the addresses that are found.
async function searched(page, word) {
  const frame = await opened(page, 1200);
  const view = frame.contentWindow;
  await pause(1500);
  view.focus();
  view.document.body.dispatchEvent(new view.KeyboardEvent("keydown", { key: "/", bubbles: true }));
  await pause(800);
  const field = elements(view.document).find((one) => one.matches("input:not([type=radio], [type=checkbox])")
    && one.getRootNode().activeElement === one);
  if (!field) return ["no field has the focus after /"];
  field.value = word;
  for (const name of ["input", "keyup"]) field.dispatchEvent(new view.Event(name, { bubbles: true, composed: true }));
  await pause(4000);
  const links = elements(view.document).filter((one) => one.matches("a[href]") && one.href.includes(`h=${word}`));
  frame.remove();
  return links.length ? [] : [`the search for "${word}" finds nothing`];
}

async function look(pages, start) {
  const wrong = [];
  let texts = 0;
  let views = 0;
  for (const page of pages) {
    for (const width of [400, 1200]) {
      const frame = await opened(page, width);
      const view = frame.contentWindow;
      const still = view.document.createElement("style");
      still.textContent = "* { transition: none !important; animation: none !important }";
      view.document.head.append(still);
      for (const scheme of ["default", "slate"]) {
        view.document.body.setAttribute("data-md-color-scheme", scheme);
        await pause(1200);
        const [seen, found] = faint(view);
        views += 1;
        texts += seen;
        if (view.document.documentElement.scrollWidth > width) found.push("is wider than its frame");
        wrong.push(...found.map((one) => `${page}, ${width} px, ${scheme}: ${one}`));
      }
      for (const entry of view.performance.getEntriesByType("resource")) {
        if (!/^(file|data|blob):/.test(entry.name)) wrong.push(`${page}: fetches ${entry.name}`);
      }
      frame.remove();
    }
  }
  wrong.push(...(await searched(start, "lateness")));
  document.getElementById("seen").textContent = JSON.stringify({ views, texts, wrong });
}
