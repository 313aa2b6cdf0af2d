//! How far webhooks may reach: where they are sent, and of which forms a caller may have them told.

use domain::Complaint;
use domain::scopes::Resource;
use store::Conn;
use store::webhooks::Webhook;
use uuid::Uuid;
use web::Problem;

use crate::App;
use crate::call::Call;

/// Whether the outgoing guard would refuse an address whenever it is called. Where a name leads is only known then.
pub(super) fn check_address(app: &App, url: Option<&str>) -> Option<Complaint> {
    let refusal = outbound::check_target(url?, &app.outbound_allow).err()?;
    Some(Complaint::new("url", "refused", format!("url can't be delivered to: {refusal}")))
}

/// A caller who is kept to a folder or to listed forms has no webhook told of more. `None` is all forms.
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

/// The same of a webhook there is: who may not have it told of its forms must not send that elsewhere, sign it anew, or
/// end it.
pub(super) async fn check_heard<S>(
    call: &Call<S>,
    webhook: &Webhook,
    conn: &mut Conn,
) -> Result<(), Problem> {
    check_forms(call, conn, (!webhook.all_forms).then_some(&webhook.form_ids)).await
}
