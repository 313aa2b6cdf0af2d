"""Formats that the API document only names, and the one key that must stay valid."""

import base64
import os
import uuid

import schemathesis
from hypothesis import strategies as st

OWN_KEYS = set(os.environ.get("OWN_KEY_IDS", "").split())

# A cursor is opaque: 8 bytes of a timestamp and 16 of an id.
CURSORS = st.builds(
    lambda time, row: base64.urlsafe_b64encode(time.to_bytes(8, "big") + row.bytes).decode().rstrip("="),
    st.integers(0, 4_000_000_000_000_000),
    st.uuids(),
)
LABELS = st.from_regex(r"[a-z][a-z0-9]{0,20}", fullmatch=True)

schemathesis.openapi.format("cursor", CURSORS)
schemathesis.openapi.format("day-or-time", st.sampled_from(["2030-01-31", "2030-01-31T18:00", "2030-01-31T18:00:00Z"]))
schemathesis.openapi.format("timezone", st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu"]))
schemathesis.openapi.format("idn-hostname", LABELS.map(lambda label: f"{label}-{uuid.uuid4().hex[:8]}.example"))
schemathesis.openapi.format("uri", LABELS.map(lambda label: f"https://{label}.example/hook"))


@schemathesis.hook
def filter_case(context, case):
    """Never rotates or revokes the key of this run, because all later requests would be refused."""
    return (case.path_parameters or {}).get("id") not in OWN_KEYS


@schemathesis.hook
def map_headers(context, headers):
    """Gives each request its own Idempotency-Key, because a repeated key returns the stored response."""
    if headers and "Idempotency-Key" in headers:
        headers["Idempotency-Key"] = uuid.uuid4().hex
    return headers
