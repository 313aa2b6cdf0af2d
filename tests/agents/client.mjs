// An agent with the official TypeScript clients: node client.mjs < {"library", "mode", "url", "key", "slug", "title"}
// Prints what it was told, as JSON. The test judges it.
import { readFileSync } from "node:fs";

const input = JSON.parse(readFileSync(0, "utf8"));
const requestInit = { headers: { authorization: `Bearer ${input.key}` } };
const client = await connect();
const heard = await story();
await client.close();
console.log(JSON.stringify(heard));

async function connect() {
  const about = { name: "agents", version: "1.0.0" };
  if (input.library === "sdk") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    return started(new Client(about), new StreamableHTTPClientTransport(new URL(input.url), { requestInit }));
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const mode = ["legacy", "auto"].includes(input.mode) ? input.mode : { pin: input.mode };
  const client = new Client(about, { versionNegotiation: { mode } });
  return started(client, new StreamableHTTPClientTransport(new URL(input.url), { requestInit }));
}

async function started(client, transport) {
  await client.connect(transport);
  // The first generation of the library tells the version to its transport only.
  client.version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
  return client;
}

async function story() {
  const call = (name, args = {}) => client.callTool({ name, arguments: args });
  const { tools } = await client.listTools();
  const found = await call("search_api", { query: "launch a site" });
  const { operation } = found.structuredContent.operations[0];
  const described = await call("describe_api", { operation });
  const page = { slug: input.slug, title: input.title, html: `<h1>${input.title}</h1>` };
  const launched = await call(operation.replace(".", "_"), { pages: [page] });
  const status = await call("status_read");
  // The clients check these answers, which have nulls, against the listed output schemas.
  const account = await call("account_read");
  const pages = await call("pages_list");
  const refused = await call("pages_create", page);
  const unlisted = await call("account.plans");
  const unknown = await call("no_such_tool").then((answer) => ({ answer }), (error) => ({ code: error.code }));
  const { resources } = await client.listResources();
  const manual = await client.readResource({ uri: resources[0].uri });
  return {
    version: client.version,
    server: client.getServerVersion(),
    instructions: client.getInstructions(),
    tools,
    operation,
    described,
    launched,
    status,
    account,
    pages,
    refused,
    unlisted,
    unknown,
    manual: manual.contents[0].text,
  };
}
