#!/usr/bin/env python3
"""One ClickHouse server with its own listeners, from libchdb: `shard.py LIBCHDB FOLDER TCP_PORT HTTP_PORT CONFIG`.

ClickHouse's server program is in no registry that a test may use. The library has the same engine and the same listeners, but no
replicated DDL and no replicas. The last statement never ends, and the process with it.
"""

import ctypes
import sys

LISTEN = "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; "
WAIT = "SELECT sleepEachRow(1) FROM numbers(1000000000) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0 FORMAT Null"

library, folder, tcp_port, http_port, config = sys.argv[1:]
arguments = ["clickhouse", "--path", folder, "--config-file", config, "--listen_host", "127.0.0.1", "--tcp_port", tcp_port,
             "--http_port", http_port, "--query", LISTEN + WAIT]
chdb = ctypes.CDLL(library)
chdb.chdb_query_cmdline.restype = ctypes.c_void_p
chdb.chdb_result_error.argtypes = [ctypes.c_void_p]
chdb.chdb_result_error.restype = ctypes.c_char_p
result = chdb.chdb_query_cmdline(len(arguments), (ctypes.c_char_p * len(arguments))(*map(str.encode, arguments)))
sys.exit((chdb.chdb_result_error(result) or b"ended").decode())
