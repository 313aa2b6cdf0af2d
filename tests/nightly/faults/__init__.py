"""The faults of tests/nightly/failover.py: what they need, the load beside them, and what must hold afterwards."""
