//! What an account has, put straight into Postgres: the control plane's part in these tests.

use chrono::{DateTime, Utc};
use domain::pages::{Content, Publication};
use serde_json::{Value, json};
use service::{Clock, Rng};
use store::accounts::NewTrial;
use store::forms::Form;
use store::pages::{NewPage, PageChange};
use store::webhooks::NewWebhook;
use uuid::Uuid;

use crate::harness::Edge;

/// An account with one site.
pub(crate) struct Account<'a> {
    pub(crate) id: Uuid,
    pub(crate) subdomain_id: Uuid,
    /// The site's host.
    pub(crate) host: String,
    /// Its subdomain.
    pub(crate) name: String,
    edge: &'a Edge,
}

impl Edge {
    /// An unclaimed account with a site of that name.
    pub(crate) async fn account(&self, name: &str) -> Account<'_> {
        let now = now();
        let (id, subdomain_id) = (new_id(), new_id());
        let claim_token_hash = Rng::system().bytes();
        let trial = NewTrial { id, claim_token_hash, claim_deadline: now, created_at: now };
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::accounts::insert_trial(&mut conn, &trial).await.unwrap();
        store::subdomains::insert_subdomain(&mut conn, id, subdomain_id, name, now).await.unwrap();
        Account { id, subdomain_id, host: format!("{name}.localhost"), name: name.to_owned(), edge: self }
    }

    /// Runs a statement that no function of the store is for yet.
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

    /// A form with these fields.
    pub(crate) async fn form(&self, fields: Value) -> Uuid {
        self.form_with(fields, |_| {}).await
    }

    /// A form with these fields and whatever `shape` makes of it.
    pub(crate) async fn form_with(&self, fields: Value, shape: impl FnOnce(&mut Form)) -> Uuid {
        let mut form = Form {
            id: new_id(),
            folder_id: None,
            name: "Contact".to_owned(),
            fields: serde_json::from_value(fields).unwrap(),
            success_message: None,
            submit_label: None,
            redirect_url: None,
            closes_at: None,
            max_submissions: None,
            submission_count: 0,
            created_at: now(),
            updated_at: now(),
        };
        shape(&mut form);
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        store::forms::insert_form(&mut conn, self.id, &form).await.unwrap();
        form.id
    }

    /// A webhook told of `forms`, or of all without any.
    pub(crate) async fn webhook(&self, forms: Option<Vec<Uuid>>, events: &[&str]) -> Uuid {
        let webhook = NewWebhook {
            id: new_id(),
            sealed_url: vec![1],
            events: events.iter().map(ToString::to_string).collect(),
            description: None,
            field_mapping: None,
            form_ids: forms,
            sealed_secret: vec![2],
            created_at: now(),
        };
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        store::webhooks::insert_webhook(&mut conn, self.id, &webhook).await.unwrap();
        webhook.id
    }

    /// The submissions of a form, newest first.
    pub(crate) async fn submissions(&self, form: Uuid) -> Vec<Value> {
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        let rows = store::submissions::list_submissions(&mut conn, self.id, form, None, 1_000).await.unwrap();
        rows.into_iter().map(|row| row.payload).collect()
    }

    /// How many submissions a form counts.
    pub(crate) async fn count(&self, form: Uuid) -> i64 {
        let mut conn = store::acquire(&self.edge.database.db).await.unwrap();
        store::forms::find_form(&mut conn, self.id, form).await.unwrap().unwrap().submission_count
    }
}

/// One line of text as a form's fields.
pub(crate) fn one_text() -> Value {
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
