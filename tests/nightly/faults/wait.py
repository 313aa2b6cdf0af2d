"""Waiting for conditions."""

import socket
import time

TIMEOUT_SECONDS = 180


class TooLate(Exception):
    """A condition did not come true in time."""


def until(condition, what, seconds=TIMEOUT_SECONDS):
    """Returns how long it took until the condition held."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise TooLate(f"not reached within {seconds} s: {what}")
        time.sleep(0.1)
    return time.monotonic() - began


def accepts(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
