#!/usr/bin/env python3
"""How fast is a tool? tools/list and a call of account_read against GET /api/account, side by side in one run.

    tests/bench/mcp.py            about three minutes; needs wrk

All are requested from the control plane directly, over 127.0.0.1, with the same number of connections, in alternation. The
median counts. Writes tests/bench/mcp.md.
"""

import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import fixture

ROUNDS, SECONDS, CONNECTIONS = 7, 4, 16
HERE = pathlib.Path(__file__).resolve().parent
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
BAR = 0.7


def message(method, params, modern):
    """The body and the headers of a message."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if modern:
        params = params | {"_meta": META}
        headers |= {"mcp-protocol-version": MODERN, "mcp-method": method}
        if "name" in params:
            headers["mcp-name"] = params["name"]
    else:
        headers["mcp-protocol-version"] = "2025-11-25"
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), headers


def requests():
    """The rows of the table: each a name, a path, and what is sent there."""
    call = {"name": "account_read", "arguments": {}}
    return {
        "`GET /api/account`": ("/api/account", None, {}),
        "`tools/call` of `account_read`, 2026-07-28": ("/api/mcp", *message("tools/call", call, True)),
        "`tools/call` of `account_read`, 2025-11-25": ("/api/mcp", *message("tools/call", call, False)),
        "`tools/list`, 2026-07-28": ("/api/mcp", *message("tools/list", {}, True)),
        "`tools/list`, 2025-11-25": ("/api/mcp", *message("tools/list", {}, False)),
    }


def lua(text):
    """A text as a string of Lua."""
    return f"[==[{text}]==]"


def script(folder, number, body, headers):
    lines = [f"wrk.headers[ {lua(name)} ] = {lua(value)}" for name, value in headers.items()]
    if body is not None:
        lines += ['wrk.method = "POST"', f"wrk.body = {lua(body)}"]
    path = pathlib.Path(folder) / f"{number}.lua"
    path.write_text("\n".join(lines))
    return path


def wrk(url, path):
    """Requests per second."""
    command = ["wrk", "-t", "2", "-c", str(CONNECTIONS), "-d", f"{SECONDS}s", "-s", path, url]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in output or "Socket errors" in output:
        sys.exit(f"{url}:\n{output}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1))


def check(base, path, body, headers):
    """Sends the request once and returns the size of its answer. wrk counts errors of the protocol as successes."""
    command = ["curl", "--silent", "--show-error", "--fail", f"{base}{path}"]
    command += [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
    if body is not None:
        command += ["--data", body]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    answer = json.loads(output)
    if "error" in answer or answer.get("result", {}).get("isError"):
        sys.exit(f"{path} answered {output}")
    return len(output)


def measure(stack):
    key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
    base = stack["services"]["control-plane"]["url"]
    rates, sizes = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        scripts = {}
        for number, (name, (path, body, headers)) in enumerate(requests().items()):
            headers = headers | {"authorization": f"Bearer {key}"}
            sizes[name] = check(base, path, body, headers)
            scripts[name] = (f"{base}{path}", script(folder, number, body, headers))
        for turn in range(ROUNDS + 1):
            turns = {name: wrk(*scripts[name]) for name in scripts}
            print(f"  round {turn}: " + ", ".join(f"{rate:,.0f}/s" for rate in turns.values()), flush=True)
            if turn > 0:  # the first round warms up
                for name, rate in turns.items():
                    rates.setdefault(name, []).append(rate)
    return rates, sizes


def main():
    if not shutil.which("wrk"):
        sys.exit("wrk is missing: apt-get install wrk")
    with fixture.system() as stack:
        rates, sizes = measure(stack)
    (_, reads), *_ = rates.items()
    rows = ""
    slow = []
    for name, turns in rates.items():
        share = statistics.median(rate / read for rate, read in zip(turns, reads))
        if share < BAR:
            slow.append(f"{name}: {share:.2f}")
        rows += f"| {name} | {statistics.median(turns):,.0f} | {share:.2f} | {sizes[name]:,} |\n"
    table = f"""# Tools against the same read by HTTP

Made by `tests/bench/mcp.py`: {ROUNDS} rounds of {SECONDS} s each, {CONNECTIONS} connections, medians. The bar is a share of {BAR}.

| | requests/s | share | bytes of the answer |
| --- | ---: | ---: | ---: |
{rows}"""
    (HERE / "mcp.md").write_text(table)
    print(table)
    if slow:
        sys.exit("below the bar: " + ", ".join(slow))


if __name__ == "__main__":
    main()
