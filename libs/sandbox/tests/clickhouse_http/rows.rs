//! A million rows of random bytes, written and read back.

use clickhouse::{Client, Compression, Row};
use serde::{Deserialize, Serialize};

use crate::client::client;

const ROWS: u64 = 1_000_000;

#[derive(Debug, PartialEq, Row, Serialize, Deserialize)]
struct Random {
    id: u64,
    #[serde(with = "serde_bytes_as_string")]
    text: Vec<u8>,
    fixed: [u8; 16],
    number: u64,
}

/// A ClickHouse String may contain any bytes, but the crate reads it as bytes only with this serde module.
mod serde_bytes_as_string {
    use serde::{Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl de::Visitor<'_> for Bytes {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }
        from.deserialize_byte_buf(Bytes)
    }
}

/// The same bytes for the same row in every run (splitmix64): all byte values, blank lines, NULs.
fn row(id: u64, seed: u64) -> Random {
    let mut state = seed ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let length = usize::try_from(next() % 41).unwrap();
    let mut text: Vec<u8> = (0..5).flat_map(|_| next().to_le_bytes()).collect();
    text.truncate(length);
    let mut fixed = [0; 16];
    fixed[..8].copy_from_slice(&next().to_le_bytes());
    fixed[8..].copy_from_slice(&next().to_le_bytes());
    Random { id, text, fixed, number: next() }
}

async fn write_and_read(client: Client, seed: u64) {
    let create = "CREATE TABLE random (id UInt64, text String, fixed FixedString(16), number UInt64)
                  ENGINE = MergeTree ORDER BY id";
    client.query(create).execute().await.unwrap();
    let mut insert = client.insert::<Random>("random").await.unwrap();
    for id in 0..ROWS {
        insert.write(&row(id, seed)).await.unwrap();
    }
    insert.end().await.unwrap();
    let mut rows = client.query("SELECT ?fields FROM random ORDER BY id").fetch::<Random>().unwrap();
    let mut id = 0;
    while let Some(found) = rows.next().await.unwrap() {
        assert_eq!(found, row(id, seed), "row {id}");
        id += 1;
    }
    assert_eq!(id, ROWS);
}

#[tokio::test]
async fn a_million_random_rows_survive_a_compressed_round_trip() {
    write_and_read(client().await.with_compression(Compression::Lz4), 1).await;
}

#[tokio::test]
async fn a_million_random_rows_survive_an_uncompressed_round_trip() {
    write_and_read(client().await.with_compression(Compression::None), 2).await;
}

#[tokio::test]
async fn responses_may_be_compressed() {
    let client =
        client().await.with_compression(Compression::Lz4).with_setting("enable_http_compression", "1");
    write_and_read(client, 3).await;
}
