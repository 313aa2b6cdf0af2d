"""Two shards of one cluster, and before each an HTTP front for what libchdb lacks.

The front passes requests on unchanged, except two kinds, which it sends to all shards that are up: statements ON CLUSTER, with
plain tables in place of replicated ones, and rows of the replicated table schema_migrations.
"""

import contextlib
import http.client
import http.server
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
CLUSTER = "main"
START_SECONDS = 60
HOP_HEADERS = {"connection", "transfer-encoding", "content-length", "keep-alive"}

CONFIG = """<clickhouse>
    <logger><level>warning</level><console>true</console></logger>
    <macros><shard>{shard}</shard><replica>1</replica></macros>
    <remote_servers><{cluster}>{shards}</{cluster}></remote_servers>
    <max_server_memory_usage>2000000000</max_server_memory_usage>
</clickhouse>
"""
SHARD = """
        <shard><weight>1</weight><internal_replication>true</internal_replication>
            <replica><host>127.0.0.1</host><port>{port}</port></replica></shard>"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def local_statement(sql):
    """The statement for one server without replicas."""
    sql = re.sub(rf" ON CLUSTER '{CLUSTER}'", "", sql)
    sql = re.sub(r"Replicated(\w*MergeTree)\('[^']*', '[^']*'(?:, )?", r"\1(", sql)
    return re.sub(r"(?<!non_)replicated_deduplication_window", "non_replicated_deduplication_window", sql)


class Front(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.server.open.add(self.connection)

    def finish(self):
        self.server.open.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def body(self):
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def do_POST(self):
        body = self.body()
        query = urllib.parse.parse_qs(self.path.partition("?")[2]).get("query", [""])[0]
        shards = [self.server.shard]
        if b" ON CLUSTER '" in body[:100_000]:
            body = local_statement(body.decode()).encode()
            shards = self.server.cluster.up()
        elif query.startswith("INSERT INTO schema_migrations") or query.startswith("INSERT INTO `schema_migrations`"):
            shards = self.server.cluster.up()
        try:
            answers = [self.ask(shard, body) for shard in shards]
        except OSError:
            self.close_connection = True
            return
        status, headers, content = next((answer for answer in answers if answer[0] != 200), answers[0])
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in HOP_HEADERS:
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST

    def ask(self, shard, body):
        upstream = http.client.HTTPConnection("127.0.0.1", shard.http_port, timeout=300)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_HEADERS}
        upstream.request(self.command, self.path, body, headers)
        answer = upstream.getresponse()
        found = (answer.status, answer.getheaders(), answer.read())
        upstream.close()
        return found

    def handle(self):
        with contextlib.suppress(OSError, ValueError):
            super().handle()

    def log_message(self, *_):
        pass


class FrontServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass


class Shard:
    def __init__(self, cluster, number, library, folder):
        self.cluster, self.number, self.library, self.folder = cluster, number, library, folder / f"shard{number}"
        self.folder.mkdir()
        self.tcp_port, self.http_port, self.front_port = free_port(), free_port(), free_port()
        self.process = self.front = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.front_port}"

    def start(self):
        config = self.folder.with_suffix(".xml")
        shards = "".join(SHARD.format(port=shard.tcp_port) for shard in self.cluster.shards)
        config.write_text(CONFIG.format(shard=self.number, cluster=CLUSTER, shards=shards))
        command = [sys.executable, HERE / "shard.py", self.library, self.folder, self.tcp_port, self.http_port, config]
        with open(self.folder.with_suffix(".log"), "ab") as log:
            self.process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/ping", timeout=1)
                break
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit(f"shard {self.number} does not start: see {self.folder.with_suffix('.log')}")
            time.sleep(0.1)
        self.front = FrontServer(("127.0.0.1", self.front_port), Front)
        self.front.shard, self.front.cluster, self.front.open = self, self.cluster, set()
        threading.Thread(target=self.front.serve_forever, daemon=True).start()

    def kill(self):
        """Ends the server as a crash does, with all its connections."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.front.shutdown()
        self.front.server_close()
        for connection in list(self.front.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.process = None

    def last_errors(self):
        """Whether the server still runs, and the last errors in its log."""
        state = "runs" if self.process.poll() is None else f"ended with {self.process.returncode}"
        log = self.folder.with_suffix(".log").read_text(errors="replace").splitlines()
        errors = [line for line in log if "<Fatal>" in line or "<Error>" in line]
        return "\n".join([f"shard {self.number} {state}", *(errors or log)[-20:]])

    def query(self, sql, **settings):
        address = f"http://127.0.0.1:{self.http_port}/?{urllib.parse.urlencode(settings)}"
        return urllib.request.urlopen(urllib.request.Request(address, f"{sql} FORMAT TSV".encode()), timeout=60).read().decode().strip()


class Cluster:
    def __init__(self, library, folder):
        self.shards = []
        self.shards += [Shard(self, number, library, folder) for number in (1, 2)]

    def up(self):
        return [shard for shard in self.shards if shard.process]

    @property
    def urls(self):
        return ",".join(shard.url for shard in self.shards)

    def __enter__(self):
        for shard in self.shards:
            shard.start()
        return self

    def __exit__(self, failed, *_):
        for shard in self.up():
            if failed:
                print(shard.last_errors(), flush=True)
            shard.kill()
