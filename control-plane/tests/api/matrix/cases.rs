//! The rows of the matrix: a valid call of every endpoint. If a request has several ids, each has a row
//! in which it is inside or outside the caller's restrictions.

use std::sync::atomic::{AtomicU32, Ordering};

use domain::scopes::Resource::{
    Analytics, Automations, Domains, Folders, Forms, Keys, Pages, Subdomains, Webhooks,
};
use serde_json::{Value, json};
use service::Clock;
use uuid::Uuid;

use super::case::CallSubject::{Account, Creates, First, Lists, Names, NamesAmongOthers, Nothing};
use super::case::{Case, RecordedRequest};

fn path(id: Uuid, body: Value) -> RecordedRequest {
    RecordedRequest { id: Some(id), inner: None, query: String::new(), body }
}

fn body(body: Value) -> RecordedRequest {
    RecordedRequest { id: None, inner: None, query: String::new(), body }
}

fn query(text: String) -> RecordedRequest {
    RecordedRequest { id: None, inner: None, query: text, body: Value::Null }
}

fn nothing() -> RecordedRequest {
    body(Value::Null)
}

/// A new name.
fn fresh(word: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{word}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

fn page() -> Value {
    json!({"slug": fresh("page"), "title": "T", "html": "x"})
}

fn pages() -> Value {
    json!({"pages": [page()]})
}

fn asset() -> Value {
    json!({"filename": "a.png", "contentType": "image/png", "sizeBytes": 1})
}

fn form() -> Value {
    json!({"name": "F", "fields": [{"name": "email", "label": "E-mail", "type": "email"}]})
}

fn hook() -> Value {
    json!({"url": "https://example.com/hook"})
}

fn site() -> Value {
    json!({"name": "S"})
}

fn automation() -> Value {
    let steps = json!([{"id": "end", "type": "stop", "status": "success"}]);
    json!({"name": "A", "slug": fresh("automation"), "trigger": {"type": "http"}, "steps": steps})
}

fn entry_step(page: Uuid) -> Value {
    json!([{"id": "entry", "type": "create_entry", "pageId": page, "data": {"a": "x"}}])
}

fn custom_domain() -> Value {
    json!({"domain": format!("{}.example.org", fresh("www"))})
}

fn key() -> Value {
    json!({"label": "K"})
}

/// `object` with an additional member.
fn with(mut object: Value, member: &str, value: Value) -> Value {
    object[member] = value;
    object
}

fn item(kind: &str, id: Uuid) -> Value {
    json!({"resources": [{"type": kind, "id": id}]})
}

/// All rows.
pub(super) fn all() -> Vec<Case> {
    let row = |operation, position, subject, build_request| Case {
        operation,
        position,
        subject,
        consumes: false,
        build_request,
    };
    let last = |operation, position, subject, build_request| Case {
        operation,
        position,
        subject,
        consumes: true,
        build_request,
    };
    vec![
        row("trial.create", "", Nothing, |_, _| nothing()),
        row("launch.create", "", Creates(Pages), |_, _| body(with(pages(), "analytics", json!(false)))),
        row("launch.create", "no subdomainId", First(Subdomains), |_, _| {
            body(with(pages(), "analytics", json!(false)))
        }),
        row("launch.create", "body.subdomainId", Names(Subdomains), |_, it| {
            body(with(with(pages(), "analytics", json!(false)), "subdomainId", json!(it.subdomain)))
        }),
        last("launch.create", "body.subdomain", First(Subdomains), |_, _| {
            body(with(with(pages(), "analytics", json!(false)), "subdomain", json!(fresh("launched"))))
        }),
        last("launch.create", "with analytics", Creates(Analytics), |_, _| body(pages())),
        row("pipeline.create", "", Creates(Forms), |_, _| body(form())),
        row("pipeline.create", "body.notify", Creates(Webhooks), |_, _| {
            let slack = "https://hooks.slack.com/services/T0/B0/x";
            body(with(form(), "notify", json!({"slack": slack})))
        }),
        row("pipeline.create", "body.autoEntryPageId", Names(Pages), |_, it| {
            body(with(form(), "autoEntryPageId", json!(it.page)))
        }),
        row("status.read", "", Account, |_, _| nothing()),
        row("account.read", "", Account, |_, _| nothing()),
        row("activity.list", "", Account, |_, _| nothing()),
        row("activity.export", "", Account, |_, _| nothing()),
        row("sessions.current", "", Account, |_, _| nothing()),
        row("sessions.list", "", Account, |_, _| nothing()),
        row("sessions.delete", "", Account, |_, _| path(Uuid::nil(), Value::Null)),
        row("account.update", "", Account, |_, _| body(json!({"timezone": "UTC"}))),
        row("account.usage", "", Account, |_, _| nothing()),
        row("account.plans", "", Account, |_, _| nothing()),
        row("account.upgrade", "", Account, |_, _| body(json!({"plan": "scale"}))),
        row("account.claim_link", "", Account, |_, _| nothing()),
        row("help.create", "", Account, |_, _| {
            body(json!({"category": "Help", "subject": "How?", "message": "Tell me."}))
        }),
        row("keys.list", "", Lists(Keys), |_, _| query("?limit=100".to_owned())),
        row("keys.create", "", Creates(Keys), |_, _| body(key())),
        row("keys.create", "body.folderId", Names(Folders), |_, it| {
            body(with(key(), "folderId", json!(it.folder)))
        }),
        row("keys.create", "body.resourceIds", Names(Pages), |_, it| {
            body(with(key(), "resourceIds", json!({"pages": [it.page]})))
        }),
        row("keys.rotate", "", Names(Keys), |_, it| path(it.key, Value::Null)),
        last("keys.revoke", "", Names(Keys), |_, it| path(it.key, Value::Null)),
        row("subdomains.first", "", First(Subdomains), |_, _| nothing()),
        last("subdomains.rename", "", First(Subdomains), |_, _| body(json!({"subdomain": fresh("renamed")}))),
        row("subdomains.list", "", Lists(Subdomains), |_, _| nothing()),
        row("subdomains.create", "", Creates(Subdomains), |_, _| body(json!({"name": fresh("new")}))),
        row("domains.list", "", Lists(Domains), |_, _| nothing()),
        row("domains.create", "", Creates(Domains), |_, _| body(custom_domain())),
        row("domains.create", "no subdomainId", First(Subdomains), |_, _| body(custom_domain())),
        row("domains.create", "body.subdomainId", Names(Subdomains), |_, it| {
            body(with(custom_domain(), "subdomainId", json!(it.subdomain)))
        }),
        row("domains.read", "", Names(Domains), |_, it| path(it.domain, Value::Null)),
        row("domains.check", "", Names(Domains), |_, it| path(it.domain, Value::Null)),
        row("domains.update", "", Names(Domains), |own, it| {
            path(it.domain, json!({"subdomainId": own.subdomain}))
        }),
        row("domains.update", "body.subdomainId", Names(Subdomains), |own, it| {
            path(own.domain, json!({"subdomainId": it.subdomain}))
        }),
        last("domains.delete", "", Names(Domains), |_, it| path(it.domain, Value::Null)),
        row("folders.list", "", Lists(Folders), |_, _| nothing()),
        row("folders.create", "", Creates(Folders), |_, _| body(json!({"name": "F"}))),
        row("folders.read", "", Names(Folders), |_, it| path(it.folder, Value::Null)),
        row("folders.read", "with resources", Names(Folders), |_, it| RecordedRequest {
            query: "?include=resources".to_owned(),
            ..path(it.folder, Value::Null)
        }),
        row("folders.update", "", Names(Folders), |_, it| path(it.folder, json!({"name": "F"}))),
        last("folders.delete", "", Names(Folders), |_, it| path(it.folder, Value::Null)),
        row("folders.organize", "", Names(Folders), |own, it| path(it.folder, item("page", own.page))),
        row("folders.organize", "body.resources", NamesAmongOthers(Pages), |own, it| {
            path(own.folder, item("page", it.page))
        }),
        row("folders.organize", "body.resources", NamesAmongOthers(Forms), |own, it| {
            path(own.folder, item("form", it.form))
        }),
        row("folders.organize", "body.resources", NamesAmongOthers(Analytics), |own, it| {
            path(own.folder, item("analytics", it.site))
        }),
        row("folders.organize", "body.resources", NamesAmongOthers(Automations), |own, it| {
            path(own.folder, item("automation", it.automation))
        }),
        last("folders.ungroup", "", Names(Folders), |own, it| path(it.folder, item("page", own.page))),
        last("folders.ungroup", "body.resources", NamesAmongOthers(Pages), |own, it| {
            path(own.folder, item("page", it.page))
        }),
        row("assets.list", "", Lists(Pages), |_, _| nothing()),
        row("assets.list", "?pageId", Names(Pages), |_, it| query(format!("?pageId={}", it.page))),
        row("assets.create", "", Creates(Pages), |_, _| body(asset())),
        row("assets.create", "body.pageId", Names(Pages), |_, it| {
            body(with(asset(), "pageId", json!(it.page)))
        }),
        last("assets.delete", "", Names(Pages), |_, it| path(it.asset, Value::Null)),
        row("deploys.create", "", Account, |_, _| body(json!({"sizeBytes": 1}))),
        row("deploys.list", "", Lists(Subdomains), |_, _| query("?limit=100".to_owned())),
        row("deploys.read", "", Names(Subdomains), |_, it| path(it.deploy, Value::Null)),
        last("deploys.process", "no subdomainId", First(Subdomains), |own, _| path(own.zip, Value::Null)),
        last("deploys.process", "body.subdomainId", Names(Subdomains), |own, it| {
            path(own.zip, json!({"subdomainId": it.subdomain}))
        }),
        last("deploys.process", "of new pages", Creates(Pages), |own, _| path(own.zip, Value::Null)),
        last("deploys.publish", "", Names(Subdomains), |_, it| path(it.preview, Value::Null)),
        last("deploys.delete", "", Names(Subdomains), |_, it| path(it.preview, Value::Null)),
        last("deploys.rollback", "", Names(Subdomains), |_, it| path(it.deploy, Value::Null)),
        row("pages.list", "", Lists(Pages), |_, _| nothing()),
        row("pages.list", "?folderId", Names(Folders), |_, it| query(format!("?folderId={}", it.folder))),
        row("pages.create", "", Creates(Pages), |_, _| body(page())),
        row("pages.create", "no subdomainId", First(Subdomains), |_, _| body(page())),
        row("pages.create", "body.subdomainId", Names(Subdomains), |_, it| {
            body(with(page(), "subdomainId", json!(it.subdomain)))
        }),
        row("pages.create", "body.folderId", Names(Folders), |_, it| {
            body(with(page(), "folderId", json!(it.folder)))
        }),
        row("pages.read", "", Names(Pages), |_, it| path(it.page, Value::Null)),
        row("pages.update", "", Names(Pages), |_, it| path(it.page, json!({"title": "T"}))),
        row("pages.update", "body.folderId", Names(Folders), |own, it| {
            path(own.page, json!({"folderId": it.folder}))
        }),
        last("pages.update", "folderId null", Names(Pages), |_, it| path(it.page, json!({"folderId": null}))),
        last("pages.delete", "", Names(Pages), |_, it| path(it.page, Value::Null)),
        row("pages.batch", "", Creates(Pages), |_, _| body(pages())),
        row("pages.batch", "no subdomainId", First(Subdomains), |_, _| body(pages())),
        row("pages.batch", "body.subdomainId", Names(Subdomains), |_, it| {
            body(with(pages(), "subdomainId", json!(it.subdomain)))
        }),
        row("pages.batch", "body.folderId", Names(Folders), |_, it| {
            body(with(pages(), "folderId", json!(it.folder)))
        }),
        last("pages.delete_batch", "body.pageIds", NamesAmongOthers(Pages), |_, it| {
            body(json!({"pageIds": [it.page]}))
        }),
        row("entries.create", "", Names(Pages), |_, it| path(it.page, json!({"data": {"a": "x"}}))),
        row("entries.list", "", Names(Pages), |_, it| path(it.page, Value::Null)),
        last("entries.delete", "", Names(Pages), |_, it| RecordedRequest {
            inner: Some(it.entry),
            ..path(it.page, Value::Null)
        }),
        row("entries.archives", "", Account, |_, _| nothing()),
        row("entries.restore", "", Names(Pages), |own, it| path(it.page, json!({"archiveId": own.archive}))),
        row("entries.restore", "body.archiveId", Names(Pages), |own, it| {
            path(own.page, json!({"archiveId": it.archive}))
        }),
        row("versions.list", "", Names(Pages), |_, it| path(it.page, Value::Null)),
        row("versions.read", "", Names(Pages), |_, it| RecordedRequest {
            inner: Some(it.version),
            ..path(it.page, Value::Null)
        }),
        row("versions.rollback", "", Names(Pages), |_, it| path(it.page, json!({"versionId": it.version}))),
        row("forms.list", "", Lists(Forms), |_, _| nothing()),
        row("forms.list", "?folderId", Names(Folders), |_, it| query(format!("?folderId={}", it.folder))),
        row("forms.create", "", Creates(Forms), |_, _| body(form())),
        row("forms.create", "body.folderId", Names(Folders), |_, it| {
            body(with(form(), "folderId", json!(it.folder)))
        }),
        last("forms.create", "body.webhookIds", Names(Webhooks), |_, it| {
            body(with(form(), "webhookIds", json!([it.webhook])))
        }),
        row("forms.create", "body.autoEntryPageId", Names(Pages), |_, it| {
            body(with(form(), "autoEntryPageId", json!(it.page)))
        }),
        row("forms.update", "", Names(Forms), |_, it| path(it.form, json!({"name": "F"}))),
        row("forms.update", "body.folderId", Names(Folders), |own, it| {
            path(own.form, json!({"folderId": it.folder}))
        }),
        last("forms.update", "folderId null", Names(Forms), |_, it| path(it.form, json!({"folderId": null}))),
        last("forms.update", "body.webhookIds", Names(Webhooks), |own, it| {
            path(own.form, json!({"webhookIds": [it.webhook]}))
        }),
        row("forms.update", "body.autoEntryPageId", Names(Pages), |own, it| {
            path(own.form, json!({"autoEntryPageId": it.page}))
        }),
        row("forms.read", "", Names(Forms), |_, it| path(it.form, Value::Null)),
        last("forms.delete", "", Names(Forms), |_, it| path(it.form, Value::Null)),
        row("submissions.list", "", Names(Forms), |_, it| path(it.form, Value::Null)),
        row("submissions.export", "", Names(Forms), |_, it| path(it.form, Value::Null)),
        row("submissions.delete", "", Names(Forms), |_, it| RecordedRequest {
            query: "?email=ana@example.com".to_owned(),
            ..path(it.form, Value::Null)
        }),
        row("submissions.results", "", Names(Forms), |_, it| path(it.form, Value::Null)),
        row("submissions.read", "", Names(Forms), |_, it| RecordedRequest {
            inner: Some(it.submission),
            ..path(it.form, Value::Null)
        }),
        row("system.schema", "", Nothing, |_, _| nothing()),
        row("workflows.list", "", Nothing, |_, _| nothing()),
        // Presets have names instead of ids.
        row("workflows.read", "", Nothing, |_, _| query("contact".to_owned())),
        row("workflows.create", "", Creates(Forms), |_, _| query("contact".to_owned())),
        row("submissions.upsert", "", Names(Forms), |_, it| {
            path(it.form, json!({"externalId": "known", "payload": {"email": "a@b.co"}}))
        }),
        row("submissions.update", "", Names(Forms), |_, it| RecordedRequest {
            inner: Some(it.submission),
            ..path(it.form, json!({"payload": {"email": "a@b.co"}}))
        }),
        row("submissions.mark", "", Names(Forms), |_, it| RecordedRequest {
            inner: Some(it.submission),
            ..path(it.form, json!({"status": "received"}))
        }),
        last("submissions.delete_one", "", Names(Forms), |_, it| RecordedRequest {
            inner: Some(it.submission),
            ..path(it.form, Value::Null)
        }),
        row("webhooks.list", "", Lists(Webhooks), |_, _| nothing()),
        row("webhooks.create", "", Creates(Webhooks), |own, _| {
            body(with(hook(), "formIds", json!([own.form])))
        }),
        row("webhooks.create", "no formIds", Creates(Forms), |_, _| body(hook())),
        row("webhooks.create", "formIds []", Creates(Forms), |_, _| body(with(hook(), "formIds", json!([])))),
        row("webhooks.create", "body.formIds", Names(Forms), |_, it| {
            body(with(hook(), "formIds", json!([it.form])))
        }),
        row("webhooks.read", "", Names(Webhooks), |_, it| path(it.webhook, Value::Null)),
        row("webhooks.update", "", Names(Webhooks), |_, it| path(it.webhook, json!({"description": "D"}))),
        row("webhooks.test", "", Names(Webhooks), |_, it| path(it.webhook, Value::Null)),
        row("webhooks.rotate_secret", "", Names(Webhooks), |_, it| path(it.webhook, Value::Null)),
        last("webhooks.delete", "", Names(Webhooks), |_, it| path(it.webhook, Value::Null)),
        row("deliveries.list", "", Names(Webhooks), |_, it| path(it.webhook, Value::Null)),
        row("deliveries.list_all", "", Account, |_, _| nothing()),
        row("deliveries.list_all", "?webhookId", Names(Webhooks), |_, it| {
            query(format!("?webhookId={}", it.webhook))
        }),
        row("deliveries.read", "", Names(Webhooks), |_, it| RecordedRequest {
            inner: Some(it.delivery),
            ..nothing()
        }),
        row("deliveries.retry", "", Names(Webhooks), |_, it| RecordedRequest {
            inner: Some(it.delivery),
            ..path(it.webhook, Value::Null)
        }),
        row("deliveries.retry_failed", "", Names(Webhooks), |_, it| {
            path(it.webhook, json!({"since": Clock::system().now()}))
        }),
        row("analytics.list", "", Lists(Analytics), |_, _| nothing()),
        row("analytics.list", "?folderId", Names(Folders), |_, it| query(format!("?folderId={}", it.folder))),
        row("analytics.create", "", Creates(Analytics), |_, _| body(site())),
        row("analytics.create", "body.folderId", Names(Folders), |_, it| {
            body(with(site(), "folderId", json!(it.folder)))
        }),
        last("analytics.create", "body.subdomainId", Names(Subdomains), |_, it| {
            body(with(site(), "subdomainId", json!(it.subdomain)))
        }),
        last("analytics.create", "of all its pages", Creates(Pages), |own, _| {
            body(with(site(), "subdomainId", json!(own.subdomain)))
        }),
        row("analytics.read", "", Names(Analytics), |_, it| path(it.site, Value::Null)),
        row("analytics.update", "", Names(Analytics), |_, it| {
            path(it.site, json!({"timezone": "Europe/Berlin"}))
        }),
        row("analytics.query", "?siteId", Names(Analytics), |_, it| query(format!("?siteId={}", it.site))),
        row("analytics.overview", "?siteId", Names(Analytics), |_, it| query(format!("?siteId={}", it.site))),
        row("analytics.realtime", "?siteId", Names(Analytics), |_, it| query(format!("?siteId={}", it.site))),
        row("analytics.sessions", "?siteId", Names(Analytics), |_, it| query(format!("?siteId={}", it.site))),
        row("analytics.funnel", "body.siteId", Names(Analytics), |_, it| {
            let steps = json!([{"event": "page_view"}, {"event": "sign up"}]);
            body(json!({"siteId": it.site, "steps": steps}))
        }),
        row("analytics.drop_off", "body.siteId", Names(Analytics), |_, it| {
            let steps = json!([{"event": "page_view"}, {"event": "sign up"}]);
            body(json!({"siteId": it.site, "steps": steps, "step": 2}))
        }),
        row("analytics.retention", "body.siteId", Names(Analytics), |_, it| body(json!({"siteId": it.site}))),
        last("analytics.delete", "", Names(Analytics), |_, it| path(it.site, Value::Null)),
        row("automations.list", "", Lists(Automations), |_, _| nothing()),
        row("automations.list", "?folderId", Names(Folders), |_, it| {
            query(format!("?folderId={}", it.folder))
        }),
        row("automations.create", "", Creates(Automations), |_, _| body(automation())),
        row("automations.create", "body.folderId", Names(Folders), |_, it| {
            body(with(automation(), "folderId", json!(it.folder)))
        }),
        row("automations.create", "body.steps", Names(Pages), |_, it| {
            body(with(automation(), "steps", entry_step(it.page)))
        }),
        row("automations.create", "body.trigger", Names(Forms), |_, it| {
            let trigger = json!({"type": "form_submission", "formId": it.form});
            body(with(automation(), "trigger", trigger))
        }),
        row("automations.read", "", Names(Automations), |_, it| path(it.automation, Value::Null)),
        row("automations.update", "", Names(Automations), |_, it| path(it.automation, json!({"name": "B"}))),
        row("automations.update", "body.folderId", Names(Folders), |own, it| {
            path(own.automation, json!({"folderId": it.folder}))
        }),
        last("automations.update", "folderId null", Names(Automations), |_, it| {
            path(it.automation, json!({"folderId": null}))
        }),
        last("automations.update", "body.steps", Names(Pages), |own, it| {
            path(own.automation, json!({"steps": entry_step(it.page)}))
        }),
        row("automations.logs", "", Names(Automations), |_, it| path(it.automation, Value::Null)),
        row("automations.test", "", Names(Automations), |_, it| {
            path(it.automation, json!({"triggerData": {"a": 1}}))
        }),
        row("automations.run", "", Names(Automations), |_, it| RecordedRequest {
            inner: Some(it.runs[0]),
            ..path(it.automation, Value::Null)
        }),
        last("automations.cancel", "", Names(Automations), |_, it| RecordedRequest {
            inner: Some(it.runs[0]),
            ..path(it.automation, Value::Null)
        }),
        row("automations.replay", "", Names(Automations), |_, it| RecordedRequest {
            inner: Some(it.runs[1]),
            ..path(it.automation, Value::Null)
        }),
        last("automations.delete", "", Names(Automations), |_, it| path(it.automation, Value::Null)),
    ]
}
