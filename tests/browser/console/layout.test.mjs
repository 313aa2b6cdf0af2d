// Every screen fits at five widths, from right to left, and with the wider text that some readers set.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { call } from "../browser_user.mjs";
import { start } from "../system.mjs";
import { HOSTILE, fits, formWith, makeKey, signedIn } from "./person.mjs";

const WIDTHS = [320, 360, 768, 1024, 1440];
/** The spacing of WCAG 1.4.12. */
const TEXT_SPACING = "* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important }";
/** The target size of WCAG 2.5.8. Links in sentences are exempt. */
const TARGET_PIXELS = 24;

let system;
before(async () => {
  system = await start("signin.local=true");
});
after(() => system?.stop());

/** Controls that are smaller than a finger needs, with no space around them either. */
const smallTargets = (pixels) =>
  [...document.querySelectorAll("button, input:not([type=hidden]), select, textarea, summary, a.button, nav a")]
    .filter((one) => one.checkVisibility() && !one.closest("p"))
    .map((one) => ({ html: one.outerHTML.slice(0, 120), box: (one.closest("label") ?? one).getBoundingClientRect() }))
    .filter(({ box }) => box.width > 1 && (box.width < pixels || box.height < pixels))
    .map(({ html, box }) => `${box.width.toFixed()} x ${box.height.toFixed()}: ${html}`);

/** Words in the heads of tables that do not stand on one line. */
const brokenWords = () =>
  [...document.querySelectorAll("thead th")]
    .filter((head) => head.checkVisibility() && head.firstChild)
    .flatMap((head) => {
      const text = head.firstChild;
      const range = document.createRange();
      const isBroken = ({ 0: word, index }) => {
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        return range.getClientRects().length > 1;
      };
      return text.nodeType === Node.TEXT_NODE ? [...text.data.matchAll(/\S+/g)].filter(isBroken).map(([word]) => word) : [];
    });

test("every screen fits at five widths, from right to left and with wide text, and its controls are large enough", async () => {
  const ada = await signedIn(system, "layout@example.com", { bypassCSP: true });
  const key = await makeKey(ada);
  const form = await formWith(system, key, ["Charles", HOSTILE, "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"]);
  const { site } = (await call(system.base, "POST", "/api/analytics/sites", { key, body: { name: "engine.example" } })).body;
  const hook = await call(system.base, "POST", "/api/webhooks", { key, body: { url: `https://${"long.".repeat(20)}example/hook` } });
  assert.equal(hook.status, 201, JSON.stringify(hook.body));
  const folder = await call(system.base, "POST", "/api/folders", { key, body: { name: `${"long-".repeat(12)}name`, description: HOSTILE } });
  assert.equal(folder.status, 201, JSON.stringify(folder.body));
  const moved = { resources: [{ type: "form", id: form }] };
  await call(system.base, "POST", `/api/folders/${folder.body.id}/organize`, { key, body: moved });
  const submissions = await call(system.base, "GET", `/api/forms/${form}/submissions`, { key });
  // The screens of the navigation, and one of each kind of thing.
  await ada.open("/console");
  const sections = await ada.page.locator(".side nav a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
  assert.ok(sections.length >= 8, sections.join());
  const paths = [
    ...sections,
    `/console/forms/${form}`,
    `/console/forms/${form}/submissions/${submissions.body.submissions[0].id}`,
    `/console/forms/${form}/submissions/${submissions.body.submissions[0].id}/edit`,
    `/console/forms/${form}/submissions/new`,
    `/console/forms/${form}/erase`,
    `/console/analytics/${site.id}`,
    "/console/analytics?all=true",
    "/console/folders",
    `/console/folders/${folder.body.id}?delete=true`,
    `/console/analytics/${site.id}/settings?delete=true`,
    `/console/webhooks/${hook.body.id}`,
    "/console/help",
    "/console/nothing",
  ];
  for (const path of paths) {
    await ada.page.setViewportSize({ width: WIDTHS[0], height: 800 });
    await ada.open(path);
    for (const width of WIDTHS) {
      await ada.page.setViewportSize({ width, height: 800 });
      await fits(ada, `${path} at ${width}`);
      assert.deepEqual(await ada.page.evaluate(brokenWords), [], `${path} at ${width}`);
    }
    assert.deepEqual(await ada.page.evaluate(smallTargets, TARGET_PIXELS), [], path);
    await ada.page.evaluate(() => document.documentElement.setAttribute("dir", "rtl"));
    for (const width of [WIDTHS[0], WIDTHS[4]]) {
      await ada.page.setViewportSize({ width, height: 800 });
      await fits(ada, `${path} from right to left at ${width}`);
      await ada.screenshot(`console-rtl-${path.replaceAll(/[/?=]/g, "-").slice(9, 30)}-${width}`);
    }
    await ada.page.evaluate(() => document.documentElement.setAttribute("dir", "ltr"));
    await ada.page.addStyleTag({ content: TEXT_SPACING });
    for (const width of [WIDTHS[0], WIDTHS[4]]) {
      await ada.page.setViewportSize({ width, height: 800 });
      await fits(ada, `${path} with wide text at ${width}`);
    }
  }
});
