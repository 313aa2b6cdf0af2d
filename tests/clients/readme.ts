// The README's calls, made with a client of openapi-typescript and openapi-fetch. Its types are checked before it runs:
// node readme.js BASE_URL KEY HOOK_URL SITE_ZIP
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const [baseUrl = "", key = "", hookUrl = "", siteZip = ""] = process.argv.slice(2);

function clientWith(key?: string) {
  return createClient<paths>({ baseUrl, headers: key ? { Authorization: `Bearer ${key}` } : {} });
}

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** Returns the body of a response with this status. */
function expect<T>({ data, error, response }: Answer<T>, status: number): NonNullable<T> {
  assert.equal(response.status, status, JSON.stringify(error));
  assert.ok(data);
  return data;
}

const api = clientWith(key);

const trial = expect(await clientWith().POST("/api/trial"), 201);
assert.ok(trial.key.startsWith("st_trial_"));
const plan: "free" | "pro" | "scale" = expect(await clientWith(trial.key).GET("/api/account"), 200).plan;
assert.equal(plan, "free");

const page = expect(
  await api.POST("/api/pages", { body: { slug: "index", title: "Hello", html: "<h1>Hello, web</h1>" } }),
  201,
);
assert.equal(page.slug, "index");

const zip = readFileSync(siteZip);
const deploy = expect(await api.POST("/api/deploy", { body: { sizeBytes: zip.length } }), 201);
assert.ok(deploy.uploadUrl && deploy.deployId);
const put = await fetch(deploy.uploadUrl, {
  method: "PUT",
  body: zip,
  headers: { "content-type": "application/zip" },
});
assert.ok(put.ok, await put.text());
const path = { id: deploy.deployId };
const preview = expect(
  await api.POST("/api/deploy/{id}/process", { params: { path }, body: { publish: false } }),
  201,
);
assert.ok("previewUrl" in preview && preview.previewUrl.startsWith("http"));
const published = expect(await api.POST("/api/deploy/{id}/publish", { params: { path } }), 200);
assert.deepEqual(published.errors, []);

const domain = expect(await api.POST("/api/account/domains", { body: { domain: "ts.shop.example" } }), 201);
assert.ok(domain.records.some(({ type, status }) => type === "TXT" && status === "missing"));
const found = expect(
  await api.GET("/api/account/domains/{id}", { params: { path: { id: domain.id } } }),
  200,
);
assert.equal(found.domain, "ts.shop.example");

const fields: components["schemas"]["Field"][] = [
  { name: "email", label: "E-mail", type: "email", required: true },
  { name: "budget", label: "Budget", type: "number" },
];
const form = expect(await api.POST("/api/forms", { body: { name: "Contact", fields } }), 201);
assert.ok(form.hostedFormUrl.endsWith(form.formId));

const submit = (body: Record<string, unknown>) =>
  clientWith().POST("/api/forms/{id}/submit", { params: { path: { id: form.formId } }, body });
const refused = await submit({ email: "ana" });
assert.equal(refused.error?.code, "validation_failed");
assert.equal(refused.error?.fieldErrors?.[0]?.field, "email");

const webhook = expect(await api.POST("/api/webhooks", { body: { url: hookUrl } }), 201);
assert.ok(webhook.secret.startsWith("whsec_"));

const leads = expect(
  await api.POST("/api/pages", {
    body: { slug: "leads", title: "Leads", html: "", entryTemplate: "<p>{{label}}</p>" },
  }),
  201,
);
const automation = expect(
  await api.POST("/api/automations", {
    body: {
      name: "Big leads",
      slug: "big-leads",
      trigger: { type: "form_submission", formId: form.formId },
      steps: [
        {
          id: "big",
          type: "condition",
          branches: [
            {
              if: "trigger.payload.budget >= 1000",
              steps: [
                {
                  id: "keep",
                  type: "create_entry",
                  pageId: leads.id,
                  data: { label: "{{ lower(trigger.payload.email) }}: {{ trigger.payload.budget }} EUR" },
                },
              ],
            },
          ],
        },
      ],
    },
  }),
  201,
);
const receipt = expect(await submit({ email: "Ana@Example.com", budget: 2500 }), 201);
assert.equal(receipt.success, true);

async function firstRun() {
  for (const began = Date.now(); Date.now() - began < 60_000; ) {
    const { logs } = expect(
      await api.GET("/api/automations/{id}/logs", { params: { path: { id: automation.id } } }),
      200,
    );
    if (logs[0]?.status === "success") return logs[0];
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("the automation did not run");
}
const run = await firstRun();
const kept = run.steps.find((step) => step.path === "keep")?.output as { data: unknown } | undefined;
assert.deepEqual(kept?.data, { label: "ana@example.com: 2500 EUR" });

const bot = expect(
  await api.POST("/api/keys", {
    body: {
      label: "newsletter bot",
      scopes: ["submissions:read"],
      resourceIds: { forms: [form.formId] },
      expiresAt: new Date(Date.now() + 7 * 86_400_000).toISOString(),
    },
  }),
  201,
);
assert.deepEqual(bot.scopes, ["submissions:read"]);
const forbidden = await clientWith(bot.key).GET("/api/pages");
assert.equal(forbidden.response.status, 403);
assert.equal(forbidden.error?.requiredScope, "pages:read");
// Problems of a known account carry its plan.
assert.equal(forbidden.error?._meta?.plan, "scale");

// Never called: the compiler refuses each of these.
export async function wrong() {
  // @ts-expect-error The page has no title.
  await api.POST("/api/pages", { body: { slug: "index", html: "" } });
  // @ts-expect-error There is no such type of field.
  const field: components["schemas"]["Field"] = { name: "a", label: "A", type: "colour" };
  // @ts-expect-error There is no such path.
  await api.GET("/api/nothing");
  return field;
}
