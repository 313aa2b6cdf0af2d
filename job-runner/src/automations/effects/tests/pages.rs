//! `update_page`.

use automation::execution::{Effect, PageEdit};
use chrono::{SubsecRound, TimeDelta};
use contract::{Change, Signal};
use serde_json::json;

use super::fixture::{Fixture, call, now};
use crate::automations::effects::perform;

fn effect(edit: PageEdit) -> Effect {
    Effect::UpdatePage(Box::new(edit))
}

fn new_page(slug: &str) -> PageEdit {
    PageEdit {
        slug: Some(slug.to_owned()),
        upsert: true,
        title: Some("Title".to_owned()),
        html: Some("<h1>x</h1>".to_owned()),
        ..PageEdit::default()
    }
}

#[tokio::test]
async fn a_page_is_changed_with_a_version_and_the_edges_learn_of_it() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    let edit = PageEdit {
        page_id: Some(page),
        html: Some("<p>new".to_owned()),
        css: Some(Some("a{}".to_owned())),
        entry_template: Some(None),
        ..PageEdit::default()
    };
    let output = fixture.perform(effect(edit)).await.unwrap();
    assert_eq!(
        (&output["id"], &output["slug"], &output["created"]),
        (&json!(page), &json!("list"), &json!(false))
    );
    let stored = fixture.json("select jsonb_build_array(title, html, css, entry_template) from pages").await;
    assert_eq!(stored, json!(["T", "<p>new", "a{}", null]));
    assert_eq!(fixture.number("select count(*) from page_versions").await, 2);
    let change = Change::Page { subdomain_id: fixture.account.site, slug: "list".to_owned(), path: None };
    assert_eq!(fixture.signals().await, [Signal::Changed(change), Signal::OutboxFilled]);
    let updated_at: chrono::DateTime<chrono::Utc> = output["updatedAt"].as_str().unwrap().parse().unwrap();
    let edit = |since| PageEdit {
        slug: Some("list".to_owned()),
        title: Some("T2".to_owned()),
        if_unmodified_since: Some(since),
        ..PageEdit::default()
    };
    let failure = fixture.failure(effect(edit(updated_at - TimeDelta::milliseconds(1)))).await;
    assert!(failure.message.contains("was changed at") && !failure.is_transient, "{failure:?}");
    fixture.perform(effect(edit(updated_at))).await.unwrap();
}

#[tokio::test]
async fn an_upsert_creates_a_page_once_within_the_plans_projects() {
    let fixture = Fixture::new().await;
    let first = fixture.perform(effect(new_page("a1"))).await.unwrap();
    assert_eq!(first["created"], json!(true));
    assert_eq!(fixture.number("select projects from usage").await, 1);
    let second = fixture.perform(effect(new_page("a1"))).await.unwrap();
    assert_eq!((&second["created"], &second["id"]), (&json!(false), &first["id"]));
    assert_eq!(fixture.number("select projects from usage").await, 1);
    assert_eq!(
        fixture.number("select count(*) from page_versions").await,
        1,
        "the same content is no version"
    );
    let limit = domain::plans::Plan::Free.limits().projects;
    fixture.change(&format!("update usage set projects = {limit}")).await;
    let failure = fixture.failure(effect(new_page("a2"))).await;
    assert!(failure.message.contains(&format!("allows {limit} projects")), "{failure:?}");
    fixture.perform(effect(new_page("a1"))).await.unwrap();
    assert_eq!(fixture.number("select count(*) from pages").await, 1);
    assert_eq!(fixture.number("select count(*) from automation_steps").await, 3);
}

#[tokio::test]
async fn concurrent_upserts_create_one_page() {
    let fixture = Fixture::new().await;
    let mut runs = Vec::new();
    for _ in 0..8 {
        runs.push(fixture.run().await);
    }
    let creating = runs.iter().map(|run| perform(run, call(effect(new_page("one")))));
    let outputs: Vec<_> = futures::future::join_all(creating).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(outputs.iter().filter(|output| output["created"] == true).count(), 1);
    assert_eq!(fixture.number("select projects from usage").await, 1);
}

#[tokio::test]
async fn a_page_is_published_later_and_moved_to_a_folder() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    let folder = fixture.folder(fixture.account).await;
    let at = (now() + TimeDelta::hours(1)).trunc_subsecs(0);
    let edit = PageEdit {
        page_id: Some(page),
        publish_at: Some(Some(at)),
        folder_id: Some(Some(folder)),
        ..PageEdit::default()
    };
    fixture.perform(effect(edit)).await.unwrap();
    let query =
        "select count(*) from pages where publish_at > now() and not is_published and folder_id is not null";
    assert_eq!(fixture.number(query).await, 1);
    let edit = PageEdit {
        page_id: Some(page),
        is_published: Some(true),
        folder_id: Some(None),
        ..PageEdit::default()
    };
    fixture.perform(effect(edit)).await.unwrap();
    let query = "select count(*) from pages where publish_at is null and is_published and folder_id is null";
    assert_eq!(fixture.number(query).await, 1);
}

#[tokio::test]
async fn invalid_edits_change_nothing_and_say_why() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    let of_page = || PageEdit { page_id: Some(page), ..PageEdit::default() };
    for (edit, expected) in [
        (PageEdit { title: Some(String::new()), ..of_page() }, "title must not be empty"),
        (PageEdit { html: Some("x".repeat(513 << 10)), ..of_page() }, "html may have at most 512 KB"),
        (PageEdit { html: Some("\0".to_owned()), ..of_page() }, "NUL"),
        (PageEdit { page_id: Some(fixture.account.id), ..of_page() }, "there is no page"),
        (PageEdit { folder_id: Some(Some(page)), ..of_page() }, "there is no folder"),
        (new_page("No Slug"), "slug may have only"),
        (PageEdit { html: None, ..new_page("new") }, "`title` and `html` are needed"),
        (PageEdit { upsert: false, ..new_page("new") }, "has no page `new`"),
    ] {
        let failure = fixture.failure(effect(edit)).await;
        assert!(failure.message.contains(expected) && !failure.is_transient, "{failure:?}");
    }
    assert_eq!(fixture.number("select count(*) from pages").await, 1);
    assert_eq!(fixture.number("select projects from usage").await, 0);
    assert_eq!(fixture.signals().await, []);
}
