//! One connection that asks for a form again and again remembers its page, and hears all the same what becomes of it.

use chrono::{SubsecRound, TimeDelta};
use contract::Change;
use http::StatusCode;
use sandbox::test::until;
use serde_json::json;
use store::forms::Form;
use store::mails::Kind;

use crate::client::Http1;
use crate::harness::Edge;
use crate::seeds::{Account, now, one_text, submit_path};

/// With the quick lane and without it.
async fn edges() -> [Edge; 2] {
    [Edge::with(&["connections.quick_lane=true"]).await, Edge::with(&["connections.quick_lane=false"]).await]
}

/// A connection that has been shown a form often enough to know it by heart.
async fn knowing(edge: &Edge, path: &str) -> Http1 {
    let mut connection = edge.visitor.http1().await;
    for _ in 0..5 {
        assert_eq!(connection.get("localhost", path, &[]).await.status, StatusCode::OK);
    }
    connection
}

#[tokio::test]
async fn an_edit_a_suspension_and_an_end_are_seen_over_a_connection_that_knew_the_form() {
    for edge in edges().await {
        edge.listens().await;
        let account = edge.account("quiet-otter").await;
        let form = account.form_with(one_text(), |form| form.name = "First".to_owned()).await;
        let path = format!("/f/{form}");
        let mut connection = knowing(&edge, &path).await;
        let changes: [(&str, StatusCode, &str); 5] = [
            ("update forms set name = 'Second', updated_at = now()", StatusCode::OK, "<bdi>Second</bdi>"),
            (
                "update accounts set suspended_at = now()",
                StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS,
                "suspended",
            ),
            ("update accounts set suspended_at = null", StatusCode::OK, "<bdi>Second</bdi>"),
            ("update forms set closes_at = now(), updated_at = now()", StatusCode::GONE, "closed"),
            ("delete from forms", StatusCode::NOT_FOUND, "no form"),
        ];
        for (change, status, text) in changes {
            edge.run(change).await;
            edge.tell(Change::Form { form_id: form }).await;
            let mut shows = async || {
                let answer = connection.get("localhost", &path, &[]).await;
                answer.status == status && answer.text().contains(text)
            };
            until(&mut shows).await;
            assert!(shows().await, "{change}: and so it stays");
        }
    }
}

#[tokio::test]
async fn a_form_closes_to_the_moment_over_a_connection_that_knew_it() {
    for edge in edges().await {
        let account = edge.account("quiet-otter").await;
        let closes_at = (now() + TimeDelta::milliseconds(4_000)).trunc_subsecs(3);
        let form = account.form_with(one_text(), |form| form.closes_at = Some(closes_at)).await;
        let path = format!("/f/{form}");
        let mut connection = knowing(&edge, &path).await;
        loop {
            let before = now();
            let shown = connection.get("localhost", &path, &[]).await.status;
            let after = now();
            if shown == StatusCode::GONE {
                assert!(after >= closes_at, "not before its time");
                break;
            }
            assert_eq!(shown, StatusCode::OK);
            assert!(before < closes_at, "it was shown after its time");
        }
    }
}

#[tokio::test]
async fn what_is_asked_for_differently_is_not_what_was_remembered() {
    for edge in edges().await {
        let account = edge.account("quiet-otter").await;
        account.page("form", "<p>a page").await;
        let forms = [named(&account, "One").await, named(&account, "Two").await];
        let mut connection = edge.visitor.http1().await;
        for _ in 0..3 {
            for (name, form) in [("One", forms[0]), ("Two", forms[1])] {
                let path = format!("/f/{form}");
                for (query, language, shown) in
                    [("", "en", "lang=\"en\""), ("", "de", "lang=\"de\""), ("?lang=fr", "de", "lang=\"fr\"")]
                {
                    let asked = format!("{path}{query}");
                    for _ in 0..2 {
                        let answer =
                            connection.get("localhost", &asked, &[("accept-language", language)]).await;
                        let html = answer.text();
                        assert!(html.contains(shown) && html.contains(name), "{asked} {language}: {html}");
                    }
                }
                assert_eq!(connection.get(&account.host, &path, &[]).await.status, StatusCode::NOT_FOUND);
                assert_eq!(connection.get(&account.host, "/form", &[]).await.text(), "<p>a page");
            }
        }
    }
}

async fn named(account: &Account<'_>, name: &str) -> uuid::Uuid {
    account.form_with(one_text(), |form| form.name = name.to_owned()).await
}

#[tokio::test]
async fn a_form_that_mails_its_owner_and_tells_no_webhook_is_still_known_after_a_submission() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let shape = |form: &mut Form| {
        form.notify_email = Some("owner@example.com".to_owned());
        form.success_message = Some("As it was".to_owned());
    };
    let form = account.form_with(one_text(), shape).await;
    let mut said = Vec::new();
    for _ in 0..3 {
        let answer = edge.visitor.post(&submit_path(form), &json!({"a": "x"})).await;
        said.push(answer.json()["message"].as_str().unwrap().to_owned());
        // Told to nobody: whoever knows the form goes by what they know.
        edge.run("update forms set success_message = 'As it was when it was looked up again'").await;
    }
    assert_eq!(said, ["As it was"; 3]);
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    let mails = store::mails::list_due(&mut conn, Kind::Submission, now(), 10).await.unwrap();
    assert_eq!(mails.len(), 3);
}
