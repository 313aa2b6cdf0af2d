//! What a form is tied to: webhooks that are told of its submissions, and the page that gets an entry of each.

use std::collections::BTreeSet;

use domain::Complaint;
use domain::scopes::{Action, Resource};
use store::Conn;
use store::webhooks::{link_webhooks, list_links, unlink_webhooks};
use uuid::Uuid;
use web::Problem;

use crate::call::Call;

impl<S> Call<S> {
    /// Links of forms to webhooks, as pairs, as far as the webhooks are within the caller's reach.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn visible_links(
        &self,
        conn: &mut Conn,
        form_ids: &[Uuid],
    ) -> Result<Vec<(Uuid, Uuid)>, Problem> {
        let links = list_links(conn, self.account_id, form_ids).await?;
        let webhooks: Vec<Uuid> = links.iter().map(|(_, webhook_id)| *webhook_id).collect();
        if webhooks.is_empty() {
            return Ok(links);
        }
        let visible = self.list_allowed(conn, Resource::Webhooks, &webhooks).await?;
        Ok(links.into_iter().filter(|(_, webhook_id)| visible.contains(webhook_id)).collect())
    }

    /// Links a form to these webhooks and no others. Those that the caller can't see stay linked.
    ///
    /// # Errors
    /// The key may not change webhooks, or one is not the account's, or out of the key's reach.
    pub(super) async fn relink(
        &self,
        conn: &mut Conn,
        form_id: Uuid,
        wanted: &[Uuid],
    ) -> Result<(), Problem> {
        self.require_scope(Resource::Webhooks, Action::Update)?;
        self.check_ids(conn, Resource::Webhooks, wanted).await?;
        let wanted: BTreeSet<Uuid> = wanted.iter().copied().collect();
        let linked = self.visible_links(conn, &[form_id]).await?;
        let linked: BTreeSet<Uuid> = linked.into_iter().map(|(_, webhook_id)| webhook_id).collect();
        let added: Vec<Uuid> = wanted.difference(&linked).copied().collect();
        let dropped: Vec<Uuid> = linked.difference(&wanted).copied().collect();
        if !added.is_empty() {
            link_webhooks(conn, self.account_id, form_id, &added).await?;
        }
        if !dropped.is_empty() {
            unlink_webhooks(conn, self.account_id, form_id, &dropped).await?;
        }
        Ok(())
    }

    /// A page may get an entry of each submission of a form.
    ///
    /// # Errors
    /// The key may not make entries, or the page is not the account's, or out of the key's reach, or has no template.
    pub(super) async fn check_entry_page(&self, conn: &mut Conn, page_id: Uuid) -> Result<(), Problem> {
        self.require_scope(Resource::Entries, Action::Create)?;
        self.check_id(conn, Resource::Pages, page_id).await?;
        let page = store::pages::find_page(conn, self.account_id, page_id).await?;
        let page = page.ok_or_else(|| Problem::not_found("page"))?;
        if page.content.entry_template.is_some() {
            return Ok(());
        }
        let message = "the page has no entryTemplate to show entries by";
        let complaint = Complaint::new("autoEntryPageId", "no_template", message);
        Err(Problem::validation(vec![complaint]).hint("give it one with PUT /api/pages/{id}"))
    }
}
