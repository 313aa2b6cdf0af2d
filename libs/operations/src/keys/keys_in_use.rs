//! Which master keys have sealed the stored values.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use domain::encryption::{KeyId, MasterKey};
use store::Conn;
use store::resealing::{SealedColumn, list_idempotency_key_uses, list_key_uses};

/// Numbers of sealed values by key; `None` stands for values of releases without key ids.
#[derive(Debug)]
pub struct KeysInUse {
    by_key: BTreeMap<Option<KeyId>, BTreeMap<&'static str, i64>>,
    idempotency: BTreeMap<Option<KeyId>, i64>,
}

impl KeysInUse {
    /// Returns the line that names the configured keys.
    #[must_use]
    pub fn describe_configured(keys: &MasterKey) -> String {
        let further: Vec<String> = keys.ids().skip(1).map(|id| format!("`{id}`")).collect();
        let further =
            if further.is_empty() { String::new() } else { format!("; also open: {}", further.join(", ")) };
        format!("secrets.master_key: `{}` seals{further}", keys.sealing_id())
    }

    /// Counts the sealed values of all columns.
    pub async fn count(conn: &mut Conn) -> Result<Self> {
        let mut by_key: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for column in SealedColumn::ALL {
            for key_use in list_key_uses(conn, column).await? {
                by_key.entry(key_use.key_id).or_default().insert(column.name(), key_use.values);
            }
        }
        let answers = list_idempotency_key_uses(conn).await?;
        let idempotency = answers.into_iter().map(|answer| (answer.key_id, answer.values)).collect();
        Ok(Self { by_key, idempotency })
    }

    /// Returns the keys in use with their columns, those that are missing, and those that are unused.
    #[must_use]
    pub fn describe(&self, keys: &MasterKey) -> String {
        let configured: BTreeSet<KeyId> = keys.ids().collect();
        let mut lines = Vec::new();
        for (id, columns) in &self.by_key {
            let total: i64 = columns.values().sum();
            let columns: Vec<&str> = columns.keys().copied().collect();
            let name = match id {
                None => "a release without key ids".to_owned(),
                Some(id) if configured.contains(id) => format!("`{id}`"),
                Some(id) => format!("`{id}`, which is NOT CONFIGURED,"),
            };
            lines.push(format!("{name} has sealed {total} values: {}", columns.join(", ")));
        }
        if self.by_key.is_empty() {
            lines.push("There are no stored secrets.".to_owned());
        }
        let is_any_unnamed = self.by_key.contains_key(&None);
        for id in keys.ids().skip(1) {
            if self.by_key.contains_key(&Some(id)) {
                continue;
            }
            if is_any_unnamed {
                lines
                    .push(format!("`{id}` may still be needed for the values of a release without key ids."));
                continue;
            }
            lines.push(format!("`{id}` is unused: remove it from secrets.master_key and restart."));
            let answers: i64 = [None, Some(id)].iter().filter_map(|id| self.idempotency.get(id)).sum();
            if answers > 0 {
                lines.push(format!(
                    "  It still knows {answers} answers to calls with an Idempotency-Key, which expire within a day."
                ));
            }
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_id(text: &str) -> Option<KeyId> {
        Some(KeyId::parse(text).unwrap())
    }

    #[test]
    fn the_summary_names_missing_and_unused_keys() {
        let keys = MasterKey::parse(&format!(
            "2027:{},2026:{},{}",
            "0a".repeat(32),
            "0b".repeat(32),
            "0c".repeat(32)
        ));
        let keys = keys.unwrap();
        let columns = |values| BTreeMap::from([("webhooks.sealed_url", values)]);
        let by_key = BTreeMap::from([(key_id("2027"), columns(3)), (key_id("2019"), columns(1))]);
        let mut in_use = KeysInUse { by_key, idempotency: BTreeMap::from([(None, 2), (key_id("0"), 5)]) };
        let text = in_use.describe(&keys);
        assert!(text.contains("`2027` has sealed 3 values: webhooks.sealed_url"), "{text}");
        assert!(text.contains("`2019`, which is NOT CONFIGURED, has sealed 1 values"), "{text}");
        assert!(text.contains("`2026` is unused") && text.contains("`0` is unused"), "{text}");
        assert!(text.contains("knows 7 answers"), "{text}");

        in_use.by_key.insert(None, columns(1));
        let text = in_use.describe(&keys);
        assert!(!text.contains("is unused") && text.contains("`0` may still be needed"), "{text}");
    }
}
