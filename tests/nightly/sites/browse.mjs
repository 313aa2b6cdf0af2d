// Opens pages of both servers in Chromium and compares what happens. Reads the plan as JSON from standard input and writes
// one JSON result for each build as a line.
import { createInterface } from "node:readline";
import { launch } from "../../browser/system.mjs";

const VIEW = { width: 1200, height: 800 };
const WAIT_MS = 15_000;
const plan = JSON.parse(await new Promise((resolve) => {
  let text = "";
  createInterface({ input: process.stdin }).on("line", (part) => (text += part)).on("close", () => resolve(text));
}));

// Other hosts must not be reached. A route would do it too, but switches the browser's cache off.
const browser = await launch({ args: ["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE *.localhost , EXCLUDE 127.0.0.1", "--autoplay-policy=no-user-gesture-required",
  "--font-render-hinting=none", "--disable-lcd-text"] });
const canvas = await (await browser.newContext()).newPage();

/** A page of one server, with what went wrong in it. Hosts are written as SITE and contents as their names. */
class View {
  static async open(origin) {
    const view = new View();
    view.origin = origin;
    view.context = await browser.newContext({ viewport: VIEW, reducedMotion: "reduce", locale: "en-US", colorScheme: "light" });
    await view.attach();
    return view;
  }

  async attach() {
    this.page = await this.context.newPage();
    this.errors = [];
    this.failed = [];
    this.page.on("console", (message) => message.type() === "error" && this.errors.push(this.plain(`${message.text()} ${message.location()?.url ?? ""}`)));
    this.page.on("pageerror", (error) => this.errors.push(this.plain(error.message)));
    this.page.on("requestfailed", (request) => {
      // A page that is left ends its requests.
      const why = request.failure()?.errorText ?? "";
      if (why !== "net::ERR_ABORTED") this.failed.push(this.plain(`${why} ${request.url()}`));
    });
    this.page.on("response", (response) => response.status() >= 400 && this.failed.push(this.plain(`${response.status()} ${response.url()}`)));
  }

  plain(text) {
    return text
      .replaceAll(this.origin, "SITE")
      .replace(/https?:\/\/assets\.localhost(:\d+)?\/[0-9a-f]{64}\//g, "CONTENT/")
      .replace(/(\?|&)(t|v|_)=\d+/g, "");
  }

  async visit(path, shows) {
    const response = await this.page.goto(this.origin + path, { waitUntil: "load", timeout: WAIT_MS * 2 });
    await this.settle(shows);
    return response.status();
  }

  async settle(shows) {
    await this.page.waitForLoadState("networkidle", { timeout: WAIT_MS }).catch(() => {});
    if (shows) await this.page.waitForFunction((text) => document.body.innerText.includes(text), shows, { timeout: WAIT_MS }).catch(() => {});
    await this.page.evaluate(() => Promise.race([document.fonts.ready, new Promise((done) => setTimeout(done, 3000))])).catch(() => {});
  }

  place() {
    return this.page.evaluate(() => ({ href: location.href, title: document.title }));
  }

  /** Waits until another page is shown. A site's own router changes the address before it has loaded the page, whose title
   * follows; two pages may share one. */
  async arriveFrom({ href, title }) {
    await this.page.waitForFunction((href) => location.href !== href, href, { timeout: WAIT_MS });
    await this.page.waitForFunction((title) => document.title !== title, title, { timeout: WAIT_MS }).catch(() => {});
    await this.settle();
  }

  /** What a visitor sees: the address, the heading and the text. */
  seen() {
    return this.page.evaluate(() => ({
      path: decodeURI(location.pathname) + location.search + location.hash,
      heading: document.querySelector("h1")?.innerText ?? "",
      title: document.title,
      text: document.body.innerText.replaceAll(location.origin, "SITE"),
    }));
  }

  screenshot() {
    return this.page.screenshot({ animations: "disabled", caret: "hide", timeout: WAIT_MS * 2 });
  }

  close() {
    return this.context.close();
  }
}

/** The number of pixels that differ between two PNGs. */
function differingPixels(one, other) {
  return canvas.evaluate(
    async ([one, other]) => {
      const pixels = await Promise.all(
        [one, other].map(async (data) => {
          const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
          const surface = new OffscreenCanvas(image.width, image.height).getContext("2d");
          surface.drawImage(image, 0, 0);
          return new Uint32Array(surface.getImageData(0, 0, image.width, image.height).data.buffer);
        }),
      );
      if (pixels[0].length !== pixels[1].length) return Math.max(pixels[0].length, pixels[1].length);
      return pixels[0].reduce((sum, pixel, at) => sum + (pixel === pixels[1][at] ? 0 : 1), 0);
    },
    [one.toString("base64"), other.toString("base64")],
  );
}

/** The entries of `ours` that are not in `theirs`, counting repetitions. */
function beyond(ours, theirs) {
  const rest = [...theirs];
  return ours.filter((entry) => {
    const at = rest.indexOf(entry);
    if (at >= 0) rest.splice(at, 1);
    return at < 0;
  });
}

/** Waits for the element that a page shows last, in one of its frames. */
async function untilReady(page, [frame, element]) {
  await page.frameLocator(frame).locator(element).first().waitFor({ timeout: WAIT_MS * 2 });
}

async function look(origin, path, shows, ready) {
  const view = await View.open(origin);
  try {
    const status = await view.visit(path, shows);
    if (ready) {
      await untilReady(view.page, ready);
      await view.settle();
    }
    return { status, seen: await view.seen(), shot: await view.screenshot(), errors: view.errors, failed: view.failed };
  } finally {
    await view.close();
  }
}

/** Opens a page of both and compares status, text, errors, failed requests and pixels. */
async function comparePage(build, path) {
  const problems = [];
  const shows = build.shows?.[0] === path ? build.shows[1] : null;
  const ready = build.bytesOf === path ? build.ready : null;
  const theirs = await look(build.theirs, path, shows, ready);
  let ours = await look(build.ours, path, shows, ready);
  if (theirs.status !== 200) problems.push(`nginx answers ${theirs.status}`);
  const errors = beyond(ours.errors, theirs.errors);
  const failed = beyond(ours.failed, theirs.failed);
  // Pixels of an error page say nothing.
  if (ours.status !== theirs.status) return { path, problems: [`status ${ours.status} instead of ${theirs.status}`], errors, failed, pixels: 0, noise: 0 };
  const again = await look(build.theirs, path, shows, ready);
  let noise = await differingPixels(theirs.shot, again.shot);
  let pixels = Math.min(await differingPixels(theirs.shot, ours.shot), await differingPixels(again.shot, ours.shot));
  // A font or a frame that arrives late may move pixels once, and an application may still be on its way to its first address: a
  // real difference stays.
  const isElsewhere = () => ours.seen.path !== theirs.seen.path || ours.seen.title !== theirs.seen.title;
  for (let turn = 0; turn < 5 && (pixels > noise || isElsewhere()); turn++) {
    const third = await look(build.theirs, path, shows, ready);
    ours = await look(build.ours, path, shows, ready);
    noise = Math.max(noise, await differingPixels(third.shot, again.shot));
    pixels = Math.min(pixels, await differingPixels(third.shot, ours.shot));
  }
  if (ours.seen.path !== theirs.seen.path) problems.push(`address ${ours.seen.path} instead of ${theirs.seen.path}`);
  if (ours.seen.title !== theirs.seen.title) problems.push(`title "${ours.seen.title}" instead of "${theirs.seen.title}"`);
  if (ours.seen.text !== theirs.seen.text && again.seen.text === theirs.seen.text) problems.push(difference(ours.seen.text, theirs.seen.text));
  if (shows && !theirs.seen.text.includes(shows)) problems.push(`nginx's page does not show "${shows}": ${theirs.seen.text.slice(0, 200)}`);
  return { path, problems, errors, failed, pixels, noise };
}

function difference(ours, theirs) {
  let at = 0;
  while (at < ours.length && ours[at] === theirs[at]) at++;
  const cut = (text) => JSON.stringify(text.slice(Math.max(0, at - 15), at + 50));
  return `text ${cut(ours)} instead of ${cut(theirs)}`;
}

/** Follows a link with the site's own router, then reloads. Returns what was seen at both moments. */
async function click(origin, build) {
  const view = await View.open(origin);
  try {
    await view.visit(build.pages[0], null);
    await view.page.evaluate(() => (window.isSamePage = true));
    const before = await view.place();
    await view.page.locator(build.click).first().click({ timeout: WAIT_MS });
    await view.arriveFrom(before);
    const { text: _, ...after } = await view.seen();
    const isSamePage = await view.page.evaluate(() => window.isSamePage === true);
    const response = await view.page.reload({ waitUntil: "load", timeout: WAIT_MS * 2 });
    await view.settle();
    const { text: __, ...reloaded } = await view.seen();
    return { after, isSamePage, reloaded, status: response.status(), errors: view.errors, failed: view.failed };
  } catch (error) {
    return { error: error.message.split("\n")[0], errors: view.errors, failed: view.failed };
  } finally {
    await view.close();
  }
}

/** Searches with the site's own search and opens the first result. */
async function search(origin, build) {
  const { open, input, text, result, submit, result_frame: frame } = build.search;
  const view = await View.open(origin);
  try {
    await view.visit(build.pages[0], null);
    const before = await view.place();
    if (open) await view.page.locator(open).first().click({ timeout: WAIT_MS });
    const field = view.page.locator(input).first();
    await field.click({ timeout: WAIT_MS });
    await field.pressSequentially(text, { delay: 20 });
    if (submit) await field.press("Enter");
    const place = frame ? view.page.frameLocator(`iframe[name=${frame}]`) : view.page;
    const found = place.locator(result).first();
    await found.waitFor({ state: "visible", timeout: WAIT_MS });
    const label = (await found.innerText()).split("\n")[0];
    await found.click({ timeout: WAIT_MS });
    await view.arriveFrom(before);
    const { path, heading, title } = await view.seen();
    return { label, path, heading, title, errors: view.errors, failed: view.failed };
  } catch (error) {
    return { error: error.message.split("\n")[0], errors: view.errors, failed: view.failed };
  } finally {
    await view.close();
  }
}

/** What was seen, without errors and requests, as one level of keys such as `reloaded.path`. */
function flat({ errors: _, failed: __, ...seen }, prefix = "") {
  return Object.fromEntries(
    Object.entries(seen).flatMap(([key, value]) => (typeof value === "object" ? Object.entries(flat(value, `${prefix}${key}.`)) : [[prefix + key, value]])),
  );
}

async function compareSteps(name, step, build) {
  // A browser that is short of time may exceed a timeout once.
  const take = async (origin) => {
    const seen = await step(origin, build);
    return seen.error ? step(origin, build) : seen;
  };
  const [theirs, ours] = [await take(build.theirs), await take(build.ours)];
  const errors = beyond(ours.errors, theirs.errors);
  const failed = beyond(ours.failed, theirs.failed);
  const [plain, expected] = [flat(ours), flat(theirs)];
  const problems = Object.keys({ ...expected, ...plain })
    .filter((key) => plain[key] !== expected[key])
    .map((key) => `${key} ${JSON.stringify(plain[key])} instead of ${JSON.stringify(expected[key])}`);
  if (theirs.error) problems.unshift(`it does not work on nginx: ${theirs.error}`);
  return { path: name, problems, errors, failed, pixels: 0, noise: 0 };
}

/** Bytes over the network of a first view, and of a second one in the same browser. */
async function bytes(origin, build) {
  const context = await browser.newContext({ viewport: VIEW, serviceWorkers: "block" });
  const views = [];
  try {
    for (let turn = 0; turn < 2; turn++) {
      const page = await context.newPage();
      const session = await context.newCDPSession(page);
      await session.send("Network.enable");
      const requests = new Map();
      session.on("Network.requestWillBeSent", ({ requestId, request }) => requests.set(requestId, { url: request.url, bytes: 0, isCached: false }));
      session.on("Network.requestServedFromCache", ({ requestId }) => requests.has(requestId) && (requests.get(requestId).isCached = true));
      session.on("Network.responseReceived", ({ requestId, response }) => {
        if (requests.has(requestId) && (response.fromDiskCache || response.fromPrefetchCache)) requests.get(requestId).isCached = true;
      });
      session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => requests.has(requestId) && (requests.get(requestId).bytes = encodedDataLength));
      const response = await page.goto(origin + build.bytesOf, { waitUntil: "load", timeout: WAIT_MS * 2 });
      if (response.status() !== 200) return null;
      if (build.ready) await untilReady(page, build.ready);
      await page.waitForLoadState("networkidle", { timeout: WAIT_MS }).catch(() => {});
      const sent = [...requests.values()].filter((one) => !one.isCached && one.url.startsWith("http"));
      const own = (one) => new URL(one.url).pathname.startsWith("/_wr/");
      const sum = (some) => some.reduce((total, one) => total + one.bytes, 0);
      views.push({ bytes: sum(sent.filter((one) => !own(one))), tracker: sum(sent.filter(own)), requests: sent.filter((one) => !own(one)).map((one) => one.url) });
      await page.close();
    }
    return views;
  } finally {
    await context.close();
  }
}

/** The lesser of two measurements: a browser that is short of time may request a file again. */
async function least(origin, build) {
  const [one, other] = [await bytes(origin, build), await bytes(origin, build)];
  return one && other && one.map((view, at) => (view.bytes <= other[at].bytes ? view : other[at]));
}

async function compareBuild(build) {
  const result = { name: build.name, pages: [], bytes: null };
  try {
    for (const path of build.pages) result.pages.push(await comparePage(build, path));
    if (build.click) result.pages.push(await compareSteps("link and reload", click, build));
    if (build.search) result.pages.push(await compareSteps("search", search, build));
    if (build.bytesOf) {
      const [ours, theirs] = [await least(build.ours, build), await least(build.compressed, build)];
      // A page that is not served is reported as such.
      if (ours && theirs) result.bytes = { ours, theirs };
    }
  } catch (error) {
    result.error = error.message.split("\n")[0];
  }
  console.log(JSON.stringify(result));
}

// Two builds at once, because most of the time passes waiting for pages to be idle.
const queue = [...plan];
const worker = async () => {
  for (let build = queue.shift(); build; build = queue.shift()) await compareBuild(build);
};
await Promise.all([worker(), worker()]);
await browser.close();
