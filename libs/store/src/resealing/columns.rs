//! The columns of sealed values, with their statements.

use std::fmt;

use domain::encryption::{HEADER_MARK, KeyId};
use domain::{automations, certificates, recipients, sign_ins, webhooks};
use sqlx::{query, query_as};

use crate::{Conn, Error};

/// A column of values sealed under the master key. Answers of idempotent calls are not among them: each is sealed under a
/// key of its own, which only the caller's request yields, and they expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedColumn {
    /// Addresses of webhooks.
    WebhookUrl,
    /// Signing secrets of webhooks.
    WebhookSecret,
    /// Replaced signing secrets that still sign.
    WebhookPreviousSecret,
    /// Links in mails to recipients.
    RecipientLink,
    /// Private keys of certificates.
    CertificateKey,
    /// Private keys of orders under way.
    OrderKey,
    /// Credentials of ACME accounts.
    AcmeCredentials,
    /// Keys of session tickets.
    TicketKey,
    /// Variables of automations.
    AutomationEnv,
    /// Variables of former versions of automations.
    FormerAutomationEnv,
    /// Outputs of steps of runs under way.
    StepOutput,
    /// The state of sign-ins under way.
    SignIn,
}

impl SealedColumn {
    /// All columns.
    pub const ALL: [Self; 12] = [
        Self::WebhookUrl,
        Self::WebhookSecret,
        Self::WebhookPreviousSecret,
        Self::RecipientLink,
        Self::CertificateKey,
        Self::OrderKey,
        Self::AcmeCredentials,
        Self::TicketKey,
        Self::AutomationEnv,
        Self::FormerAutomationEnv,
        Self::StepOutput,
        Self::SignIn,
    ];

    /// Returns table and column.
    pub fn name(self) -> &'static str {
        match self {
            Self::WebhookUrl => "webhooks.sealed_url",
            Self::WebhookSecret => "webhooks.sealed_secret",
            Self::WebhookPreviousSecret => "webhooks.sealed_previous_secret",
            Self::RecipientLink => "mail_recipients.sealed_link",
            Self::CertificateKey => "certificates.sealed_key",
            Self::OrderKey => "certificates.order_sealed_key",
            Self::AcmeCredentials => "acme_accounts.sealed_credentials",
            Self::TicketKey => "tls_ticket_keys.sealed_key",
            Self::AutomationEnv => "automations.sealed_env",
            Self::FormerAutomationEnv => "automation_former_versions.sealed_env",
            Self::StepOutput => "automation_steps.sealed_output",
            Self::SignIn => "sign_ins.sealed",
        }
    }

    /// Returns the purpose for which the values are sealed.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::WebhookUrl => webhooks::URL_PURPOSE,
            Self::WebhookSecret | Self::WebhookPreviousSecret => webhooks::SECRET_PURPOSE,
            Self::RecipientLink => recipients::LINK_PURPOSE,
            Self::CertificateKey | Self::OrderKey => certificates::KEY_PURPOSE,
            Self::AcmeCredentials => certificates::ACCOUNT_PURPOSE,
            Self::TicketKey => certificates::TICKET_KEY_PURPOSE,
            Self::AutomationEnv | Self::FormerAutomationEnv => automations::ENV_PURPOSE,
            Self::StepOutput => automations::STEP_PURPOSE,
            Self::SignIn => sign_ins::STATE_PURPOSE,
        }
    }
}

impl fmt::Display for SealedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Expands `$statement!(…)` for a column with its SQL: table, further tables to join, column, primary key, primary key as a
/// text, and the primary key from the text `k.key`.
macro_rules! for_column {
    ($column:expr, $statement:ident) => {
        match $column {
            SealedColumn::WebhookUrl => {
                $statement!("webhooks", "", "sealed_url", "t.id", "t.id::text", "k.key::uuid")
            }
            SealedColumn::WebhookSecret => {
                $statement!("webhooks", "", "sealed_secret", "t.id", "t.id::text", "k.key::uuid")
            }
            SealedColumn::WebhookPreviousSecret => {
                $statement!("webhooks", "", "sealed_previous_secret", "t.id", "t.id::text", "k.key::uuid")
            }
            SealedColumn::RecipientLink => {
                $statement!("mail_recipients", "", "sealed_link", "t.id", "t.id::text", "k.key::uuid")
            }
            SealedColumn::CertificateKey => {
                $statement!("certificates", "", "sealed_key", "t.name", "t.name", "k.key")
            }
            SealedColumn::OrderKey => {
                $statement!("certificates", "", "order_sealed_key", "t.name", "t.name", "k.key")
            }
            SealedColumn::AcmeCredentials => {
                $statement!("acme_accounts", "", "sealed_credentials", "t.directory_url", "t.directory_url", "k.key")
            }
            SealedColumn::TicketKey => {
                $statement!("tls_ticket_keys", "", "sealed_key", "t.id", "t.id::text", "k.key::uuid")
            }
            SealedColumn::AutomationEnv => {
                $statement!("automations", "", "sealed_env", "t.id", "t.id::text", "k.key::uuid")
            }
            SealedColumn::FormerAutomationEnv => $statement!(
                "automation_former_versions",
                "",
                "sealed_env",
                "(t.automation_id, t.definition_hash)",
                "t.automation_id || ' ' || encode(t.definition_hash, 'hex')",
                "split_part(k.key, ' ', 1)::uuid, decode(substr(k.key, 38), 'hex')"
            ),
            // Only runs under way have sealed outputs. Their index makes this cheap; the table holds the log of all runs.
            SealedColumn::StepOutput => $statement!(
                "automation_steps",
                " join automation_runs r on r.id = t.run_id and r.due_at is not null",
                "sealed_output",
                "(t.run_id, t.path)",
                "t.run_id || ' ' || t.path",
                "split_part(k.key, ' ', 1)::uuid, substr(k.key, 38)"
            ),
            SealedColumn::SignIn => $statement!(
                "sign_ins",
                "",
                "sealed",
                "t.state_hash",
                "encode(t.state_hash, 'hex')",
                "decode(k.key, 'hex')"
            ),
        }
    };
}

/// The values of a column that one key has sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUse {
    /// `None` for values of releases without key ids.
    pub key_id: Option<KeyId>,
    /// Their number.
    pub values: i64,
    /// One of them.
    pub sample: Option<Vec<u8>>,
}

struct KeyUseRow {
    key_id: Option<Vec<u8>>,
    total: i64,
    sample: Option<Vec<u8>>,
}

impl From<KeyUseRow> for KeyUse {
    fn from(row: KeyUseRow) -> Self {
        let key_id = row.key_id.as_deref().and_then(KeyId::from_bytes);
        Self { key_id, values: row.total, sample: row.sample }
    }
}

/// Returns which keys have sealed the values of a column.
pub async fn list_key_uses(conn: &mut Conn, column: SealedColumn) -> Result<Vec<KeyUse>, Error> {
    macro_rules! list {
        ($table:tt, $join:tt, $column:tt, $key:tt, $key_text:tt, $parsed:tt) => {
            query_as!(
                KeyUseRow,
                "with ids as (
                   select case when substring(t."
                    + $column
                    + " from 1 for 4) = $1
                               then substring(t."
                    + $column
                    + " from 5 for 4) end as key_id, count(*) as total
                   from "
                    + $table
                    + " t"
                    + $join
                    + " where t."
                    + $column
                    + " is not null group by 1)
                 select key_id as \"key_id?\", total as \"total!\", (
                   select t."
                    + $column
                    + " from "
                    + $table
                    + " t"
                    + $join
                    + "
                   where t."
                    + $column
                    + " is not null
                     and case when substring(t."
                    + $column
                    + " from 1 for 4) = $1
                              then substring(t."
                    + $column
                    + " from 5 for 4) end is not distinct from key_id
                   limit 1) as \"sample?\"
                 from ids order by total desc",
                &HEADER_MARK,
            )
            .fetch_all(conn)
            .await?
        };
    }
    Ok(for_column!(column, list).into_iter().map(KeyUse::from).collect())
}

/// Returns from which keys those keys are derived that have sealed answers of idempotent calls.
pub async fn list_idempotency_key_uses(conn: &mut Conn) -> Result<Vec<KeyUse>, Error> {
    let uses = query_as!(
        KeyUseRow,
        r#"select case when substring(answer from 1 for 4) = $1 then substring(answer from 5 for 4) end as "key_id?",
                  count(*) as "total!", null::bytea as sample
           from idempotent_calls where answer is not null group by 1"#,
        &HEADER_MARK,
    );
    Ok(uses.fetch_all(conn).await?.into_iter().map(KeyUse::from).collect())
}

/// A value with the primary key of its row as a text.
pub(super) struct SealedRow {
    pub(super) key: String,
    pub(super) sealed: Vec<u8>,
}

/// Returns up to `limit` values after the row `after` that don't begin with `header`, by primary key.
pub(super) async fn list_resealable(
    conn: &mut Conn,
    column: SealedColumn,
    header: &[u8],
    after: Option<&str>,
    limit: i64,
) -> Result<Vec<SealedRow>, Error> {
    macro_rules! list {
        ($table:tt, $join:tt, $column:tt, $key:tt, $key_text:tt, $parsed:tt) => {
            query_as!(
                SealedRow,
                "select "
                    + $key_text
                    + " as \"key!\", t."
                    + $column
                    + " as \"sealed!\"
                 from "
                    + $table
                    + " t"
                    + $join
                    + "
                 where t."
                    + $column
                    + " is not null and substring(t."
                    + $column
                    + " from 1 for 8) <> $1
                   and ($2::text is null or "
                    + $key
                    + " > (select "
                    + $parsed
                    + " from (select $2::text) as k (key)))
                 order by "
                    + $key
                    + " limit $3",
                header,
                after,
                limit,
            )
            .fetch_all(conn)
            .await?
        };
    }
    Ok(for_column!(column, list))
}

/// Replaces the values of these rows that are still `old` and that no other transaction has locked. Returns how many.
pub(super) async fn replace(
    conn: &mut Conn,
    column: SealedColumn,
    row_keys: &[String],
    old: &[Vec<u8>],
    new: &[Vec<u8>],
) -> Result<u64, Error> {
    macro_rules! update {
        ($table:tt, $join:tt, $column:tt, $key:tt, $key_text:tt, $parsed:tt) => {
            query!(
                "with locked as (
                   select t.ctid as position, k.new
                   from unnest($1::text[], $2::bytea[], $3::bytea[]) as k (key, old, new)
                   join "
                    + $table
                    + " t on "
                    + $key
                    + " = ("
                    + $parsed
                    + ") and t."
                    + $column
                    + " = k.old
                   for no key update of t skip locked)
                 update "
                    + $table
                    + " t set "
                    + $column
                    + " = locked.new from locked where t.ctid = locked.position",
                row_keys,
                old,
                new,
            )
            .execute(conn)
            .await?
        };
    }
    Ok(for_column!(column, update).rows_affected())
}
