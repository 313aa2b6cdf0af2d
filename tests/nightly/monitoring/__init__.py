"""A real Prometheus with real exporters beside a running stack, what it is asked, and what is broken meanwhile."""
