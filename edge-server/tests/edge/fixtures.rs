//! Inserts accounts and their resources directly into Postgres, in place of the control plane.

use chrono::{DateTime, Utc};
use contract::Change;
use domain::pages::{Content, Publication};
use domain::static_sites::SiteRules;
use domain::static_sites::headers::HeaderRules;
use domain::static_sites::redirects::Redirects;
use domain::uploads::{Signer, Ticket};
use serde_json::{Value, json};
use service::{Clock, Rng};
use sha2::{Digest, Sha256};
use store::assets::Asset;
use store::blobs::NewBlob;
use store::deliveries::{Delivery, DeliveryFilter};
use store::deploys::files::DeployFile;
use store::forms::Form;
use store::pages::{NewPage, PageChange, PageFilter, PageSummary};
use store::submissions::SubmissionFilter;
use store::uploads::{NewUpload, Purpose};
use store::webhooks::NewWebhook;
use uuid::Uuid;

use crate::harness::Edge;

/// An account with one site.
pub(crate) struct Account<'a> {
    pub(crate) id: Uuid,
    pub(crate) subdomain_id: Uuid,
    /// The host of the site.
    pub(crate) host: String,
    /// The name of its subdomain.
    pub(crate) name: String,
    edge: &'a Edge,
}

impl Edge {
    /// Inserts an unclaimed account with a site of this name.
    pub(crate) async fn account(&self, name: &str) -> Account<'_> {
        let now = now();
        let (id, subdomain_id) = (new_id(), new_id());
        sandbox::test::trial(&self.database, id, now).await;
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::subdomains::insert_subdomain(&mut conn, id, subdomain_id, name, now).await.unwrap();
        Account { id, subdomain_id, host: self.site_host(name), name: name.to_owned(), edge: self }
    }

    /// Runs an SQL statement that has no function in the store.
    pub(crate) async fn run(&self, statement: &str) {
        store::execute_raw(&self.database.db, statement).await.unwrap();
    }
}

impl Account<'_> {
    pub(crate) async fn page(&self, slug: &str, html: &str) -> Uuid {
        let page = NewPage {
            id: new_id(),
            folder_id: None,
            subdomain_id: self.subdomain_id,
            slug: slug.to_owned(),
            content: Content {
                title: "T".to_owned(),
                html: html.to_owned(),
                css: None,
                entry_template: None,
                metadata: json!({}),
            },
            publication: Publication::NEW,
            deploy_id: None,
            created_at: now(),
        };
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        assert!(store::pages::insert_page(&mut conn, self.id, &page).await.unwrap());
        page.id
    }

    pub(crate) async fn edit(&self, page: Uuid, html: &str) {
        let change = PageChange { html: Some(html.to_owned()), ..PageChange::default() };
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        assert!(store::pages::update_page(&mut conn, self.id, page, change, now()).await.unwrap());
    }

    pub(crate) async fn delete(&self, page: Uuid) {
        self.edge.run(&format!("delete from pages where id = '{page}'")).await;
    }

    /// Publishes a change of the page at this slug.
    pub(crate) async fn publish_page_change(&self, slug: &str) {
        self.edge
            .publish_change(Change::Page {
                subdomain_id: self.subdomain_id,
                slug: slug.to_owned(),
                path: None,
            })
            .await;
    }

    /// The account's pages, as its owner lists them.
    pub(crate) async fn pages(&self) -> Vec<PageSummary> {
        let part = store::ListFilter { limit: 100, ..store::ListFilter::default() };
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        store::pages::list_pages(&mut conn, self.id, &part, &PageFilter::default()).await.unwrap().rows
    }

    /// Inserts a form with these fields.
    pub(crate) async fn form(&self, fields: Value) -> Uuid {
        self.form_with(fields, |_| {}).await
    }

    /// Inserts a form with these fields after `shape` has changed it.
    pub(crate) async fn form_with(&self, fields: Value, shape: impl FnOnce(&mut Form)) -> Uuid {
        let fields = serde_json::from_value(fields).unwrap();
        let mut form = Form::new(new_id(), "Contact".to_owned(), fields, now());
        shape(&mut form);
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        store::forms::insert_form(&mut conn, self.id, &form).await.unwrap();
        form.id
    }

    /// Inserts a webhook for `forms`, or for all forms if `None`.
    pub(crate) async fn webhook(&self, forms: Option<Vec<Uuid>>, events: &[&str]) -> Uuid {
        let webhook = NewWebhook {
            id: new_id(),
            sealed_url: vec![1],
            events: events.iter().map(ToString::to_string).collect(),
            description: None,
            field_mapping: None,
            form_ids: forms,
            sealed_secret: vec![2],
            template: "default",
            telegram_chat_id: None,
            created_at: now(),
        };
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        store::webhooks::insert_webhook(&mut conn, self.id, &webhook).await.unwrap();
        webhook.id
    }

    /// The deliveries of a webhook, newest first.
    pub(crate) async fn deliveries(&self, webhook: Uuid) -> Vec<Delivery> {
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        let filter =
            DeliveryFilter { webhook_ids: Some(&[webhook]), limit: 100, ..DeliveryFilter::default() };
        store::deliveries::list_deliveries(&mut conn, self.id, &filter).await.unwrap().rows
    }

    /// The submissions of a form, newest first.
    pub(crate) async fn submissions(&self, form: Uuid) -> Vec<Value> {
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        let rows = store::submissions::list_submissions(
            &mut conn,
            self.id,
            form,
            &SubmissionFilter { limit: 1_000, ..SubmissionFilter::default() },
        )
        .await
        .unwrap();
        rows.rows.into_iter().map(|row| Value::Object(row.payload)).collect()
    }

    /// The submission counter of a form.
    pub(crate) async fn count(&self, form: Uuid) -> i64 {
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        store::forms::find_form(&mut conn, self.id, form).await.unwrap().unwrap().submission_count
    }
}

/// The fields of a form with one required text field.
pub(crate) fn one_text_field() -> Value {
    json!([{"name": "a", "label": "A", "type": "text", "required": true}])
}

pub(crate) fn submit_path(form: Uuid) -> String {
    format!("/api/forms/{form}/submit")
}

pub(crate) fn now() -> DateTime<Utc> {
    Clock::system().now()
}

fn new_id() -> Uuid {
    Rng::system().uuid_v7(now())
}

/// An asset, before or after its upload.
pub(crate) struct AssetFixture {
    pub(crate) id: Uuid,
    /// The signed upload URL.
    pub(crate) address: String,
    /// The path on the asset host.
    pub(crate) asset_path: String,
}

impl Account<'_> {
    /// Inserts an asset that is announced but not uploaded.
    pub(crate) async fn asset(&self, filename: &str, content_type: &str, size: usize) -> AssetFixture {
        let asset = Asset {
            id: new_id(),
            page_id: None,
            filename: filename.to_owned(),
            content_type: content_type.to_owned(),
            size_bytes: i64::try_from(size).unwrap(),
            blob_id: None,
            created_at: now(),
        };
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        store::assets::insert_asset(&mut conn, self.id, &asset).await.unwrap();
        self.insert_upload(Purpose::Asset, asset.id, content_type, size).await;
        let asset_path = format!(
            "/{}/{}",
            asset.id,
            filename.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "_")
        );
        AssetFixture { id: asset.id, address: self.upload(asset.id, size, 60), asset_path }
    }

    /// Inserts an asset with its bytes.
    pub(crate) async fn stored_asset(
        &self,
        filename: &str,
        content_type: &str,
        bytes: &[u8],
    ) -> AssetFixture {
        let asset = self.asset(filename, content_type, bytes.len()).await;
        let blob_id = self.blob(bytes).await;
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        store::assets::update_blob(&mut conn, self.id, asset.id, blob_id).await.unwrap();
        asset
    }

    /// Inserts a deploy that is announced but not uploaded.
    pub(crate) async fn deploy(&self, size: usize) -> Uuid {
        let id = new_id();
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        let size_bytes = i64::try_from(size).unwrap();
        store::deploys::insert_deploy(&mut conn, self.id, id, size_bytes, ("a key", None), now())
            .await
            .unwrap();
        self.insert_upload(Purpose::Deploy, id, "application/zip", size).await;
        id
    }

    /// A signed upload URL that expires in `seconds`.
    pub(crate) fn upload(&self, id: Uuid, size: usize, seconds: i64) -> String {
        let signer = Signer::new(crate::harness::TOKEN.as_bytes());
        let expires_at = now().timestamp() + seconds;
        signer.address(&Ticket { id, size_bytes: i64::try_from(size).unwrap(), expires_at })
    }

    /// Inserts a deploy with these files and makes it the served one. Returns the digest of each file.
    pub(crate) async fn serve_files(&self, files: &[(&str, &str, &[u8])]) -> Vec<String> {
        let deploy_id = self.deploy(1).await;
        self.insert_files(deploy_id, files).await;
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        let served = Some(deploy_id);
        store::deploys::files::update_served_deploy(&mut conn, self.id, self.subdomain_id, served)
            .await
            .unwrap();
        files.iter().map(|(_, _, bytes)| hex::encode(Sha256::digest(bytes))).collect()
    }

    /// Inserts a preview of these files with this token, which ends in an hour. Returns its deploy and its host.
    pub(crate) async fn preview(&self, token: &str, files: &[(&str, &str, &[u8])]) -> (Uuid, String) {
        let deploy_id = self.deploy(1).await;
        self.insert_files(deploy_id, files).await;
        self.edge
            .run(&format!(
                "update deploys set status = 'preview', subdomain_id = '{}', preview_token = '{token}',
                                    preview_expires_at = now() + interval '1 hour' where id = '{deploy_id}'",
                self.subdomain_id
            ))
            .await;
        (deploy_id, format!("{token}--{}", self.host))
    }

    async fn insert_files(&self, deploy_id: Uuid, files: &[(&str, &str, &[u8])]) {
        let mut rows = Vec::new();
        for (path, content_type, bytes) in files {
            rows.push(DeployFile {
                path: (*path).to_owned(),
                blob_id: self.blob(bytes).await,
                size_bytes: i64::try_from(bytes.len()).unwrap(),
                content_type: (*content_type).to_owned(),
                by_content: domain::media::is_image_or_font(content_type),
                reason: None,
                title: None,
            });
        }
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        store::deploys::files::insert_files(&mut conn, self.id, deploy_id, &rows).await.unwrap();
    }

    /// Inserts a page that shows the file at a path.
    pub(crate) async fn deployed_page(&self, slug: &str, path: &str, html: &str) -> Uuid {
        let page = self.page(slug, html).await;
        self.edge.run(&format!("update pages set path = '{path}' where id = '{page}'")).await;
        page
    }

    /// Sets the rules of the served deploy, from the texts of `_redirects` and `_headers`.
    pub(crate) async fn set_rules(&self, redirects: &str, headers: &str, spa: bool) {
        let served =
            format!("select deploy_id from served_deploys where subdomain_id = '{}'", self.subdomain_id);
        self.set_rules_of(&served, redirects, headers, spa).await;
    }

    /// As [`Self::set_rules`], for the deploy that an SQL expression selects.
    pub(crate) async fn set_rules_of(&self, deploy: &str, redirects: &str, headers: &str, spa: bool) {
        let (redirects, notes) = Redirects::parse(redirects.as_bytes(), |_| true);
        assert_eq!(notes, []);
        let (headers, _ignored) = HeaderRules::parse(headers.as_bytes());
        let rules = serde_json::to_string(&SiteRules { redirects, headers, spa }).unwrap();
        self.edge
            .run(&format!("update deploys set rules = '{}' where id = ({deploy})", rules.replace('\'', "''")))
            .await;
    }

    /// Publishes that another deploy is served.
    pub(crate) async fn publish_deploy(&self) {
        self.edge.publish_change(Change::Site { subdomain_id: self.subdomain_id }).await;
    }

    /// Publishes a change of the page at this slug that shows the file at a path.
    pub(crate) async fn publish_file_change(&self, slug: &str, path: &str) {
        let (subdomain_id, slug, path) = (self.subdomain_id, slug.to_owned(), Some(path.to_owned()));
        self.edge.publish_change(Change::Page { subdomain_id, slug, path }).await;
    }

    /// Turns on analytics with this token.
    pub(crate) async fn track(&self, token: &str) {
        self.edge
            .run(&format!(
                "insert into analytics_sites (id, account_id, site_token, name, subdomain_id, created_at)
                 values (gen_random_uuid(), '{}', '{token}', 'S', '{}', now())",
                self.id, self.subdomain_id
            ))
            .await;
    }

    async fn insert_upload(&self, purpose: Purpose, id: Uuid, content_type: &str, size: usize) {
        let upload = NewUpload {
            id,
            purpose,
            content_type,
            size_bytes: i64::try_from(size).unwrap(),
            expires_at: now() + chrono::TimeDelta::hours(1),
            created_at: now(),
        };
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        store::uploads::insert_upload(&mut conn, self.id, &upload).await.unwrap();
    }

    /// Stores bytes in the blob store and inserts their row.
    async fn blob(&self, bytes: &[u8]) -> Uuid {
        let sha256 = Sha256::digest(bytes).into();
        let path = self.edge.blobs.path().join("kept").join(self.id.to_string());
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join(hex::encode(sha256)), bytes).unwrap();
        let blob = NewBlob { id: new_id(), sha256, size_bytes: i64::try_from(bytes.len()).unwrap() };
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        store::blobs::reference_blobs(&mut conn, self.id, &[blob]).await.unwrap()[0].id
    }
}
