//! `admin reseal-secrets`: re-encrypts every stored secret under the first master key, while the services run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use domain::encryption::{KeyId, MasterKey};
use service::Rng;
use store::Conn;
use store::resealing::{SealedColumn, list_idempotency_key_uses, list_key_uses, reseal_batch};
use toml::Table;

use crate::folder::Folder;
use crate::progress::Progress;

/// Shown under `admin reseal-secrets --help`.
pub(crate) const STEPS: &str = "A rotation of the master key:
  1. Put a new key (openssl rand -hex 32) in front, under an id of 1 to 4 letters or digits, and restart. In DIR/secrets.json:
       \"master_key\": \"2027:<new key>,0:<old key>\"
     The first key seals, all of them open. A key without an id has the id 0. If several services restart one after
     another, first append the new key at the end everywhere, and then move it to the front: until a service knows a key,
     it can't open what the others seal with it.
  2. Run admin reseal-secrets. The services may run. It may be stopped and run again: it continues where it stopped.
  3. When it says that the old key is unused, remove that key from secrets.master_key and restart.

After step 3, links that resume a run and were sent before step 1 no longer work (they live for up to 30 days), and a call
with an Idempotency-Key from before step 1 that is repeated runs again (answers live for a day). Wait that long if it matters.

A service that finds secrets of a missing key logs its id and the columns, and says so under master_keys in /readyz.";

/// Values of one statement.
const BATCH: u32 = 200;
/// How often values are tried again that services were changing meanwhile.
const PASSES: usize = 10;
const PASS_INTERVAL: Duration = Duration::from_millis(200);
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Re-encrypts all secrets of the running system. With `dry_run`, only shows which keys have sealed them.
#[expect(clippy::print_stdout, reason = "the command prints its result")]
pub(super) async fn run(folder: &Folder, db: &store::Db, dry_run: bool) -> Result<()> {
    let keys = configured_keys(folder)?;
    let mut conn = store::acquire(db).await?;
    let further: Vec<String> = keys.ids().skip(1).map(|id| format!("`{id}`")).collect();
    println!(
        "secrets.master_key: `{}` seals{}",
        keys.sealing_id(),
        if further.is_empty() { String::new() } else { format!("; also open: {}", further.join(", ")) }
    );
    let mut has_failed = false;
    if !dry_run {
        println!("{:<34} {:>9} {:>9} {:>8}", "column", "others'", "resealed", "seconds");
        let progress = Progress::new();
        for column in SealedColumn::ALL {
            let outcome = reseal(&mut conn, column, &keys, &progress).await?;
            println!(
                "{:<34} {:>9} {:>9} {:>8.1}",
                column.name(),
                outcome.to_reseal,
                outcome.resealed,
                outcome.seconds
            );
            has_failed |= outcome.remaining() > 0;
            if outcome.postponed > 0 {
                println!("  {} were being changed by a service; run the command again", outcome.postponed);
            }
            for (row, error) in outcome.unreadable.iter().take(5) {
                println!("  {row}: {error}");
            }
            if outcome.unreadable.len() > 5 {
                println!("  … and {} more that can't be opened", outcome.unreadable.len() - 5);
            }
        }
        progress.done();
    }
    println!("\n{}", KeysInUse::count(&mut conn).await?.describe(&keys));
    if has_failed {
        bail!("some secrets were not re-encrypted; the lines above say why");
    }
    Ok(())
}

/// Returns the keys of the running services.
fn configured_keys(folder: &Folder) -> Result<MasterKey> {
    let path = folder.part("settings/control-plane.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let settings: Table = toml::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    let setting = settings.get("secrets").and_then(|secrets| secrets.get("master_key")?.as_str());
    Ok(MasterKey::parse(setting.unwrap_or_default())?)
}

/// What became of one column.
#[derive(Default)]
struct Outcome {
    to_reseal: i64,
    resealed: u64,
    postponed: u64,
    unreadable: Vec<(String, domain::encryption::DecryptError)>,
    seconds: f64,
}

impl Outcome {
    fn remaining(&self) -> u64 {
        self.postponed + self.unreadable.len() as u64
    }
}

/// Re-encrypts one column, in passes until no value is left that a service was changing.
async fn reseal(
    conn: &mut Conn,
    column: SealedColumn,
    keys: &MasterKey,
    progress: &Progress,
) -> Result<Outcome> {
    let (began, rng) = (Instant::now(), Rng::system());
    let uses = list_key_uses(conn, column).await?;
    let others = uses.iter().filter(|key_use| key_use.key_id != Some(keys.sealing_id()));
    let mut outcome = Outcome { to_reseal: others.map(|key_use| key_use.values).sum(), ..Outcome::default() };
    let mut reported = began;
    let mut ticks = tokio::time::interval(PASS_INTERVAL);
    for _ in 0..PASSES {
        ticks.tick().await;
        (outcome.postponed, outcome.unreadable) = (0, Vec::new());
        let mut after = None;
        loop {
            let batch = reseal_batch(conn, column, keys, || rng.bytes(), after.as_deref(), BATCH).await?;
            outcome.resealed += batch.resealed;
            outcome.postponed += batch.postponed;
            outcome.unreadable.extend(batch.unreadable);
            if reported.elapsed() > REPORT_INTERVAL {
                reported = Instant::now();
                progress.step(format!("{column}: {} of {}", outcome.resealed, outcome.to_reseal));
            }
            after = batch.next;
            if after.is_none() {
                break;
            }
        }
        if outcome.postponed == 0 {
            break;
        }
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    Ok(outcome)
}

/// Numbers of sealed values by key; `None` stands for values of releases without key ids.
struct KeysInUse {
    by_key: BTreeMap<Option<KeyId>, BTreeMap<&'static str, i64>>,
    idempotency: BTreeMap<Option<KeyId>, i64>,
}

impl KeysInUse {
    async fn count(conn: &mut Conn) -> Result<Self> {
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
    fn describe(&self, keys: &MasterKey) -> String {
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
