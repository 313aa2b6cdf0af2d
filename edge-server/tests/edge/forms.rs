//! Hosted forms: texts of owners and visitors are always escaped, and redirects are checked.

use http::StatusCode;
use serde_json::json;
use uuid::Uuid;

use crate::fixtures::{now, one_text_field, submit_path};
use crate::harness::Edge;

/// The only script of a form page.
const OWN_SCRIPT: &str = "<script src=\"/form.js\" defer></script>";
const MARKUP: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>";

/// Whether the page contains user-supplied markup.
fn is_injected(html: &str) -> bool {
    let html = html.replace(OWN_SCRIPT, "");
    html.contains("<script") || html.contains("<img") || html.contains("\"'>")
}

#[tokio::test]
async fn markup_in_labels_and_texts_is_escaped_in_the_form() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let mut fields: Vec<_> =
        ["text", "email", "textarea", "number", "checkbox", "url", "tel", "date", "hidden", "file"]
            .iter()
            .map(|kind| json!({"name": kind, "label": MARKUP, "type": kind, "placeholder": MARKUP}))
            .collect();
    for kind in ["select", "multiselect"] {
        fields.push(json!({"name": kind, "label": MARKUP, "type": kind, "options": [MARKUP, "b"]}));
    }
    let form = account
        .form_with(json!(fields), |form| {
            form.name = MARKUP.to_owned();
            form.submit_label = Some(MARKUP.to_owned());
            form.success_message = Some(MARKUP.to_owned());
        })
        .await;
    let shown = edge.visitor.get("localhost", &format!("/f/{form}")).await;
    assert_eq!(shown.status, StatusCode::OK);
    assert!(!is_injected(shown.text()), "{}", shown.text());
    assert!(shown.text().contains("&lt;script&gt;alert(1)"), "the markup must appear escaped");
    let sent = edge.visitor.post_form(&submit_path(form), &[("text", "x")]).await;
    assert_eq!(
        (sent.status, sent.header("location")),
        (StatusCode::SEE_OTHER, &*format!("/f/{form}/thanks"))
    );
    let thanks = edge.visitor.get("localhost", sent.header("location")).await;
    assert_eq!(thanks.status, StatusCode::OK);
    assert!(!is_injected(thanks.text()) && thanks.text().contains("&lt;script"), "{}", thanks.text());
}

#[tokio::test]
async fn markup_in_answers_is_escaped_on_the_error_page() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let kinds = ["text", "email", "textarea", "number", "url", "tel", "date", "hidden"];
    let mut fields: Vec<_> =
        kinds.iter().map(|kind| json!({"name": kind, "label": kind, "type": kind})).collect();
    for kind in ["select", "multiselect"] {
        fields.push(json!({"name": kind, "label": kind, "type": kind, "options": ["a", "b"]}));
    }
    let form = account.form(json!(fields)).await;
    let answers: Vec<_> =
        kinds.into_iter().chain(["select", "multiselect"]).map(|name| (name, MARKUP)).collect();
    let refused = edge.visitor.post_form(&submit_path(form), &answers).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(!is_injected(refused.text()), "{}", refused.text());
    assert!(refused.text().contains("&lt;script&gt;alert(1)"), "the rejected values are shown again");
}

#[tokio::test]
async fn the_form_page_policy_allows_only_its_own_script_and_target() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let shown = edge.visitor.get("localhost", &format!("/f/{form}")).await;
    let policy = shown.header("content-security-policy");
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors *",
    ] {
        assert!(policy.split(';').any(|one| one.trim() == rule), "{rule}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let html = shown.text().replace("&#x2f;", "/");
    assert!(html.contains(&format!("action=\"/api/forms/{form}/submit\"")), "{html}");
    assert_eq!(shown.header("cache-control"), "no-store");
    assert_eq!(shown.header("content-type"), "text/html; charset=utf-8");
}

#[tokio::test]
async fn the_form_page_policy_allows_its_redirect_target() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let url = "https://example.com/thanks".to_owned();
    let form = account.form_with(one_text_field(), |form| form.redirect_url = Some(url)).await;
    let shown = edge.visitor.get("localhost", &format!("/f/{form}")).await;
    let policy = shown.header("content-security-policy");
    // `'self'` alone blocks the redirect after the post (seen in Chromium).
    assert!(policy.contains("form-action 'self' http: https:;"), "{policy}");
    assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self';"), "{policy}");
}

#[tokio::test]
async fn script_redirect_urls_are_ignored() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    for url in [
        "javascript:alert(1)",
        "data:text/html,x",
        "java\nscript:alert(1)",
        " javascript:alert(1)",
        "//x.test",
    ] {
        let form = account.form_with(one_text_field(), |form| form.redirect_url = Some(url.to_owned())).await;
        let browser = edge.visitor.post_form(&submit_path(form), &[("a", "x")]).await;
        let thanks = format!("/f/{form}/thanks");
        assert_eq!((browser.status, browser.header("location")), (StatusCode::SEE_OTHER, &*thanks), "{url}");
        let framed = edge.visitor.get("localhost", &format!("{thanks}?embed=1")).await;
        assert!(!framed.text().contains("data-onward"), "{}", framed.text());
        let program = edge.visitor.post(&submit_path(form), &json!({"a": "x"})).await;
        assert_eq!(
            (program.status, &program.json()["redirectUrl"]),
            (StatusCode::CREATED, &json!(null)),
            "{url}"
        );
    }
}

#[tokio::test]
async fn a_line_break_in_a_redirect_url_does_not_split_headers() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let url = "https://x.test/a\r\nset-cookie: stolen=1";
    let form = account.form_with(one_text_field(), |form| form.redirect_url = Some(url.to_owned())).await;
    let response = edge.visitor.post_form(&submit_path(form), &[("a", "x")]).await;
    assert_eq!(response.status, StatusCode::SEE_OTHER, "the submission is stored, so this is not an error");
    assert_eq!(response.header("location"), "https://x.test/aset-cookie:%20stolen=1");
    assert_eq!(response.header("set-cookie"), "");
}

#[tokio::test]
async fn a_hidden_required_question_does_not_block_submission() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account
        .form(json!([
            {"name": "more", "label": "More", "type": "checkbox"},
            {"name": "what", "label": "What", "type": "text", "required": true,
             "showIf": {"field": "more", "equals": true}},
        ]))
        .await;
    let shown = edge.visitor.get("localhost", &format!("/f/{form}")).await;
    let input = shown.text().lines().find(|line| line.contains("id=\"field-what\"")).unwrap();
    assert!(!input.contains(" required"), "{input}");
    assert!(
        shown.text().contains("form:has(#field-more:checked) #ask-what{display:block}"),
        "{}",
        shown.text()
    );
    let sent = edge.visitor.post_form(&submit_path(form), &[("what", "")]).await;
    assert_eq!(sent.status, StatusCode::SEE_OTHER, "{}", sent.text());
    let sent = edge.visitor.post_form(&submit_path(form), &[("more", "true"), ("what", "")]).await;
    assert_eq!(sent.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_closed_form_renders_a_notice_instead_of_fields() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let closed = account.form_with(one_text_field(), |form| form.closes_at = Some(now())).await;
    let full = account.form_with(one_text_field(), |form| form.max_submissions = Some(1)).await;
    edge.run(&format!("update forms set submission_count = 1 where id = '{full}'")).await;
    for (form, text) in [(closed, "This form is closed."), (full, "This form takes no more answers.")] {
        let shown = edge.visitor.get("localhost", &format!("/f/{form}")).await;
        assert_eq!(shown.status, StatusCode::GONE);
        assert!(shown.text().contains(text) && !shown.text().contains("<form"), "{}", shown.text());
        let posted = edge.visitor.post_form(&submit_path(form), &[("a", "x")]).await;
        assert_eq!(posted.status, StatusCode::GONE);
        assert!(posted.text().contains(text), "a browser gets an HTML page: {}", posted.text());
    }
}

#[tokio::test]
async fn an_unknown_form_renders_a_not_found_page() {
    let edge = Edge::start().await;
    for path in [format!("/f/{}", Uuid::nil()), "/f/no-id".to_owned(), "/f/%00".to_owned()] {
        let response = edge.visitor.get("localhost", &path).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
        assert!(response.text().contains("There is no form at this address."), "{path}: {}", response.text());
        assert!(!response.header("x-request-id").is_empty());
    }
    edge.visitor.post(&submit_path(Uuid::nil()), &json!({"a": "x"})).await.problem(404, "not_found");
}
