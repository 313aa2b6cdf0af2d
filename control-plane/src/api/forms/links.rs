//! Links from a form to webhooks that receive its submissions, and to the page that gets an entry for each.

use std::collections::BTreeSet;

use domain::FieldError;
use domain::scopes::{Action, Resource};
use store::Conn;
use store::webhooks::{find_webhook, link_webhooks, list_links, unlink_webhooks};
use uuid::Uuid;
use web::{Code, Problem};

use crate::api::assets::check_page;
use crate::call::Call;

impl<S> Call<S> {
    /// Returns the links of forms as (form, webhook) pairs, for webhooks that the caller may access.
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

    /// Links a form to exactly these webhooks. Linking one changes what it receives, so the caller must be allowed to edit it.
    /// Links to webhooks that the caller can't edit stay.
    pub(super) async fn relink(
        &self,
        conn: &mut Conn,
        form_id: Uuid,
        webhook_ids: &[Uuid],
    ) -> Result<(), Problem> {
        self.require_scope(Resource::Webhooks, Action::Update)?;
        self.check_ids(conn, Resource::Webhooks, webhook_ids).await?;
        let requested: BTreeSet<Uuid> = webhook_ids.iter().copied().collect();
        let linked = self.visible_links(conn, &[form_id]).await?;
        let linked: BTreeSet<Uuid> = linked.into_iter().map(|(_, webhook_id)| webhook_id).collect();
        let added: Vec<Uuid> = requested.difference(&linked).copied().collect();
        for id in &added {
            if !self.may_edit_webhook(conn, *id).await? {
                return Err(not_editable());
            }
        }
        let mut removed = Vec::new();
        for id in linked.difference(&requested) {
            if self.may_edit_webhook(conn, *id).await? {
                removed.push(*id);
            }
        }
        if !added.is_empty() {
            link_webhooks(conn, self.account_id, form_id, &added).await?;
        }
        if !removed.is_empty() {
            unlink_webhooks(conn, self.account_id, form_id, &removed).await?;
        }
        Ok(())
    }

    /// Returns whether the caller may edit a webhook, as its own endpoints check.
    async fn may_edit_webhook(&self, conn: &mut Conn, id: Uuid) -> Result<bool, Problem> {
        let webhook = find_webhook(conn, self.account_id, id).await?;
        let webhook = webhook.ok_or_else(|| Problem::not_found("webhook"))?;
        self.covers_forms_of(conn, &webhook).await
    }

    /// Checks that the caller may link the page to a form, and that it has an entry template.
    pub(super) async fn check_entry_page(&self, conn: &mut Conn, page_id: Uuid) -> Result<(), Problem> {
        self.require_scope(Resource::Entries, Action::Create)?;
        self.check_id(conn, Resource::Pages, page_id).await?;
        let page = store::pages::find_page(conn, self.account_id, page_id).await?;
        let page = page.ok_or_else(|| Problem::not_found("page"))?;
        if page.content.entry_template.is_some() {
            return Ok(());
        }
        let message = "the page has no entryTemplate to render entries with";
        let error = FieldError::new("autoEntryPageId", "no_template", message);
        Err(Problem::validation(vec![error]).hint("set one with PUT /api/pages/{id}"))
    }

    /// Checks that the caller may read the asset, which visitors will see, and that it is an image.
    pub(super) async fn check_logo(&self, conn: &mut Conn, asset_id: Uuid) -> Result<(), Problem> {
        self.require_scope(Resource::Assets, Action::Read)?;
        let asset = store::assets::find_asset(conn, self.account_id, asset_id).await?;
        let asset = asset.ok_or_else(|| Problem::not_found("asset"))?;
        check_page(self, conn, asset.page_id).await?;
        if asset.content_type.starts_with("image/") {
            return Ok(());
        }
        let message = format!("appearance.logoAssetId must be an image, not {}", asset.content_type);
        Err(Problem::validation(vec![FieldError::new("appearance.logoAssetId", "not_an_image", message)]))
    }
}

fn not_editable() -> Problem {
    let detail = "this API key can't link a webhook that receives events of forms outside the key's own";
    Problem::new(Code::InsufficientScope, detail)
        .hint("create another webhook for this form, or use a key without restrictions")
}
