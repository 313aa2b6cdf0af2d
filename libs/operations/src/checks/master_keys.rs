//! The configured keys beside those that stored values need.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use domain::encryption::{KeyId, MasterKey};
use domain::peppers::Peppers;
use store::Db;
use store::resealing::{SealedColumn, list_key_uses};

use super::finding::Finding;

const CHECK: &str = "keys.master";

/// Checks the setting `secrets.master_key`, and that its keys open a sample of each column of sealed values.
pub async fn check_master_keys(db: &Db, setting: &str) -> Vec<Finding> {
    let keys = match MasterKey::parse(setting) {
        Ok(keys) => keys,
        Err(error) => {
            let advice = "all services and this program need the same secrets.master_key";
            return vec![Finding::failed(CHECK, error.to_string(), advice)];
        }
    };
    match compare(db, &keys).await {
        Ok(findings) => findings,
        Err(error) => vec![Finding::failed(CHECK, format!("{error:#}"), "first migrate the database")],
    }
}

async fn compare(db: &Db, keys: &MasterKey) -> Result<Vec<Finding>> {
    let mut conn = store::acquire(db).await?;
    let mut values: BTreeMap<Option<KeyId>, i64> = BTreeMap::new();
    let mut unreadable = BTreeSet::new();
    for column in SealedColumn::ALL {
        for key_use in list_key_uses(&mut conn, column).await? {
            *values.entry(key_use.key_id).or_default() += key_use.values;
            if let Some(sample) = &key_use.sample
                && let Err(error) = keys.open(column.purpose(), sample)
            {
                unreadable.insert(format!("{}: {error}", column.name()));
            }
        }
    }
    let mut findings: Vec<Finding> = unreadable
        .into_iter()
        .map(|detail| {
            Finding::failed(CHECK, detail, "put the missing key back; without it these values are lost")
        })
        .collect();
    let sealing = keys.sealing_id();
    let by_others: i64 =
        values.iter().filter(|(id, _)| **id != Some(sealing)).map(|(_, values)| values).sum();
    if by_others > 0 {
        let detail = format!("{by_others} values are sealed by other keys than `{sealing}`");
        findings.push(Finding::warning(CHECK, detail, "run `webruntime keys rotate master`"));
    }
    let unused = keys.ids().skip(1).filter(|id| !values.contains_key(&Some(*id)) && by_others == 0);
    for id in unused {
        let advice = "remove it from secrets.master_key once a day has passed since the rotation";
        findings.push(Finding::warning(CHECK, format!("key `{id}` is unused"), advice));
    }
    if findings.is_empty() {
        let total: i64 = values.values().sum();
        findings.push(Finding::ok(CHECK, format!("`{sealing}` opens all {total} values")));
    }
    Ok(findings)
}

/// Checks the setting `secrets.key_pepper`: one pepper, or several during a rotation.
#[must_use]
pub fn check_pepper(setting: &str) -> Finding {
    match Peppers::parse(setting) {
        Err(error) => {
            let advice = "the control plane does not start without it; changing the only pepper invalidates every API key";
            Finding::failed("keys.pepper", error.to_string(), advice)
        }
        Ok(peppers) if peppers.is_rotating() => {
            let advice = "run `webruntime keys pepper`: it lists the keys that still need an old one";
            let detail = format!("{} peppers: a rotation is under way", peppers.ids().len());
            Finding::warning("keys.pepper", detail, advice)
        }
        Ok(_) => Finding::ok("keys.pepper", "one pepper"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn a_short_pepper_fails_and_two_are_a_rotation() {
        let long = "0123456789abcdef";
        assert_eq!(check_pepper(long).status, Status::Ok);
        assert_eq!(check_pepper("").status, Status::Failed);
        assert_eq!(check_pepper(&format!("{long},short")).status, Status::Failed);
        assert_eq!(check_pepper(&format!("{long}, {long}{long}")).status, Status::Warning);
    }
}
