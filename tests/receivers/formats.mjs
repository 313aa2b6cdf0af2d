// Validates messages against the types and validators that chat platforms publish:
//   node formats.mjs < [{"template": "slack", "body": {…}}, …]   prints [[error, …], …]
// Types are checked with TypeScript in strict mode; a platform's own validator runs where there is one.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { EmbedBuilder, embedLength } from "@discordjs/builders";
import ts from "typescript";

const { AdaptiveCard, SerializationContext } = createRequire(import.meta.url)("adaptivecards/dist/adaptivecards.js");

const TYPES = {
  // The published type accepts any block; here blocks must be known ones.
  slack: 'import("@slack/webhook").IncomingWebhookSendArguments & { blocks: import("@slack/types").KnownBlock[] }',
  discord: 'import("discord-api-types/v10").RESTPostAPIWebhookWithTokenJSONBody',
  telegram: 'Parameters<import("@grammyjs/types").ApiMethods<never>["sendMessage"]>[0]',
  "google-chat": 'import("@googleapis/chat").chat_v1.Schema$Message',
};

const VALIDATORS = {
  discord({ embeds }) {
    return embeds.flatMap((embed) => {
      try {
        const built = new EmbedBuilder().setTitle(embed.title).setColor(embed.color).setFields(embed.fields);
        built.setDescription(embed.description ?? null).setFooter(embed.footer ?? null);
        built.setTimestamp(embed.timestamp ? new Date(embed.timestamp) : null);
        const length = embedLength(built.toJSON());
        return length > 6000 ? [`an embed of ${length} characters`] : [];
      } catch (error) {
        return [String(error.message)];
      }
    });
  },
  teams({ type, attachments }) {
    const errors = type === "message" ? [] : [`a ${type}`];
    for (const { contentType, content } of attachments) {
      const context = new SerializationContext();
      const card = new AdaptiveCard();
      card.parse(content, context);
      for (let at = 0; at < context.eventCount; at++) {
        errors.push(context.getEventAt(at).message);
      }
      errors.push(...card.validateProperties().validationEvents.map((event) => event.message));
      if (contentType !== "application/vnd.microsoft.card.adaptive") errors.push(contentType);
    }
    return errors;
  },
};

const messages = JSON.parse(readFileSync(0, "utf8"));
const folder = fileURLToPath(new URL(".", import.meta.url));
const sources = new Map();
messages.forEach(({ template, body }, at) => {
  const type = TYPES[template];
  if (type) sources.set(`${folder}message${at}.ts`, `export const message: ${type} = ${JSON.stringify(body)};\n`);
});
const options = { strict: true, noEmit: true, skipLibCheck: true, types: [], module: ts.ModuleKind.NodeNext };
const host = ts.createCompilerHost(options);
const { getSourceFile, fileExists, readFile } = host;
host.fileExists = (name) => sources.has(name) || fileExists(name);
host.readFile = (name) => sources.get(name) ?? readFile(name);
host.getSourceFile = (name, version) =>
  sources.has(name) ? ts.createSourceFile(name, sources.get(name), version) : getSourceFile(name, version);
const program = ts.createProgram([...sources.keys()], options, host);
const errors = messages.map(({ template, body }) => VALIDATORS[template]?.(body) ?? []);
for (const { file, messageText } of ts.getPreEmitDiagnostics(program)) {
  const at = /message(\d+)\.ts$/.exec(file?.fileName ?? "");
  if (!at) throw new Error(ts.flattenDiagnosticMessageText(messageText, "\n"));
  errors[at[1]].push(ts.flattenDiagnosticMessageText(messageText, "\n"));
}
console.log(JSON.stringify(errors));
