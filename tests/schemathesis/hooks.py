"""What the API's document can only name: how its own formats are written, and the one key that must stay."""

import base64
import os
import uuid

import schemathesis
from hypothesis import strategies as st

OWN_KEYS = set(os.environ.get("OWN_KEY_IDS", "").split())

# A cursor is opaque: 8 bytes of a time and 16 of an id, as an answer gave them.
CURSORS = st.builds(
    lambda time, row: base64.urlsafe_b64encode(time.to_bytes(8, "big") + row.bytes).decode().rstrip("="),
    st.integers(0, 4_000_000_000_000_000),
    st.uuids(),
)
LABELS = st.from_regex(r"[a-z][a-z0-9]{0,20}", fullmatch=True)

schemathesis.openapi.format("cursor", CURSORS)
schemathesis.openapi.format("timezone", st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu"]))
schemathesis.openapi.format("idn-hostname", LABELS.map(lambda label: f"{label}-{uuid.uuid4().hex[:8]}.example"))
schemathesis.openapi.format("uri", LABELS.map(lambda label: f"https://{label}.example/hook"))


@schemathesis.hook
def filter_case(context, case):
    """The key of this run is neither rotated nor revoked: everything after it would be refused."""
    return (case.path_parameters or {}).get("id") not in OWN_KEYS


@schemathesis.hook
def map_headers(context, headers):
    """A call that is made under the same key again is answered as it was the first time, so each has its own."""
    if headers and "Idempotency-Key" in headers:
        headers["Idempotency-Key"] = uuid.uuid4().hex
    return headers
