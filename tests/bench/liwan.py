"""What liwan's dashboard asks of its database, over the same page views.

liwan (github.com/explodingcamera/liwan, 1.6) keeps one flat table of events in DuckDB, with the times to the visitor's events before
and after, and asks a statement per card. Its server needs a newer compiler than ours and can't be built beside this project, so
only its engine runs here, in the version that it links: what its server adds (HTTP, JSON, a pool) is not counted.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

DUCKDB = "duckdb==1.5.5"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "web-runtime-bench" / DUCKDB

PAGE_VIEWS = """
SELECT toString(site_id) AS site, hex(visitor) AS visitor, toUnixTimestamp64Milli(received_at) AS created, host, path, referrer_host AS referrer,
  os AS platform, browser, country, city, utm_source, device = 'mobile' AS mobile
FROM events WHERE name = 'page_view' FORMAT Parquet
"""
# Sorted by time, as its collector appends them.
TABLE = """
CREATE TABLE events AS SELECT *,
  created - lag(created) OVER visits AS since_last, lead(created) OVER visits - created AS until_next
FROM (SELECT * REPLACE (epoch_ms(created) AS created) FROM read_parquet('{file}'))
WINDOW visits AS (PARTITION BY visitor ORDER BY created) ORDER BY created
"""
PERIOD = "site = '{site}' AND created >= TIMESTAMP '{start}' AND created < TIMESTAMP '{end}'"
ENTRY = "(since_last IS NULL OR since_last > INTERVAL 30 MINUTE)"
EXIT = "(until_next IS NULL OR until_next > INTERVAL 30 MINUTE)"
# Views, visitors, bounce rate and time on site.
FIGURES = f"""
SELECT count(created), count(DISTINCT visitor), count(*) FILTER (WHERE {ENTRY} AND {EXIT}) / count(*) FILTER (WHERE {ENTRY}),
  avg(epoch(until_next)) FILTER (WHERE until_next <= INTERVAL 30 MINUTE) FROM events WHERE {PERIOD}
"""
SERIES = f"SELECT date_trunc('day', created) AS day, count(DISTINCT visitor) FROM events WHERE {PERIOD} GROUP BY day ORDER BY day"
PANEL = f"SELECT {{column}}, count(DISTINCT visitor) AS visitors FROM events WHERE {PERIOD} GROUP BY 1 ORDER BY visitors DESC"


def duckdb():
    """The engine, installed into the user's cache."""
    if not CACHE.exists():
        unfinished = CACHE.with_name(f"{CACHE.name}.{os.getpid()}")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", unfinished, DUCKDB], check=True)
        unfinished.rename(CACHE)
    sys.path.insert(0, str(CACHE))
    import duckdb

    return duckdb


class Dashboard:
    """DuckDB with the page views of all sites."""

    def __init__(self, clickhouse):
        self.folder = tempfile.TemporaryDirectory(prefix="web-runtime-liwan-")
        file = pathlib.Path(self.folder.name) / "events.parquet"
        clickhouse.save(PAGE_VIEWS, file)
        self.database = duckdb().connect(str(file.with_name("events.db")), config={"threads": os.cpu_count()})
        self.database.execute(TABLE.format(file=file))
        file.unlink()

    def ask(self, site, periods):
        """The figures, the series and four panels of the last period; of the ones before it the figures and the series."""
        answers = []
        for start, end in periods:
            names = {"site": site, "start": start, "end": end}
            answers += [self.database.execute(sql.format(**names)).fetchall() for sql in (FIGURES, SERIES)]
        for column in ("referrer", "path", "country", "browser"):
            answers.append(self.database.execute(PANEL.format(column=column, **names)).fetchall())
        return answers

    def close(self):
        self.database.close()
        self.folder.cleanup()
