//! An account with two resources of each kind: one inside a folder, one outside.

use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::{Resource, ScopeSet};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use service::{Clock, Rng};
use uuid::Uuid;

use crate::harness::Api;

/// One resource of each kind, in the same folder where the kind has folders.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resources {
    pub(super) folder: Uuid,
    pub(super) page: Uuid,
    /// An entry of the page.
    pub(super) entry: Uuid,
    /// The page's first version.
    pub(super) version: Uuid,
    /// The archive of a deleted page of the folder.
    pub(super) archive: Uuid,
    /// The archived page.
    pub(super) asset: Uuid,
    pub(super) form: Uuid,
    /// A submission of the form with the external id `known`.
    pub(super) submission: Uuid,
    pub(super) webhook: Uuid,
    /// A test delivery of the webhook.
    pub(super) delivery: Uuid,
    pub(super) site: Uuid,
    pub(super) automation: Uuid,
    /// A run of the automation that is under way, and one that has ended.
    pub(super) runs: [Uuid; 2],
    pub(super) subdomain: Uuid,
    pub(super) domain: Uuid,
    /// The deploy served on the subdomain.
    pub(super) deploy: Uuid,
    /// A preview of a site without files on the subdomain.
    pub(super) preview: Uuid,
    /// An uploaded deploy.
    pub(super) zip: Uuid,
    pub(super) key: Uuid,
}

/// A zip with one stored page, `index.html`.
const SITE: &[u8] = include_bytes!("site.zip");

impl Resources {
    /// The resource of this kind.
    pub(super) fn of(&self, kind: Resource) -> Uuid {
        match kind {
            Resource::Pages => self.page,
            Resource::Forms => self.form,
            Resource::Webhooks => self.webhook,
            Resource::Analytics => self.site,
            Resource::Automations => self.automation,
            Resource::Folders => self.folder,
            Resource::Subdomains => self.subdomain,
            Resource::Domains => self.domain,
            Resource::Keys => self.key,
            other => panic!("no {} here yet: add one", other.as_str()),
        }
    }
}

/// An account on the plan without limits.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) id: Uuid,
    /// A full key.
    pub(super) key: String,
    /// The resources in the folder, and the account's first subdomain.
    pub(super) inside: Resources,
    /// The resources in another folder, and another subdomain.
    pub(super) outside: Resources,
}

impl Account {
    /// Creates an account.
    pub(super) async fn create(api: &Api) -> Self {
        let (key, id) = api.trial_on(Plan::Scale).await;
        let (_, first) = api.send(Method::GET, "/api/account/subdomain", Some(&key), &Value::Null).await;
        let inside = resources(api, &key, id, id_in(&first, "id"), "inside").await;
        let name = format!("other-{}", &id.simple().to_string()[20..]);
        let second = create_resource(api, &key, "/api/account/subdomains", json!({"name": name}), "id").await;
        let outside = resources(api, &key, id, second, "outside").await;
        Self { id, key, inside, outside }
    }
}

async fn resources(api: &Api, key: &str, account_id: Uuid, subdomain: Uuid, name: &str) -> Resources {
    let folder = create_resource(api, key, "/api/folders", json!({"name": name}), "id").await;
    // A key without scopes, within every caller's restrictions except its folder.
    let restrictions = Restrictions { folder_id: Some(folder), ids: [(Resource::Keys, [].into())].into() };
    let (held, _) = api.insert_child(account_id, ScopeSet::default(), restrictions, None).await;
    let page = |slug: &str| {
        let template = "<p>{{a}}</p>";
        json!({"slug": slug, "title": name, "html": "x", "folderId": folder, "subdomainId": subdomain,
               "entryTemplate": template})
    };
    let archive = archive(api, key, page("archived")).await;
    let page = create_resource(api, key, "/api/pages", page(name), "id").await;
    let path = format!("/api/pages/{page}");
    let entry =
        create_resource(api, key, &format!("{path}/entries"), json!({"data": {"a": "x"}}), "id").await;
    let (_, versions) = api.send(Method::GET, &format!("{path}/versions"), Some(key), &Value::Null).await;
    let fields = json!([{"name": "email", "label": "E-mail", "type": "email"}]);
    let form = json!({"name": name, "fields": fields, "folderId": folder});
    let site = json!({"name": name, "folderId": folder});
    let domain = json!({"domain": format!("{name}.example.com"), "subdomainId": subdomain});
    let form = create_resource(api, key, "/api/forms", form, "formId").await;
    let submission = json!({"externalId": "known", "payload": {"email": "a@b.co"}});
    let upsert = format!("/api/forms/{form}/submissions/upsert");
    let (_, submission) = api.send(Method::PUT, &upsert, Some(key), &submission).await;
    let webhook = json!({"url": "https://example.com/hook", "formIds": [form]});
    let webhook = create_resource(api, key, "/api/webhooks", webhook, "id").await;
    let test = format!("/api/webhooks/{webhook}/test");
    let (_, delivery) = api.send(Method::POST, &test, Some(key), &Value::Null).await;
    let steps = json!([{"id": "end", "type": "stop", "status": "success"}]);
    let automation =
        json!({"name": name, "slug": name, "folderId": folder, "trigger": {"type": "http"}, "steps": steps});
    let automation = create_resource(api, key, "/api/automations", automation, "id").await;
    let asset = json!({"filename": "a.png", "contentType": "image/png", "sizeBytes": 1, "pageId": page});
    let zip = uploaded(api, key, account_id).await;
    Resources {
        folder,
        page,
        entry,
        version: id_in(&versions["versions"][0], "id"),
        archive,
        asset: create_resource(api, key, "/api/pages/assets", asset, "id").await,
        deploy: served(api, account_id, subdomain).await,
        preview: previewed(api, account_id, subdomain).await,
        zip,
        form,
        submission: id_in(&submission, "data"),
        webhook,
        delivery: id_in(&delivery, "id"),
        automation,
        runs: [started(api, key, automation).await, ended(api, key, automation).await],
        site: create_resource(api, key, "/api/analytics/sites", site, "site").await,
        subdomain,
        domain: create_resource(api, key, "/api/account/domains", domain, "id").await,
        key: held,
    }
}

/// Starts a run that nothing executes.
async fn started(api: &Api, key: &str, automation: Uuid) -> Uuid {
    let test = format!("/api/automations/{automation}/test");
    let (status, run) = api.send(Method::POST, &test, Some(key), &json!({})).await;
    assert_eq!(status, StatusCode::OK, "{run}");
    id_in(&run, "runId")
}

/// Starts and cancels a run.
async fn ended(api: &Api, key: &str, automation: Uuid) -> Uuid {
    let run = started(api, key, automation).await;
    let cancel = format!("/api/automations/{automation}/runs/{run}/cancel");
    let (status, response) = api.send(Method::POST, &cancel, Some(key), &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{response}");
    run
}

/// Creates a deploy and uploads its zip.
pub(super) async fn uploaded(api: &Api, key: &str, account_id: Uuid) -> Uuid {
    let zip = create_resource(api, key, "/api/deploy", json!({"sizeBytes": SITE.len()}), "deployId").await;
    api.upload(account_id, zip, SITE).await;
    zip
}

/// Creates and deletes a page and returns its archive.
async fn archive(api: &Api, key: &str, page: Value) -> Uuid {
    let page = create_resource(api, key, "/api/pages", page, "id").await;
    let path = format!("/api/pages/{page}");
    create_resource(api, key, &format!("{path}/entries"), json!({"data": {"a": "x"}}), "id").await;
    let (status, _) = api.send(Method::DELETE, &path, Some(key), &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    let (_, archives) = api.send(Method::GET, "/api/pages/archives", Some(key), &Value::Null).await;
    let of_page = |archive: &&Value| archive["pageId"] == json!(page);
    id_in(archives["archives"].as_array().unwrap().iter().find(of_page).unwrap(), "id")
}

/// Inserts a published deploy on a subdomain.
async fn served(api: &Api, account_id: Uuid, subdomain: Uuid) -> Uuid {
    let id = Rng::system().uuid_v7(Clock::system().now());
    let statements = format!(
        "insert into deploys (id, account_id, subdomain_id, status, size_bytes, created_at, processed_at)
         values ('{id}', '{account_id}', '{subdomain}', 'processed', 1, now(), now());
         insert into served_deploys (subdomain_id, deploy_id) values ('{subdomain}', '{id}')"
    );
    api.execute(&statements).await.unwrap();
    id
}

/// Inserts a preview on a subdomain.
async fn previewed(api: &Api, account_id: Uuid, subdomain: Uuid) -> Uuid {
    let id = Rng::system().uuid_v7(Clock::system().now());
    let token = &id.simple().to_string()[16..];
    let statement = format!(
        "insert into deploys (id, account_id, subdomain_id, status, size_bytes, created_at, preview_token,
                              preview_expires_at)
         values ('{id}', '{account_id}', '{subdomain}', 'preview', 1, now(), '{token}', now() + interval '1 day')"
    );
    api.execute(&statement).await.unwrap();
    id
}

async fn create_resource(api: &Api, key: &str, path: &str, body: Value, id: &str) -> Uuid {
    let (status, response) = api.send(Method::POST, path, Some(key), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{path}: {response}");
    id_in(&response, id)
}

fn id_in(response: &Value, member: &str) -> Uuid {
    let value = &response[member];
    value["id"].as_str().or(value.as_str()).unwrap().parse().unwrap()
}
