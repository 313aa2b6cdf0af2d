//! [`KeyedSums`]: runs queries of sums in three statements at most, and adds up their sections.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use clickhouse::Row;
use domain::analytics::Sums;
use serde::Deserialize;

use super::cache::{Fingerprint, SumsByKey};
use super::scan::{Scan, share_scans};
use super::sections::{Sections, first_of_month, settled_until};
use super::selection::{KeyedQuery, Selection, SelectionKey};
use crate::analytics::site_analytics::SiteAnalytics;
use crate::analytics::statement::Bound;
use crate::client::ONE_REPLICA;
use crate::error::Error;

/// Most rows of a result. More would take too much memory here; ClickHouse sorts them then.
const MAX_RESULT_ROWS: &str = "200000";

/// The sums of a query by key. Parts are not added up before they are read, because most are shared with the cache.
#[derive(Default)]
pub(in crate::analytics) struct KeyedSums(Vec<Arc<SumsByKey>>);

#[derive(Row, Deserialize)]
struct SumsRow {
    /// The number of the scan.
    part: u8,
    /// What the row is grouped by.
    groups: u64,
    /// The key's value.
    word: String,
    sums: Vec<u64>,
}

#[derive(Row, Deserialize)]
struct CountRow {
    /// 0 for events, 1 for visits, 2 for those that are not settled.
    part: u8,
    count: u64,
    versions: u64,
}

impl KeyedSums {
    /// Returns the sums of a key; zeros for one that has none.
    pub(in crate::analytics) fn get(&self, key: &str) -> Sums {
        self.0.iter().filter_map(|part| part.get(key)).fold(Sums::default(), |total, sums| Sums {
            amount: total.amount + sums.amount,
            over: total.over + sums.over,
        })
    }

    /// Returns the sums of a query without a key.
    pub(in crate::analytics) fn total(&self) -> Sums {
        self.get("")
    }

    /// Iterates over the keys, each once, with their sums.
    pub(in crate::analytics) fn iter(&self) -> impl Iterator<Item = (&str, Sums)> {
        let keys: HashSet<&str> = self.0.iter().flat_map(|part| part.keys()).map(String::as_str).collect();
        keys.into_iter().map(|key| (key, self.get(key)))
    }
}

impl SiteAnalytics<'_> {
    /// Returns the sums of each query: those of settled days from the cache, if their rows have not changed.
    pub(in crate::analytics) async fn keyed_sums(
        &self,
        queries: &[KeyedQuery<'_>],
    ) -> Result<Vec<KeyedSums>, Error> {
        let (mut settled, mut recent) = (Numbered::default(), Numbered::default());
        let mut first = self.now;
        for (number, query) in queries.iter().enumerate() {
            let sections = Sections::of(query.range, self.now);
            if let Some(section) = sections.settled {
                settled.extend(number, query.selections(section, &self.statement()));
                first = first.min(query.range.start);
            }
            if let Some(section) = sections.recent {
                recent.extend(number, query.selections(section, &self.statement()));
            }
        }
        let fingerprint = async {
            if settled.selections.is_empty() { Ok(None) } else { self.fingerprint(first).await.map(Some) }
        };
        let (fingerprint, found) =
            tokio::try_join!(fingerprint, self.select(&recent.selections, Replica::Any))?;
        let mut sums: Vec<KeyedSums> = queries.iter().map(|_| KeyedSums::default()).collect();
        for (number, found) in recent.numbers.into_iter().zip(found) {
            sums[number].0.push(Arc::new(found));
        }
        if let Some(fingerprint) = fingerprint {
            let found = self.select_settled(&settled.selections, fingerprint).await?;
            for (number, found) in settled.numbers.into_iter().zip(found) {
                sums[number].0.push(found);
            }
        }
        Ok(sums)
    }

    /// Returns the sums of selections of settled days.
    async fn select_settled(
        &self,
        selections: &[Selection],
        fingerprint: Fingerprint,
    ) -> Result<Vec<Arc<SumsByKey>>, Error> {
        let cache = &self.warehouse.sums;
        let mut sums: Vec<_> = selections.iter().map(|selection| cache.get(selection, fingerprint)).collect();
        let missing = || sums.iter().zip(selections).filter(|(sums, _)| sums.is_none());
        let missing: Vec<_> = missing().map(|(_, selection)| selection.clone()).collect();
        let found = self.select(&missing, Replica::First).await?;
        for ((place, selection), found) in
            sums.iter_mut().filter(|place| place.is_none()).zip(missing).zip(found)
        {
            let found = Arc::new(found);
            cache.insert(selection, fingerprint, Arc::clone(&found));
            *place = Some(found);
        }
        Ok(sums.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Returns the sums of each selection, in one statement. If that exceeds a limit, each scan is one of its own.
    async fn select(&self, selections: &[Selection], replica: Replica) -> Result<Vec<SumsByKey>, Error> {
        if selections.is_empty() {
            return Ok(Vec::new());
        }
        let (scans, places) = share_scans(selections);
        let numbered: Vec<_> = (0..).zip(&scans).collect();
        let rows = match self.scan(&numbered, replica).await {
            Err(error) if error.is_server_limit() && scans.len() > 1 => {
                let mut rows = Vec::new();
                for scan in &numbered {
                    rows.extend(self.scan(std::slice::from_ref(scan), replica).await?);
                }
                rows
            }
            rows => rows?,
        };
        let mut found: Vec<SumsByKey> = selections.iter().map(|_| SumsByKey::new()).collect();
        for SumsRow { part, groups, word, sums } in rows {
            let scan = usize::from(part);
            let key = scans.get(scan).and_then(|scan| scan.key(groups));
            let sum = |number: usize| sums.get(number).copied().unwrap_or_default();
            for ((place, selection), found) in places.iter().zip(selections).zip(&mut found) {
                if place.scan == scan && Some(place.key) == key {
                    let word = match &selection.key {
                        SelectionKey::Fixed(key) => key.clone(),
                        SelectionKey::Column(_) => word.clone(),
                    };
                    let sums =
                        Sums { amount: sum(place.amount), over: place.over.map(sum).unwrap_or_default() };
                    found.insert(word, sums);
                }
            }
        }
        Ok(found)
    }

    /// Runs scans in one statement.
    async fn scan(&self, scans: &[(u8, &Scan)], replica: Replica) -> Result<Vec<SumsRow>, Error> {
        let mut statement = self.statement();
        statement.push_union(scans.iter().map(|(number, scan)| scan.statement(*number)));
        self.rows_with(statement, &self.settings(replica)).await
    }

    /// Returns the settings of sums and of their fingerprint.
    fn settings(&self, replica: Replica) -> Vec<(&'static str, &'static str)> {
        let mut settings = vec![("max_result_rows", MAX_RESULT_ROWS)];
        if matches!(replica, Replica::First) && !self.warehouse.cluster.is_empty() {
            settings.extend(ONE_REPLICA);
        }
        settings
    }

    /// Returns the fingerprint of the settled days since the first of the month with visits of a range that begins at `start`.
    ///
    /// ClickHouse counts events by the table's index. To read the day of each visit takes three times as long as to add up whole
    /// months, and to subtract the few visits that are not settled. `indexHint` skips earlier months without reading a column.
    async fn fingerprint(&self, start: DateTime<Utc>) -> Result<Fingerprint, Error> {
        let (first_day, until) = (first_of_month(start), settled_until(self.now).date_naive());
        let mut statement = self.statement();
        statement.bind("first_day", Bound::Day(first_day));
        statement.bind("until", Bound::Day(until));
        statement.push(
            "SELECT 0 AS part, count() AS count, toUInt64(0) AS versions FROM events WHERE site_id = {site:UUID} \
             AND toDate(received_at) >= {first_day:Date} AND toDate(received_at) < {until:Date} \
             UNION ALL SELECT 1 AS part, count() AS count, sum(version) AS versions FROM sessions \
             WHERE site_id = {site:UUID} AND indexHint(start >= {first_day:Date}) \
             UNION ALL SELECT 2 AS part, count() AS count, sum(version) AS versions FROM sessions \
             WHERE site_id = {site:UUID} AND toDate(start) >= {until:Date}",
        );
        let mut fingerprint = Fingerprint { first_day, until, events: 0, visits: 0, versions: 0 };
        for CountRow { part, count, versions } in
            self.rows_with::<CountRow>(statement, &self.settings(Replica::First)).await?
        {
            match part {
                0 => fingerprint.events = count,
                1 => fingerprint.add_visits(count, versions),
                _ => fingerprint.add_visits(count.wrapping_neg(), versions.wrapping_neg()),
            }
        }
        Ok(fingerprint)
    }
}

/// Which replica of a shard answers. Cached sums come from the one that their fingerprint is of, because another one may be late.
#[derive(Clone, Copy)]
enum Replica {
    First,
    Any,
}

/// Selections with the number of the query that each belongs to.
#[derive(Default)]
struct Numbered {
    numbers: Vec<usize>,
    selections: Vec<Selection>,
}

impl Numbered {
    fn extend(&mut self, number: usize, selections: Vec<Selection>) {
        self.numbers.extend(std::iter::repeat_n(number, selections.len()));
        self.selections.extend(selections);
    }
}
