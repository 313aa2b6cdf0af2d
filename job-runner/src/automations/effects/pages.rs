//! `update_page`: the steps of `PUT /api/pages/{id}`, and with `upsert` those of `POST /api/pages`.

use automation::execution::{Failure, PageEdit};
use chrono::{DateTime, SecondsFormat, Utc};
use contract::Change;
use domain::pages::{self, Content, Publication, PublicationChange};
use domain::scopes::{Action, Resource, Scope};
use domain::timestamps;
use serde_json::{Map, Value, json};
use store::activity::ChangedResource;
use store::pages::{NewPage, PageChange};
use store::subdomains::Subdomain;
use store::usage::{self, Counter};
use uuid::Uuid;

use super::abort::Abort;
use super::abort::invalid;
use super::authority::{check_account, check_new, missing};
use super::transaction::Transaction;

const UPDATE: Scope = Scope::new(Resource::Pages, Action::Update);
const CREATE: Scope = Scope::new(Resource::Pages, Action::Create);

/// Changes or creates the page. The caller has locked the account's counters, so no other page takes the slug meanwhile.
pub(super) async fn edit(transaction: &mut Transaction<'_>, edit: &PageEdit) -> Result<Value, Abort> {
    check_values(edit)?;
    let Some(slug) = edit.slug.as_deref().filter(|_| edit.page_id.is_none()) else {
        let id = edit.page_id.ok_or_else(|| Failure::permanent("give pageId or slug"))?;
        return update(transaction, edit, id).await;
    };
    let subdomain = find_subdomain(transaction, edit.subdomain_id).await?;
    let account_id = transaction.context.account_id;
    let found = store::pages::find_id_by_slug(&mut transaction.tx, account_id, subdomain.id, slug).await?;
    match found {
        Some(id) => update(transaction, edit, id).await,
        None if edit.upsert => create(transaction, edit, &subdomain, slug).await,
        None => {
            let message =
                format!("the site {} has no page `{slug}`; `upsert: true` creates it", subdomain.name);
            Err(Failure::permanent(message).into())
        }
    }
}

fn check_values(edit: &PageEdit) -> Result<(), Failure> {
    let css = edit.css.as_ref().and_then(Option::as_deref);
    let template = edit.entry_template.as_ref().and_then(Option::as_deref);
    let mut errors = pages::check_content(edit.title.as_deref(), edit.html.as_deref(), css, template);
    if let Some(slug) = edit.slug.as_deref().filter(|_| edit.page_id.is_none()) {
        errors.extend(pages::check_slug(slug));
    }
    errors.extend(timestamps::check("publishAt", edit.publish_at.flatten()));
    if errors.is_empty() { Ok(()) } else { Err(invalid(&errors)) }
}

/// Returns the requested subdomain, by default the account's first.
async fn find_subdomain(
    transaction: &mut Transaction<'_>,
    requested: Option<Uuid>,
) -> Result<Subdomain, Abort> {
    let account_id = transaction.context.account_id;
    let found = store::subdomains::find_subdomain(&mut transaction.tx, account_id, requested).await?;
    let Some(found) = found else {
        let message = requested.map_or_else(
            || Failure::permanent("the account has no subdomain to publish to"),
            |id| missing(Resource::Subdomains, id),
        );
        return Err(message.into());
    };
    transaction.check(UPDATE, Resource::Subdomains, found.id).await?;
    Ok(found)
}

async fn update(transaction: &mut Transaction<'_>, edit: &PageEdit, id: Uuid) -> Result<Value, Abort> {
    transaction.check(UPDATE, Resource::Pages, id).await?;
    match edit.folder_id {
        None => {}
        Some(None) => check_account(&transaction.authority, Resource::Folders)?,
        Some(Some(folder_id)) => check_folder(transaction, UPDATE, folder_id).await?,
    }
    let (account_id, now) = (transaction.context.account_id, transaction.now);
    let tx = &mut transaction.tx;
    let updated_at = store::pages::lock_page(tx, account_id, id).await?;
    let updated_at = updated_at.ok_or_else(|| missing(Resource::Pages, id))?;
    if edit.if_unmodified_since.is_some_and(|since| since < updated_at) {
        let message = format!(
            "the page was changed at {}, after `ifUnmodifiedSince`; read it again and use its current updatedAt",
            millis(updated_at)
        );
        return Err(Failure::permanent(message).into());
    }
    let change = PageChange {
        title: edit.title.clone(),
        html: edit.html.clone(),
        css: edit.css.clone(),
        entry_template: edit.entry_template.clone(),
        metadata: None,
        publication: publication(edit),
        folder_id: edit.folder_id,
        deploy_id: None,
    };
    store::pages::update_page(tx, account_id, id, change, now).await?;
    let location = store::pages::find_location(tx, account_id, id).await?;
    let location = location.ok_or_else(|| missing(Resource::Pages, id))?;
    let slug = location.slug.clone();
    transaction.publish(location.into()).await?;
    output(transaction, id, &slug, false).await
}

async fn create(
    transaction: &mut Transaction<'_>,
    edit: &PageEdit,
    subdomain: &Subdomain,
    slug: &str,
) -> Result<Value, Abort> {
    check_new(&transaction.authority, CREATE)?;
    let (Some(title), Some(html)) = (edit.title.clone(), edit.html.clone()) else {
        let message =
            format!("there is no page `{slug}` yet, and to create it `title` and `html` are needed");
        return Err(Failure::permanent(message).into());
    };
    let folder_id = match edit.folder_id.flatten() {
        Some(folder_id) => {
            check_folder(transaction, CREATE, folder_id).await?;
            Some(folder_id)
        }
        None => transaction.authority.restrictions.folder_id,
    };
    let (context, now) = (transaction.context, transaction.now);
    let new = NewPage {
        id: context.state.rng.uuid_v7(now),
        folder_id,
        subdomain_id: subdomain.id,
        slug: slug.to_owned(),
        content: Content {
            title,
            html,
            css: edit.css.clone().flatten(),
            entry_template: edit.entry_template.clone().flatten(),
            metadata: Value::Object(Map::new()),
        },
        publication: Publication::NEW.apply(publication(edit), now),
        deploy_id: None,
        created_at: now,
    };
    if !store::pages::insert_page(&mut transaction.tx, context.account_id, &new).await? {
        return Err(Abort::Busy("another page took the slug meanwhile; run the step again"));
    }
    let limit = context.plan.limits().projects;
    if !usage::reserve(&mut transaction.tx, context.account_id, Counter::Projects, limit).await? {
        let plan = context.plan.as_str();
        let message = format!(
            "the {plan} plan allows {limit} projects, and all of them are used; delete unused ones, or upgrade: GET \
             /api/account/upgrade"
        );
        return Err(Failure::permanent(message).into());
    }
    let change = Change::Page { subdomain_id: subdomain.id, slug: slug.to_owned(), path: None };
    transaction.publish(change).await?;
    output(transaction, new.id, slug, true).await
}

/// Checks that a page may be moved to a folder, which must exist.
async fn check_folder(transaction: &mut Transaction<'_>, scope: Scope, id: Uuid) -> Result<(), Abort> {
    transaction.check(scope, Resource::Folders, id).await?;
    let (account_id, tx) = (transaction.context.account_id, &mut transaction.tx);
    let found = store::resources::list_resource_folders(tx, account_id, Resource::Folders, &[id]).await?;
    if found.is_empty() { Err(missing(Resource::Folders, id).into()) } else { Ok(()) }
}

fn publication(edit: &PageEdit) -> PublicationChange {
    PublicationChange { is_published: edit.is_published, publish_at: edit.publish_at }
}

async fn output(
    transaction: &mut Transaction<'_>,
    id: Uuid,
    slug: &str,
    created: bool,
) -> Result<Value, Abort> {
    let operation = if created { "pages.create" } else { "pages.update" };
    let page = ChangedResource { kind: Resource::Pages.as_str(), id, name: slug };
    transaction.record(operation, Some(page)).await?;
    let account_id = transaction.context.account_id;
    let updated_at = store::pages::lock_page(&mut transaction.tx, account_id, id).await?;
    Ok(json!({"id": id, "slug": slug, "created": created, "updatedAt": updated_at.map(millis)}))
}

/// Always three decimals, as in the API.
fn millis(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
