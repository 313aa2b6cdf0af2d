"""What is broken beside a running stack, the alerts that must then fire, and the series that must then grow."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time

# Longer than any alert needs: timeouts of ClickHouse are 10 s.
LIMIT_SECONDS = 90


@dataclasses.dataclass
class Fault:
    """A way to break something until the block ends. `alerts` are labels of alerts, `grows` expressions that become positive."""

    name: str
    broken: object
    alerts: list = dataclasses.field(default_factory=list)
    grows: list = dataclasses.field(default_factory=list)


@contextlib.contextmanager
def stopped(*pids):
    """Stops processes without ending them: their clients wait for answers."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def backends(postgres):
    """The process ids of Postgres and its backends."""
    children = subprocess.run(["pgrep", "-P", str(postgres)], capture_output=True, text=True).stdout.split()
    return [postgres, *map(int, children)]


def until(what, check):
    deadline = time.monotonic() + LIMIT_SECONDS
    while not check():
        if time.monotonic() > deadline:
            sys.exit(f"waited {LIMIT_SECONDS} s for {what}")
        time.sleep(0.3)


def prove(ask, faults):
    """Breaks all of these at once, waits until their alerts fire, and mends them. Before, none of these alerts fires."""
    alerts = [labels for fault in faults for labels in fault.alerts]
    for labels in alerts:
        until(f"{labels} to be silent before the fault", lambda: not ask.active(**labels))
    began = time.monotonic()
    with contextlib.ExitStack() as broken:
        for fault in faults:
            broken.enter_context(fault.broken())
        for fault in faults:
            for labels in fault.alerts:
                until(f"{labels} to fire: {fault.name}", lambda: ask.firing(**labels))
                print(f"{fault.name}: {labels['alertname']} fires after {time.monotonic() - began:.0f} s", flush=True)
            for expression in fault.grows:
                until(f"{expression} to grow: {fault.name}", lambda: any(float(series["value"][1]) > 0 for series in ask(expression)))
                print(f"{fault.name}: {expression} grows after {time.monotonic() - began:.0f} s", flush=True)


def until_mended(ask, faults):
    """Waits until the alerts of these faults are silent again."""
    for fault in faults:
        for labels in fault.alerts:
            until(f"{labels} to be silent after the fault", lambda: not ask.active(**labels))
