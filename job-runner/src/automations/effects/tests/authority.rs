//! What the key that saved the automation may do is checked when the step runs, and so is whose the resources are.

use automation::execution::{Effect, FindSource, PageEdit};
use domain::scopes::Resource;
use serde_json::{Map, json};
use uuid::Uuid;

use super::fixture::{Account, Fixture, create_entry, object};

struct Resources {
    page: Uuid,
    form: Uuid,
    webhook: Uuid,
}

impl Fixture {
    async fn resources(&self, account: Account) -> Resources {
        let page = self.page(account, "list").await;
        Resources { page, form: self.form(account, |_| {}).await, webhook: self.webhook(account).await }
    }
}

fn edit(page_id: Uuid) -> PageEdit {
    PageEdit { page_id: Some(page_id), title: Some("New".to_owned()), ..PageEdit::default() }
}

fn find(source: FindSource) -> Effect {
    Effect::Find { source, filter: Map::new(), since: None, limit: 10 }
}

/// Every effect on a resource, with the scope that it needs.
fn effects(resources: &Resources) -> Vec<(&'static str, Effect)> {
    let &Resources { page, form, webhook } = resources;
    vec![
        ("entries:create", create_entry(page, json!({"name": "x"}))),
        ("entries:delete", Effect::DeleteEntry { page_id: page, entry_id: page }),
        ("entries:read", find(FindSource::Entries { page_id: page })),
        ("submissions:read", find(FindSource::Submissions { form_id: form })),
        ("pages:update", Effect::UpdatePage(Box::new(edit(page)))),
        (
            "submissions:create",
            Effect::CreateSubmission { form_id: form, payload: object(json!({"email": "a@b.co"})) },
        ),
        ("deliveries:create", Effect::SendWebhook { webhook_id: webhook, payload: Map::new() }),
    ]
}

#[tokio::test]
async fn ids_of_another_account_are_not_found() {
    let fixture = Fixture::new().await;
    let other = fixture.other_account().await;
    let theirs = fixture.resources(other).await;
    let folder = fixture.folder(other).await;
    for restricted in [false, true] {
        if restricted {
            let ids = [
                (Resource::Pages, theirs.page),
                (Resource::Forms, theirs.form),
                (Resource::Webhooks, theirs.webhook),
            ];
            fixture.restrict(&["*"], None, &ids).await;
        }
        for (scope, effect) in effects(&theirs) {
            if scope == "entries:delete" && !restricted {
                assert_eq!(fixture.perform(effect).await, Ok(json!({"deleted": false})));
                continue;
            }
            let failure = fixture.failure(effect).await;
            assert!(
                failure.message.starts_with("there is no ") && !failure.is_transient,
                "{scope}: {failure:?}"
            );
        }
    }
    fixture.restrict(&["*"], None, &[]).await;
    let own = fixture.page(fixture.account, "own").await;
    let new = PageEdit {
        slug: Some("new".to_owned()),
        upsert: true,
        title: Some("T".to_owned()),
        html: Some("x".to_owned()),
        ..PageEdit::default()
    };
    for edit in [
        PageEdit { folder_id: Some(Some(folder)), ..edit(own) },
        PageEdit { folder_id: Some(Some(folder)), ..new.clone() },
        PageEdit { subdomain_id: Some(other.site), ..new },
    ] {
        let failure = fixture.failure(Effect::UpdatePage(Box::new(edit))).await;
        assert!(failure.message.starts_with("there is no "), "{failure:?}");
    }
    assert_eq!(fixture.number("select count(*) from page_entries").await, 0);
    assert_eq!(fixture.number("select count(*) from submissions").await, 0);
    assert_eq!(fixture.number("select count(*) from deliveries").await, 0);
    assert_eq!(fixture.number("select count(*) from pages where title = 'New'").await, 0);
    assert_eq!(fixture.number("select count(*) from pages").await, 2);
}

#[tokio::test]
async fn a_scope_that_was_lost_stops_the_step() {
    let fixture = Fixture::new().await;
    let resources = fixture.resources(fixture.account).await;
    for (scope, effect) in effects(&resources) {
        fixture.restrict(&["automations:*", "account:read"], None, &[]).await;
        let failure = fixture.failure(effect.clone()).await;
        assert!(failure.message.contains(&format!("`{scope}`")) && !failure.is_transient, "{failure:?}");
        fixture.restrict(&[scope], None, &[]).await;
        fixture.perform(effect).await.unwrap();
    }
}

#[tokio::test]
async fn a_key_restricted_to_other_resources_stops_the_step() {
    let fixture = Fixture::new().await;
    let resources = fixture.resources(fixture.account).await;
    let other = Uuid::nil();
    let kinds = [Resource::Pages, Resource::Forms, Resource::Webhooks].map(|kind| (kind, other));
    for (scope, effect) in effects(&resources) {
        fixture.restrict(&["*"], None, &kinds).await;
        let failure = fixture.failure(effect.clone()).await;
        assert!(failure.message.contains("restricted to certain"), "{scope}: {failure:?}");
        let ids = [
            (Resource::Pages, resources.page),
            (Resource::Forms, resources.form),
            (Resource::Webhooks, resources.webhook),
        ];
        fixture.restrict(&["*"], None, &ids).await;
        fixture.perform(effect).await.unwrap();
    }
}

#[tokio::test]
async fn a_page_that_left_the_keys_folder_is_out_of_reach() {
    let fixture = Fixture::new().await;
    let resources = fixture.resources(fixture.account).await;
    let folder = fixture.folder(fixture.account).await;
    fixture.restrict(&["*"], Some(folder), &[]).await;
    for statement in ["update forms set folder_id = null", "update pages set folder_id = null"] {
        fixture.change(statement).await;
    }
    for (scope, effect) in effects(&resources) {
        let failure = fixture.failure(effect).await;
        assert!(failure.message.contains("restricted to one folder"), "{scope}: {failure:?}");
    }
    for table in ["forms", "pages"] {
        fixture.change(&format!("update {table} set folder_id = '{folder}'")).await;
    }
    for (scope, effect) in effects(&resources) {
        if scope != "deliveries:create" {
            fixture.perform(effect).await.unwrap();
        }
    }
    let out = PageEdit { folder_id: Some(None), ..edit(resources.page) };
    let failure = fixture.failure(Effect::UpdatePage(Box::new(out))).await;
    assert!(failure.message.contains("restricted to one folder"), "{failure:?}");
}

#[tokio::test]
async fn a_key_that_may_not_create_pages_only_changes_them() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "old").await;
    let upsert = |slug: &str| {
        Effect::UpdatePage(Box::new(PageEdit {
            slug: Some(slug.to_owned()),
            upsert: true,
            title: Some("T".to_owned()),
            html: Some("x".to_owned()),
            ..PageEdit::default()
        }))
    };
    fixture.restrict(&["pages:update"], None, &[]).await;
    fixture.perform(upsert("old")).await.unwrap();
    assert!(fixture.failure(upsert("new")).await.message.contains("`pages:create`"));
    fixture.restrict(&["pages:*"], None, &[(Resource::Pages, page)]).await;
    fixture.perform(upsert("old")).await.unwrap();
    assert!(fixture.failure(upsert("new")).await.message.contains("restricted to certain pages"));
    fixture.restrict(&["pages:*"], None, &[(Resource::Subdomains, Uuid::nil())]).await;
    assert!(fixture.failure(upsert("old")).await.message.contains("restricted to certain subdomains"));
    let folder = fixture.folder(fixture.account).await;
    fixture.restrict(&["pages:*"], Some(folder), &[]).await;
    fixture.perform(upsert("new")).await.unwrap();
    assert_eq!(
        fixture.number("select count(*) from pages where slug = 'new' and folder_id is not null").await,
        1
    );
}
