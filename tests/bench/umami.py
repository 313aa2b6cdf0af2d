"""What Umami's dashboard asks of its database, over the same page views.

Umami (github.com/umami-software/umami, 2.10, the newest release in a package registry) keeps sessions and their page views in
Postgres and asks a statement per figure, line and card. Its client of Postgres, Prisma, needs an engine that a script downloads, and
that is in no registry, so it can't run beside this project. Only its tables and statements run here, in the stack's own Postgres with
its default memory: what its server adds (HTTP, JSON, a pool) is not counted.
"""

import pathlib
import subprocess
import tempfile
import urllib.parse

# A visitor as a UUID.
SESSION = "reinterpretAsUUID(concat(reinterpretAsFixedString(visitor), reinterpretAsFixedString(cityHash64(site_id))))"
PAGE_VIEWS = f"""
SELECT generateUUIDv4(), site_id, {SESSION}, received_at, path, referrer_host, 1 FROM events WHERE name = 'page_view' FORMAT CSV
"""
SESSIONS = f"""
SELECT {SESSION} AS session, any(site_id), any(browser), any(os), any(device), any(country), min(received_at)
FROM events WHERE name = 'page_view' GROUP BY session FORMAT CSV
"""
# Of its ten indexes of events those that these statements may use.
TABLES = """
CREATE TABLE session (session_id uuid PRIMARY KEY, website_id uuid NOT NULL, browser varchar(20), os varchar(20), device varchar(20),
  country char(2), created_at timestamptz(6));
CREATE TABLE website_event (event_id uuid PRIMARY KEY, website_id uuid NOT NULL, session_id uuid NOT NULL, created_at timestamptz(6),
  url_path varchar(500) NOT NULL, referrer_domain varchar(500), event_type integer NOT NULL);
\\copy session FROM '{sessions}' CSV
\\copy website_event FROM '{page_views}' CSV
CREATE INDEX ON website_event (session_id);
CREATE INDEX ON website_event (website_id, created_at);
CREATE INDEX ON website_event (website_id, created_at, url_path);
CREATE INDEX ON website_event (website_id, created_at, referrer_domain);
CREATE INDEX ON website_event (website_id, session_id, created_at);
CREATE INDEX ON session (website_id, created_at);
VACUUM ANALYZE session, website_event;
"""
VIEWS = "website_event.website_id = '{site}' AND website_event.created_at BETWEEN '{start}Z' AND '{end}Z' AND event_type = 1"
# Views, visitors, visits of one page and the time of visits. A visit is what a session does in an hour.
FIGURES = f"""
SELECT sum(views), count(DISTINCT session_id), count(*) FILTER (WHERE views = 1),
  sum(floor(extract(epoch FROM last - first))) FILTER (WHERE last < first + interval '1 hour')
FROM (SELECT session_id, to_char(date_trunc('hour', created_at), 'YYYY-MM-DD HH24:00:00') AS hour, count(*) AS views,
  min(created_at) AS first, max(created_at) AS last FROM website_event WHERE {VIEWS} GROUP BY 1, 2) AS visits;
"""
DAY = "to_char(date_trunc('day', created_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD')"
LINES = [
    f"SELECT {DAY} AS day, count(*) FROM website_event WHERE {VIEWS} GROUP BY 1;",
    f"SELECT {DAY} AS day, count(DISTINCT session_id) FROM website_event WHERE {VIEWS} GROUP BY 1;",
]
JOIN = "website_event INNER JOIN session USING (session_id)"
CARDS = [
    f"SELECT url_path, count(*) FROM website_event WHERE {VIEWS} GROUP BY 1 ORDER BY 2 DESC LIMIT 10;",
    f"SELECT referrer_domain, count(*) FROM website_event WHERE {VIEWS} GROUP BY 1 ORDER BY 2 DESC LIMIT 10;",
    f"SELECT country, count(DISTINCT session_id) FROM {JOIN} WHERE {VIEWS} GROUP BY 1 ORDER BY 2 DESC LIMIT 10;",
    f"SELECT browser, count(DISTINCT session_id) FROM {JOIN} WHERE {VIEWS} GROUP BY 1 ORDER BY 2 DESC LIMIT 10;",
]


class Dashboard:
    """A database of the stack's Postgres with the page views of all sites."""

    def __init__(self, clickhouse, stack):
        self.admin = stack["postgres_url"]
        self.url = urllib.parse.urlsplit(self.admin)._replace(path="/umami").geturl()
        self.psql(self.admin, "CREATE DATABASE umami")
        with tempfile.TemporaryDirectory(prefix="web-runtime-umami-") as folder:
            files = {name: pathlib.Path(folder) / f"{name}.csv" for name in ("sessions", "page_views")}
            clickhouse.save(SESSIONS, files["sessions"])
            clickhouse.save(PAGE_VIEWS, files["page_views"])
            self.psql(self.url, TABLES.format(**files))

    def psql(self, url, sql):
        """Runs statements and returns what they print."""
        command = ["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", url]
        return subprocess.run(command, input=sql, check=True, capture_output=True, text=True).stdout

    def ask(self, site, periods):
        """The figures of each period; of the last one the two lines and four of the cards."""
        names = [{"site": site, "start": start, "end": end} for start, end in periods]
        sql = [FIGURES.format(**period) for period in names]
        sql += [statement.format(**names[-1]) for statement in (*LINES, *CARDS)]
        return self.psql(self.url, "".join(sql))

    def close(self):
        self.psql(self.admin, "DROP DATABASE umami")
