"""Verifies a delivery with the standard's own library: verify.py SECRET ID TIMESTAMP SIGNATURE < body"""

import sys

from standardwebhooks import Webhook

secret, delivery, timestamp, signature = sys.argv[1:]
headers = {"webhook-id": delivery, "webhook-timestamp": timestamp, "webhook-signature": signature}
Webhook(secret).verify(sys.stdin.buffer.read(), headers)
