//! The shards of a cluster, and which of them holds a site's rows. Computed here as ClickHouse computes it for the
//! distributed tables, so that a batch can be split before it is sent: a shard that is away then delays only its own sites.

use clickhouse::Row;
use serde::Deserialize;
use uuid::Uuid;

use crate::client::{QUERY_TIMEOUT, Warehouse, with_timeout};
use crate::error::Error;

/// The shards of a cluster, in the order of the servers' configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shards {
    /// The shard of each slot. A shard of weight `w` has `w` adjacent slots.
    slots: Vec<usize>,
    count: usize,
}

#[derive(Row, Deserialize)]
struct ShardRow {
    weight: u32,
}

impl Shards {
    /// Returns the shard of a single server.
    #[must_use]
    pub fn single() -> Self {
        Self { slots: vec![0], count: 1 }
    }

    /// Returns the shards with these weights, or `None` if none of them accepts rows.
    #[must_use]
    pub fn of_weights(weights: &[u32]) -> Option<Self> {
        let slots = weights.iter().enumerate();
        let slots: Vec<usize> =
            slots.flat_map(|(shard, weight)| std::iter::repeat_n(shard, *weight as usize)).collect();
        (!slots.is_empty()).then_some(Self { slots, count: weights.len() })
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the index of the shard that holds the rows of a site.
    #[must_use]
    pub fn shard_of(&self, site: Uuid) -> usize {
        let slots = self.slots.len() as u64;
        let slot = usize::try_from(city_hash(site) % slots).unwrap_or_default();
        self.slots.get(slot).copied().unwrap_or_default()
    }
}

impl Warehouse {
    /// Reads the shards from the servers' configuration. A single server is not asked.
    pub async fn list_shards(&self) -> Result<Shards, Error> {
        if self.cluster.is_empty() {
            return Ok(Shards::single());
        }
        let sql = "SELECT any(shard_weight) AS weight FROM system.clusters WHERE cluster = ?
                   GROUP BY shard_num ORDER BY shard_num";
        // A database that exists before the first migration.
        let server = self.client.clone().with_database("default");
        let shards = server.query(sql).bind(&self.cluster).fetch_all::<ShardRow>();
        let weights: Vec<u32> =
            with_timeout(QUERY_TIMEOUT, shards).await?.into_iter().map(|shard| shard.weight).collect();
        Shards::of_weights(&weights).ok_or_else(|| {
            Error::Setting(format!(
                "warehouse.cluster: the servers know no cluster {:?} with a shard of weight 1 or more: see \
                 `remote_servers` in their configuration, and system.clusters",
                self.cluster
            ))
        })
    }
}

/// ClickHouse's `cityHash64` of a UUID: CityHash 1.0.2 of 16 bytes, which are the upper and the lower half as little-endian
/// numbers.
fn city_hash(id: Uuid) -> u64 {
    const MULTIPLIER: u64 = 0x9ddf_ea08_eb38_2d69;
    const BYTES: u32 = 16;
    let (first, second) = id.as_u64_pair();
    let turned = second.wrapping_add(u64::from(BYTES)).rotate_right(BYTES);
    let mix = |left: u64, right: u64| {
        let product = (left ^ right).wrapping_mul(MULTIPLIER);
        product ^ (product >> 47)
    };
    mix(turned, mix(first, turned)).wrapping_mul(MULTIPLIER) ^ second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Row, Deserialize)]
    struct HashRow {
        #[serde(with = "clickhouse::serde::uuid")]
        site_id: Uuid,
        hash: u64,
    }

    #[tokio::test]
    async fn a_sites_hash_is_that_of_clickhouse() {
        let clickhouse = sandbox::test::clickhouse().await;
        let sql = "SELECT generateUUIDv4(number) AS site_id, cityHash64(site_id) AS hash FROM numbers(10000)
                   UNION ALL SELECT generateUUIDv7(number) AS site_id, cityHash64(site_id) AS hash FROM numbers(10000)
                   UNION ALL SELECT toUUID('00000000-0000-0000-0000-000000000000') AS site_id, cityHash64(site_id)";
        let client = clickhouse::Client::default().with_url(&clickhouse.url).with_user(&clickhouse.user);
        let client = client.with_password(&clickhouse.password);
        let rows = client.query(sql).fetch_all::<HashRow>().await.unwrap();
        assert_eq!(rows.len(), 20_001);
        for row in rows {
            assert_eq!(city_hash(row.site_id), row.hash, "{}", row.site_id);
        }
    }

    #[test]
    fn a_shard_gets_sites_by_its_weight() {
        let shards = Shards::of_weights(&[1, 0, 3]).unwrap();
        let mut sites = [0; 3];
        for number in 0..4_000_u128 {
            sites[shards.shard_of(Uuid::from_u128(number))] += 1;
        }
        assert_eq!(shards.count(), 3);
        assert_eq!(sites[1], 0);
        assert!((900..1_100).contains(&sites[0]), "{sites:?}");
        assert!(Shards::of_weights(&[]).is_none() && Shards::of_weights(&[0]).is_none());
        assert_eq!(Shards::single(), Shards::of_weights(&[1]).unwrap());
    }
}
