//! Mails about submissions to the owners of forms, with a quota per form.

use chrono::{DateTime, Utc};
use domain::answers::Answers;
use domain::fields::Field;
use domain::stored_fields::StoredFields;
use sqlx::query;
use sqlx::types::Json;
use uuid::Uuid;

use crate::{Conn, Error};

/// The content of a notification.
#[derive(Debug, Clone)]
pub struct Notification {
    pub to: String,
    /// Encrypted unsubscribe link; `None` for the account's owner, who can edit the form.
    pub sealed_link: Option<Vec<u8>>,
    pub form_id: Uuid,
    pub form_name: String,
    pub fields: Vec<Field>,
    pub payload: Answers,
    pub submitted_at: DateTime<Utc>,
}

/// The quota of a form's notifications.
#[derive(Debug, Clone, Copy)]
pub struct MailQuota {
    /// Maximum number of mails.
    pub mails: i64,
    /// A count that began earlier starts over.
    pub since: DateTime<Utc>,
    pub now: DateTime<Utc>,
}

/// The position of a mail in its form's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaPosition {
    /// It may be sent.
    Within,
    /// It may be sent and is the last one of the period that began then.
    Last(DateTime<Utc>),
    /// It may not be sent.
    Exceeded,
}

/// Returns the notification of a submission. `None` if the submission was deleted or is spam, if the form has no
/// notifications any more, or if the recipient has not confirmed.
pub async fn find_notification(
    conn: &mut Conn,
    account_id: Uuid,
    submission_id: Uuid,
) -> Result<Option<Notification>, Error> {
    let row = query!(
        r#"select f.id as form_id, f.name, f.fields as "fields: Json<StoredFields>",
                  s.payload as "payload: Json<Answers>", s.created_at, r.sealed_link as "sealed_link?",
                  f.notify_email as "to!"
           from submissions s join forms f on f.id = s.form_id
           left join mail_recipients r
               on r.account_id = f.account_id and r.address = lower(f.notify_email) and r.has_agreed
           left join (select a.account_id, lower(i.email) as email
                      from identity_accounts a join identities i on i.id = a.identity_id
                      where i.email_verified) own
               on own.account_id = f.account_id and own.email = lower(f.notify_email)
           where s.account_id = $1 and s.id = $2 and s.status <> 'spam' and f.notify_email is not null
             and (r.has_agreed or own.email is not null)"#,
        account_id,
        submission_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Notification {
        to: row.to,
        sealed_link: row.sealed_link,
        form_id: row.form_id,
        form_name: row.name,
        fields: row.fields.0.0,
        payload: row.payload.0,
        submitted_at: row.created_at,
    }))
}

/// Counts a submission's mail against its form's quota, once however often it is called; concurrent mails each get
/// their own position. On an error nothing is counted.
pub async fn reserve_mail(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    submission_id: Uuid,
    quota: &MailQuota,
) -> Result<QuotaPosition, Error> {
    let taken = query!(
        r#"with mail as materialized (
               select has_place from mails
               where kind = 'submission' and about = $4 and account_id = $1 for update
           ), counted as (
               insert into form_mails as m (form_id, since, mails, filled_by)
               select id, $3, 1, case when $5::bigint = 1 then $4::uuid end from forms, mail
               where account_id = $1 and id = $2 and not has_place
               on conflict (form_id) do update set
                   since = case when m.since <= $6 then $3 else m.since end,
                   mails = case when m.since <= $6 then 1 else m.mails + 1 end,
                   filled_by = case when case when m.since <= $6 then 1 else m.mails + 1 end = $5 then $4
                                    when m.since > $6 then m.filled_by end
               returning mails, since
           ), kept as (
               update mails set has_place = true
               where kind = 'submission' and about = $4 and exists (select from counted where mails <= $5)
           )
           select exists (select from mail where has_place) or exists (select from counted where mails <= $5)
                      as "has_place!",
                  coalesce((select since from counted where mails = $5),
                           (select since from form_mails where form_id = $2 and filled_by = $4)) as filled_since"#,
        account_id,
        form_id,
        quota.now,
        submission_id,
        quota.mails,
        quota.since,
    )
    .fetch_one(conn)
    .await?;
    Ok(match (taken.has_place, taken.filled_since) {
        (true, Some(since)) => QuotaPosition::Last(since),
        (true, None) => QuotaPosition::Within,
        (false, _) => QuotaPosition::Exceeded,
    })
}
