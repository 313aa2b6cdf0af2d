//! Restrictions on webhooks: which URLs they may target, and which forms a caller may subscribe them to.

use domain::addresses::Target;
use domain::scopes::Resource;
use domain::{FieldError, Listed};
use store::webhooks::{MappingConflict, MappingScope, Webhook, find_mapping_conflict, list_webhooks};
use store::{Conn, ListFilter};
use uuid::Uuid;
use web::{Code, Problem};

use super::views::find;
use crate::App;
use crate::call::Call;

/// The field error for a URL that the outgoing guard always refuses. The guard checks a host name's addresses on each
/// delivery.
pub(super) fn check_address(app: &App, url: Option<&str>) -> Option<FieldError> {
    let refusal = outbound::check_target(url?, &app.outbound_allow).err()?;
    Some(FieldError::new("url", "refused", format!("url can't be delivered to: {refusal}")))
}

/// Rejects a URL that this installation itself serves: its deliveries could cause their own events.
pub(super) async fn check_not_own(
    app: &App,
    conn: &mut Conn,
    field: &str,
    url: Option<&str>,
) -> Result<(), Problem> {
    let is_own = match url.map_or(Target::Foreign, |url| app.addresses.target_of(url)) {
        Target::Own => true,
        Target::Foreign => false,
        Target::OwnIfVerified(host) => store::domains::is_verified(conn, &host).await?,
    };
    if !is_own {
        return Ok(());
    }
    let message = format!(
        "{field} is an address of this service, so that deliveries could call each other without end; use the address of \
         your own receiver"
    );
    Err(Problem::validation(vec![FieldError::new(field, "own_address", message)]))
}

/// A caller restricted to a folder or to listed forms can't subscribe a webhook to others. `None` means all forms.
pub(super) async fn check_forms<S>(
    call: &Call<S>,
    conn: &mut Conn,
    form_ids: Option<&[Uuid]>,
) -> Result<(), Problem> {
    match form_ids {
        Some(ids) => call.check_ids(conn, Resource::Forms, ids).await,
        None => {
            call.check_whole_account(Resource::Webhooks)?;
            call.check_new(Resource::Forms)
        }
    }
}

/// Applies the same check to an existing webhook: a caller that may not subscribe to its forms may not redirect,
/// re-sign or delete it either.
pub(super) async fn check_existing<S>(
    call: &Call<S>,
    webhook: &Webhook,
    conn: &mut Conn,
) -> Result<(), Problem> {
    check_forms(call, conn, (!webhook.all_forms).then_some(&webhook.form_ids)).await
}

/// Checks that the caller may see and cause the deliveries of a webhook.
pub(in crate::api) async fn check_deliveries<S>(
    call: &Call<S>,
    conn: &mut Conn,
    webhook_id: Uuid,
) -> Result<Webhook, Problem> {
    call.check_id(conn, Resource::Webhooks, webhook_id).await?;
    let webhook = find(call, conn, webhook_id).await?;
    check_existing(call, &webhook, conn).await?;
    Ok(webhook)
}

/// Webhooks read at a time.
const BATCH: i64 = 200;

/// Returns the webhooks with deliveries that the caller may see; `None` for all.
pub(in crate::api) async fn list_visible<S>(
    call: &Call<S>,
    conn: &mut Conn,
) -> Result<Option<Vec<Uuid>>, Problem> {
    let restrictions = call.restrictions();
    let limiting = [Resource::Webhooks, Resource::Forms];
    if restrictions.folder_id.is_none() && limiting.iter().all(|kind| restrictions.ids_of(*kind).is_none()) {
        return Ok(None);
    }
    let ids = restrictions.ids_of(Resource::Webhooks).map(|ids| ids.iter().copied().collect());
    let mut filter =
        ListFilter { folder_id: restrictions.folder_id, ids, after: None, newest_first: false, limit: BATCH };
    let mut visible = Vec::new();
    loop {
        let batch = list_webhooks(conn, call.account_id, &filter).await?;
        filter.after = batch.rows.last().map(Listed::cursor);
        for webhook in batch.rows {
            if call.covers_forms_of(conn, &webhook).await? {
                visible.push(webhook.id);
            }
        }
        if !batch.has_more {
            return Ok(Some(visible));
        }
    }
}

/// Rejects deliveries to a disabled webhook, including manual ones.
pub(super) fn check_is_active(webhook: &Webhook) -> Result<(), Problem> {
    if webhook.is_active {
        return Ok(());
    }
    let problem = Problem::new(Code::Conflict, "this webhook is disabled, so nothing is delivered to it");
    Err(problem.hint("enable it: PATCH /api/webhooks/{id} with {\"isActive\": true}"))
}

/// Rejects a webhook that gives two fields of one of its forms the same name: one of the answers would be lost.
pub(super) async fn check_mapping(
    conn: &mut Conn,
    account_id: Uuid,
    webhook_id: Uuid,
) -> Result<(), Problem> {
    let found = find_mapping_conflict(conn, account_id, MappingScope::Webhook(webhook_id)).await?;
    let Some(MappingConflict { form_name, renamed, other, target, .. }) = found else { return Ok(()) };
    let message = format!(
        "the form {form_name} has the fields `{renamed}` and `{other}`, and both would be called `{target}`, so one of \
         the two answers would be lost"
    );
    let error = FieldError::new(format!("fieldMapping.{renamed}"), "name_taken", message);
    Err(Problem::validation(vec![error]).hint("choose a name that no other field of the webhook's forms has"))
}
