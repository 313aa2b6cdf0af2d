// A private certificate authority, Let's Encrypt's pebble, with the DNS server that it and the job-runner ask.
import { X509Certificate, createHash } from "node:crypto";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import https from "node:https";
import { createInterface } from "node:readline";

export class Authority {
  /** Starts one. Returns null if it can't be had here, as without a network; the reason is on standard error. */
  static async start() {
    if (!process.env.SANDBOX) throw new Error("SANDBOX is not set: start this with tests/browser/run");
    const child = spawn(process.env.SANDBOX, ["pebble"], { stdio: ["pipe", "pipe", "inherit"] });
    const announced = once(createInterface(child.stdout), "line").then(([line]) => JSON.parse(line));
    const addresses = await Promise.race([announced, once(child, "exit").then(() => null)]);
    return addresses && Object.assign(new Authority(), { child, ...addresses });
  }

  /** Settings of a system whose ports are those at which names are checked. */
  settings() {
    return [
      `listen.https=127.0.0.1:${this.tls_port}`,
      `http.base_url=https://localhost:${this.tls_port}`,
      `acme.directory_url=${this.directory_url}`,
      `acme.ca_file=${this.ca_file}`,
      `domains.resolvers=["${this.dns_address}"]`,
      'domains.addresses=["127.0.0.1"]',
      "domains.caa_identities=[]",
      'domains.check_schedule=["1s"]',
      "domains.recheck_after=1s",
    ];
  }

  /** Adds a TXT record. Every name has the address 127.0.0.1. */
  async addText(name, value) {
    const body = JSON.stringify({ host: `${name}.`, value });
    const answer = await fetch(`${this.dns_management_url}/set-txt`, { method: "POST", body });
    if (!answer.ok) throw new Error(`set-txt: ${answer.status} ${await answer.text()}`);
  }

  /** The hash by which Chromium trusts the public key of the intermediate certificate, and no other. */
  async trustedKey() {
    const ca = await readFile(this.ca_file);
    const [answer] = await once(https.get(`${this.management_url}/intermediates/0`, { ca }), "response");
    const pem = (await answer.toArray()).join("");
    const key = new X509Certificate(pem).publicKey.export({ type: "spki", format: "der" });
    return createHash("sha256").update(key).digest("base64");
  }

  async stop() {
    this.child.stdin.end();
    if (this.child.exitCode === null) await once(this.child, "exit");
  }
}
