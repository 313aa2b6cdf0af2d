#!/bin/bash
# What the runbooks use of the official image's client: `clickhouse-client --query STATEMENT`.
exec wget --quiet --output-document=- --post-data="$2" http://127.0.0.1:8123/
