//! The questions about one site.

use domain::analytics::Range;
use domain::tracking::PAGE_VIEW;
use uuid::Uuid;

use crate::{Error, QUESTION_TIMEOUT, Warehouse, within};

impl Warehouse {
    /// How often the site's pages were shown.
    ///
    /// # Errors
    /// ClickHouse is away or too slow.
    pub async fn count_page_views(&self, site: Uuid, range: Range) -> Result<u64, Error> {
        let sql = format!("SELECT count() FROM events WHERE {IN_RANGE} AND name = ?");
        let question = self.about(site, range, &sql).bind(PAGE_VIEW);
        within(QUESTION_TIMEOUT, question.fetch_one()).await
    }

    /// How many distinct daily visitors the site had, exactly.
    ///
    /// # Errors
    /// ClickHouse is away or too slow.
    pub async fn count_unique_visitors(&self, site: Uuid, range: Range) -> Result<u64, Error> {
        let sql = format!("SELECT uniqExact(visitor) FROM events WHERE {IN_RANGE}");
        within(QUESTION_TIMEOUT, self.about(site, range, &sql).fetch_one()).await
    }

    /// A question whose `WHERE` begins with [`IN_RANGE`].
    fn about(&self, site: Uuid, range: Range, sql: &str) -> clickhouse::query::Query {
        let (start, end) = (range.start.timestamp_millis(), range.end.timestamp_millis());
        self.question(sql).bind(site).bind(start).bind(end)
    }
}

/// The site's events of a range.
const IN_RANGE: &str = "site_id = ? AND received_at >= fromUnixTimestamp64Milli(toInt64(?)) \
                        AND received_at < fromUnixTimestamp64Milli(toInt64(?))";
