//! Re-encryption under a new master key: complete, restartable, and without harm to concurrent changes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::encryption::{DecryptError, KeyId, MasterKey, NONCE_BYTES};
use sandbox::test::{TestDatabase, trial};
use store::Conn;
use store::resealing::{Batch, SealedColumn, find_unreadable, list_key_uses, reseal_batch};
use uuid::Uuid;

const ACCOUNT: Uuid = Uuid::from_u128(1);
/// Rows of each table.
const ROWS: i64 = 25;

fn hex(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

fn keys(setting: &str) -> MasterKey {
    MasterKey::parse(setting).unwrap()
}

fn nonce() -> [u8; NONCE_BYTES] {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let mut nonce = [7; NONCE_BYTES];
    nonce[..8].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    nonce
}

async fn execute(database: &TestDatabase, statement: &str) {
    store::execute_raw(&database.db, statement).await.unwrap();
}

/// Returns a database with [`ROWS`] values in every column, sealed by `sealing`. The text is the column's name.
async fn database(sealing: &MasterKey) -> TestDatabase {
    let database = sandbox::test::database().await;
    trial(&database, ACCOUNT, "2026-11-21T12:00:00Z".parse().unwrap()).await;
    let sealed = |column: SealedColumn| {
        let bytes = sealing.seal(column.purpose(), nonce(), column.name().as_bytes());
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("'\\x{hex}'")
    };
    for row in 1..=ROWS {
        let id = Uuid::from_u128(row.unsigned_abs().into());
        let statement = format!(
            "insert into webhooks (id, account_id, sealed_url, events, all_forms, sealed_secret, sealed_previous_secret,
                                   created_at, updated_at)
             values ('{id}', '{ACCOUNT}', {}, '{{}}', true, {}, {}, now(), now());
             insert into mail_recipients (id, account_id, address, token_hash, sealed_link, asked_at)
             values ('{id}', '{ACCOUNT}', 'a{row}@x.test', '\\x{row:08x}', {}, now());
             insert into certificates (name, chain, sealed_key, not_after, order_sealed_key, created_at)
             values ('x{row}.test', 'chain', {}, now(), {}, now());
             insert into acme_accounts values ('https://ca{row}.test/', {}, now());
             insert into tls_ticket_keys values ('{id}', {}, now());
             insert into sign_ins (state_hash, browser_hash, provider, sealed, expires_at)
             values ('\\x{row:08x}', '\\x00', 'google', {}, now());
             insert into automation_definitions values ('{ACCOUNT}', '\\x00', '{{}}', now()) on conflict do nothing;
             insert into automations (id, account_id, slug, name, is_enabled, definition_hash, sealed_env, scopes,
                                      trigger_type, created_at, updated_at)
             values ('{id}', '{ACCOUNT}', 'a{row}', 'A', true, '\\x00', {}, '{{}}', 'http', now(), now());
             insert into automation_former_versions values
                 ('{id}', '\\x00', '{ACCOUNT}', '{{}}', null, '{{}}', {});
             insert into automation_runs (id, account_id, automation_id, definition_hash, trigger_type, trigger, status,
                                          due_at, created_at)
             values ('{id}', '{ACCOUNT}', '{id}', '\\x00', 'http', '{{}}', 'waiting', now(), now());
             insert into automation_steps (run_id, path, position, step_id, type, status, input, output, sealed_output,
                                           attempts, started_at, finished_at)
             values ('{id}', 'each[{row}].a step', 0, 'a', 'set', 'success', '{{}}', '{{}}', {}, 1, now(), now());",
            sealed(SealedColumn::WebhookUrl),
            sealed(SealedColumn::WebhookSecret),
            sealed(SealedColumn::WebhookPreviousSecret),
            sealed(SealedColumn::RecipientLink),
            sealed(SealedColumn::CertificateKey),
            sealed(SealedColumn::OrderKey),
            sealed(SealedColumn::AcmeCredentials),
            sealed(SealedColumn::TicketKey),
            sealed(SealedColumn::SignIn),
            sealed(SealedColumn::AutomationEnv),
            sealed(SealedColumn::FormerAutomationEnv),
            sealed(SealedColumn::StepOutput),
        );
        execute(&database, &statement).await;
    }
    database
}

/// Re-encrypts a column to its end, in batches of `limit`. Returns the sums.
async fn reseal(conn: &mut Conn, column: SealedColumn, keys: &MasterKey, limit: u32) -> Batch {
    let mut sum = Batch::default();
    loop {
        let batch = reseal_batch(conn, column, keys, nonce, sum.next.as_deref(), limit).await.unwrap();
        sum.resealed += batch.resealed;
        sum.postponed += batch.postponed;
        sum.unreadable.extend(batch.unreadable);
        sum.next = batch.next;
        if sum.next.is_none() {
            return sum;
        }
    }
}

async fn ids(conn: &mut Conn, column: SealedColumn) -> Vec<String> {
    let uses = list_key_uses(conn, column).await.unwrap();
    uses.iter().map(|key_use| key_use.key_id.map(|id| id.to_string()).unwrap_or_default()).collect()
}

#[tokio::test]
async fn every_value_of_every_column_is_sealed_by_the_new_key() {
    let old = keys(&hex(1));
    let database = database(&old).await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let (rotating, rotated) =
        (keys(&format!("2027:{},{}", hex(2), hex(1))), keys(&format!("2027:{}", hex(2))));
    assert_eq!(find_unreadable(&mut conn, &rotating).await.unwrap(), []);
    assert_eq!(find_unreadable(&mut conn, &rotated).await.unwrap().len(), SealedColumn::ALL.len());
    for column in SealedColumn::ALL {
        assert_eq!(ids(&mut conn, column).await, ["0"], "{column}");
        // Stopped after one batch, and started again.
        let first = reseal_batch(&mut conn, column, &rotating, nonce, None, 10).await.unwrap();
        assert_eq!((first.resealed, first.next.is_some()), (10, true), "{column}");
        assert_eq!(
            reseal(&mut conn, column, &rotating, 10).await.resealed,
            ROWS.unsigned_abs() - 10,
            "{column}"
        );
        assert_eq!(reseal(&mut conn, column, &rotating, 10).await, Batch::default(), "{column}");
        let uses = list_key_uses(&mut conn, column).await.unwrap();
        assert_eq!(uses.len(), 1, "{column}");
        assert_eq!((uses[0].key_id, uses[0].values), (Some(rotated.sealing_id()), ROWS), "{column}");
        let sample = uses[0].sample.as_deref().unwrap();
        assert_eq!(rotated.open(column.purpose(), sample).unwrap(), column.name().as_bytes(), "{column}");
    }
    assert_eq!(find_unreadable(&mut conn, &rotated).await.unwrap(), []);
}

#[tokio::test]
async fn every_sealed_column_of_the_schema_is_known() {
    let database = sandbox::test::database().await;
    let db = sqlx::PgPool::connect(&database.url).await.unwrap();
    let found: Vec<String> = sqlx::query_scalar(
        "select table_name || '.' || column_name from information_schema.columns
         where table_schema = 'public' and data_type = 'bytea' and column_name like '%sealed%'",
    )
    .fetch_all(&db)
    .await
    .unwrap();
    let known: BTreeSet<String> = SealedColumn::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), known);
}

#[tokio::test]
async fn a_value_that_changes_or_is_locked_meanwhile_is_kept_and_found_by_the_next_pass() {
    let old = keys(&hex(1));
    let database = database(&old).await;
    let rotating = keys(&format!("2027:{},{}", hex(2), hex(1)));
    let column = SealedColumn::WebhookUrl;
    let mut service = store::begin(&database.db).await.unwrap();
    let newer = old.seal(column.purpose(), nonce(), b"https://new.test/");
    let hex: String = newer.iter().map(|byte| format!("{byte:02x}")).collect();
    let id = Uuid::from_u128(3);
    let update = format!("update webhooks set sealed_url = '\\x{hex}' where id = '{id}'");
    store::webhooks::delete_webhook(&mut service, ACCOUNT, Uuid::from_u128(4)).await.unwrap();

    let mut conn = store::acquire(&database.db).await.unwrap();
    let first = reseal(&mut conn, column, &rotating, 10).await;
    assert_eq!(
        (first.resealed, first.postponed),
        (ROWS.unsigned_abs() - 1, 1),
        "it does not wait for the lock"
    );
    store::rollback(service).await.unwrap();
    execute(&database, &update).await;
    let second = reseal(&mut conn, column, &rotating, 10).await;
    assert_eq!(
        (second.resealed, second.postponed),
        (2, 0),
        "the released one and the new value of the old key"
    );
    assert_eq!(ids(&mut conn, column).await, ["2027"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_are_never_overwritten() {
    let old = keys(&hex(1));
    let database = database(&old).await;
    let rotating = keys(&format!("2027:{},{}", hex(2), hex(1)));
    let column = SealedColumn::WebhookUrl;
    let write = |number: u64, row: i64, key: &MasterKey| {
        let sealed = key.seal(column.purpose(), nonce(), number.to_string().as_bytes());
        let hex: String = sealed.iter().map(|byte| format!("{byte:02x}")).collect();
        let id = Uuid::from_u128(row.unsigned_abs().into());
        format!("update webhooks set sealed_url = '\\x{hex}' where id = '{id}'")
    };
    let changes = async {
        for number in 1..=20 {
            for row in 1..=ROWS {
                // Services with either setting run during a rotation.
                let key = if (number + row.unsigned_abs()) % 2 == 0 { &old } else { &rotating };
                execute(&database, &write(number, row, key)).await;
            }
        }
    };
    let mut conn = store::acquire(&database.db).await.unwrap();
    let reseals = async {
        let mut resealed = 0;
        for _ in 0..60 {
            resealed += reseal(&mut conn, column, &rotating, 7).await.resealed;
        }
        resealed
    };
    let ((), resealed) = tokio::join!(changes, reseals);
    assert!(resealed > 0);
    let mut conn = store::acquire(&database.db).await.unwrap();
    reseal(&mut conn, column, &rotating, 7).await;
    assert_eq!(ids(&mut conn, column).await, ["2027"]);
    let db = sqlx::PgPool::connect(&database.url).await.unwrap();
    let values: Vec<Vec<u8>> =
        sqlx::query_scalar("select sealed_url from webhooks").fetch_all(&db).await.unwrap();
    for value in values {
        assert_eq!(rotating.open(column.purpose(), &value).unwrap(), b"20", "the last change stays");
    }
}

#[tokio::test]
async fn a_value_of_a_missing_key_is_left_and_named_and_the_others_are_resealed() {
    let database = database(&keys(&format!("2025:{}", hex(1)))).await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let column = SealedColumn::AutomationEnv;
    let current = keys(&format!("2027:{}", hex(2)));
    let missing = KeyId::parse("2025").unwrap();
    let found = find_unreadable(&mut conn, &current).await.unwrap();
    let text = found.iter().find(|found| found.column == column).unwrap().to_string();
    assert!(
        text.starts_with(
            "automations.sealed_env (25 values): sealed with master key `2025`, which is not configured"
        ),
        "{text}"
    );
    let batch = reseal(&mut conn, column, &current, 10).await;
    assert_eq!((batch.resealed, batch.unreadable.len()), (0, 25));
    assert_eq!(batch.unreadable[0], (Uuid::from_u128(1).to_string(), DecryptError::MissingKey(missing)));

    // Another key under the id of the missing one is noticed, too.
    let wrong = keys(&format!("2025:{}", hex(3)));
    let found = find_unreadable(&mut conn, &wrong).await.unwrap();
    assert_eq!(found[0].error, DecryptError::WrongKey(missing));
}
