#!/usr/bin/env python3
"""What do visitors of a form get while Postgres hangs? Submissions arrive at a steady rate before, during and after.

    tests/soak/outage.py [PROGRAM]        two minutes; PROGRAM is a local runner that is built already

Postgres is stopped (SIGSTOP) for a minute. Every visitor sends a text of their own. Half of them hang up after two seconds
without a response; all who got no 201 send the same text again once Postgres is back. Writes tests/soak/outage.md.

Passes if every response arrives within `forms.lock_timeout` and a second, every 201 is stored, and no text of a visitor who
hung up is stored twice.
"""

import argparse
import asyncio
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))

import fixture  # noqa: E402

RATE = 15
BEFORE_SECONDS, OUTAGE_SECONDS, AFTER_SECONDS = 5, 60, 15
LOCK_TIMEOUT_SECONDS = 5
MAX_SECONDS = LOCK_TIMEOUT_SECONDS + 1
IMPATIENT_SECONDS = 2


async def submit(port, host, form, text, timeout):
    """Returns the status, or 0 if the visitor hung up first, and how long it took."""
    began = time.monotonic()
    body = json.dumps({"text": text}).encode()
    head = f"POST /api/forms/{form}/submit HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode() + body)
        line = await asyncio.wait_for(reader.readline(), timeout)
        return int(line.split(b" ")[1]), time.monotonic() - began
    except asyncio.TimeoutError:
        return 0, time.monotonic() - began
    finally:
        writer.close()


def processes_of(postgres):
    """The server and its backends."""
    children = subprocess.run(["pgrep", "-P", str(postgres)], capture_output=True, text=True).stdout.split()
    return [postgres, *map(int, children)]


async def stopped(postgres, seconds):
    """Stops Postgres, also backends that start meanwhile."""
    for pid in processes_of(postgres):
        os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(seconds)
    for pid in processes_of(postgres):
        os.kill(pid, signal.SIGCONT)


async def visitors(port, host, form, postgres):
    """Returns each visitor's text, whether they are impatient, status and seconds."""
    began, tasks = time.monotonic(), []

    async def visit(number):
        impatient = number % 2 == 1
        text = f"visitor {number}"
        status, seconds = await submit(port, host, form, text, IMPATIENT_SECONDS if impatient else 30)
        return text, impatient, status, seconds

    async def outage():
        await asyncio.sleep(BEFORE_SECONDS)
        await stopped(postgres, OUTAGE_SECONDS)

    outage = asyncio.create_task(outage())
    for number in range(RATE * (BEFORE_SECONDS + OUTAGE_SECONDS + AFTER_SECONDS)):
        await asyncio.sleep(max(0, began + number / RATE - time.monotonic()))
        tasks.append(asyncio.create_task(visit(number)))
    await outage
    return await asyncio.gather(*tasks)


async def send_again(port, host, form, results):
    for text, _, status, _ in results:
        while status != 201:
            status, _ = await submit(port, host, form, text, 30)
            if status not in (201, 503):
                raise SystemExit(f"{text} got {status}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="a local runner that is built already; without it, cargo builds one")
    arguments = parser.parse_args()
    with fixture.system(f"forms.lock_timeout={LOCK_TIMEOUT_SECONDS}s", program=arguments.program) as stack:
        base, port = stack["base_url"], stack["http_port"]
        host = base.split("//")[1]
        key = fixture.call("POST", f"{base}/api/trial")["key"]
        fixture.call("POST", f"{base}/api/account/upgrade", key, {"plan": "pro"})
        fields = [{"name": "text", "label": "Text", "type": "textarea"}]
        form = fixture.call("POST", f"{base}/api/forms", key, {"name": "Contact", "fields": fields})["formId"]
        postgres = stack["stores"]["postgres"]["pid"]
        results = asyncio.run(visitors(port, host, form, postgres))
        asyncio.run(send_again(port, host, form, results))
        stored = collections.Counter(fixture.query(stack, "select payload->>'text' from submissions").splitlines())
    waited = [one for one in results if not one[1]]
    impatient = {text for text, is_impatient, status, _ in results if is_impatient and status == 0}
    slowest = max(seconds for *_, seconds in waited)
    missing = [text for text, _, status, _ in results if stored[text] == 0]
    twice = [text for text in impatient if stored[text] > 1]
    unsure = sum(stored[text] > 1 for text, is_impatient, *_ in results if not is_impatient)
    counts = collections.Counter(status for _, _, status, _ in waited)
    problems = []
    if slowest > MAX_SECONDS:
        problems.append(f"the slowest response took {slowest:.1f} s")
    if missing:
        problems.append(f"not stored: {missing[:5]}")
    if twice:
        problems.append(f"stored twice although the visitor had hung up: {twice[:5]}")
    text = f"""# Submissions while Postgres hangs

Made by `tests/soak/outage.py`: {RATE} submissions per second, Postgres stopped for {OUTAGE_SECONDS} s.

| | |
| --- | ---: |
| visitors | {len(results)} |
| visitors who waited, and got 201 | {counts[201]} |
| visitors who waited, and got 503 | {counts[503]} |
| slowest response | {slowest:.1f} s |
| visitors who hung up after {IMPATIENT_SECONDS} s | {len(impatient)} |
| of them stored twice after they sent again | {len(twice)} |
| of those with a 503 stored twice after they sent again | {unsure} |
| not stored | {len(missing)} |
"""
    (HERE / "outage.md").write_text(text)
    print(text)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
