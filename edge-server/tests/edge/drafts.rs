//! Drafts of forms: shown as their pages would be, to the console of their owner alone.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::TestResponse;
use crate::harness::Edge;

const JSON: &str = "application/json";
const PATH: &str = "/f/preview";
const BODY: &str = "account=a&name=Contact&fields%5B0%5D.type=text";

/// Lets the console answer with a draft, and posts to the edge.
async fn shown(edge: &Edge, form: &Value) -> TestResponse {
    let draft = json!({ "account_id": Uuid::nil(), "plan": "free", "form": form });
    edge.control_plane.answer_with(200, JSON, &draft.to_string());
    post(edge, BODY).await
}

async fn post(edge: &Edge, body: &str) -> TestResponse {
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("cookie", "session=s"),
        ("origin", "http://localhost"),
        ("accept-encoding", "gzip"),
        ("accept-language", "en"),
    ];
    edge.visitor.send(Method::POST, "localhost", PATH, &headers, body.to_owned()).await
}

/// The page from its heading on, without what a visitor does not see.
fn visible_part(html: &str) -> String {
    let main = html.split_once("<main>").unwrap().1;
    let mut shown = String::new();
    let mut lines =
        main.lines().filter(|line| !line.contains("type=\"hidden\"") && !line.contains("class=\"apart\""));
    lines.by_ref().for_each(|line| shown += &(line.trim().to_owned() + "\n"));
    shown.replace("\n\n", "\n")
}

#[tokio::test]
async fn a_draft_looks_like_the_page_of_the_form_and_nothing_is_stored() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let fields = json!([
        {"name": "mail", "label": "Mail", "type": "email", "required": true, "help": "We answer there"},
        {"name": "plan", "label": "Plan", "type": "select", "options": ["A", "B"], "display": "radio"},
        {"name": "more", "label": "More", "type": "textarea", "showIf": {"field": "plan", "equals": "B"}},
        {"name": "cv", "label": "CV", "type": "file", "accept": ".pdf"},
    ]);
    let form =
        account.form_with(fields.clone(), |form| form.appearance.accent = Some("#0f766e".to_owned())).await;
    let languages = [("accept-language", "en")];
    let page = edge.visitor.send(Method::GET, "localhost", &format!("/f/{form}"), &languages, "").await;
    let name = page.text().split_once("<h1><bdi>").unwrap().1.split_once('<').unwrap().0.to_owned();
    let body = json!({ "name": name, "fields": fields, "appearance": { "accent": "#0f766e" }, "maxSubmissions": null });
    let draft = shown(&edge, &body).await;
    assert_eq!(draft.status, StatusCode::OK, "{}", draft.text());
    let as_draft = visible_part(page.text())
        .replace(&form.to_string(), &Uuid::nil().to_string())
        .replace("type=\"submit\"", "type=\"button\"");
    assert_eq!(visible_part(draft.text()), as_draft);
    let style = |page: &TestResponse| {
        page.text().split_once("<style>").unwrap().1.split_once("<script").map(|one| one.0.to_owned())
    };
    assert!(style(&page).unwrap().trim_end().len() > 1_000);
    assert!(draft.text().contains(style(&page).unwrap().trim_end()), "the styles are the same");
    assert_eq!(draft.header("cache-control"), "no-store");
    let received = edge.control_plane.last();
    assert_eq!((received.target.as_str(), &received.method), ("/console/forms/preview", &Method::POST));
    assert_eq!((received.body.as_ref(), received.header("cookie").as_str()), (BODY.as_bytes(), "session=s"));
    assert_eq!(
        (received.header("origin").as_str(), received.header("accept-encoding").as_str()),
        ("http://localhost", "")
    );
}

#[tokio::test]
async fn clickjacking_a_draft_and_script_in_it_are_impossible() {
    let edge = Edge::start().await;
    let draft =
        shown(&edge, &json!({ "name": "F", "fields": [{"name": "a", "label": "A", "type": "text"}] })).await;
    let policy = draft.header("content-security-policy").to_owned();
    for part in
        ["default-src 'none'", "form-action 'none'", "frame-ancestors 'self'", "base-uri 'none'", "; sandbox"]
    {
        assert!(policy.contains(part), "{part}: {policy}");
    }
    assert!(!policy.contains("script-src") && !policy.contains("allow-"), "{policy}");
    assert_eq!(draft.header("x-frame-options"), "SAMEORIGIN");
    assert_eq!(draft.header("x-content-type-options"), "nosniff");
    assert!(!draft.text().contains("<script"), "{}", draft.text());
    assert!(draft.text().contains("<button type=\"button\">"), "{}", draft.text());
    assert!(!draft.text().contains("form.token\" value=\"A"), "a draft has no token of a form");
}

#[tokio::test]
async fn xss_by_the_texts_of_a_draft_stays_text() {
    let edge = Edge::start().await;
    let hostile = "</style></title><script>alert(1)</script>\"><img src=x onerror=alert(1)>{{ 7*7 }}";
    let draft = json!({ "name": hostile, "submitLabel": "<b>Send", "fields": [
        {"name": "a", "label": hostile, "type": "text", "placeholder": hostile, "help": hostile},
        {"name": "b", "label": "B", "type": "select", "options": [hostile, "x"], "display": "radio"},
        {"name": "c", "label": "C", "type": "multiselect", "options": [hostile]},
        {"name": "d", "label": "D", "type": "text", "showIf": {"field": "b", "equals": hostile}},
        {"name": "e", "label": "E", "type": "file", "accept": "\"><script>"}] });
    let page = shown(&edge, &draft).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text());
    for markup in ["<script", "<img", "<b>Send"] {
        assert!(!page.text().contains(markup), "{markup}: {}", page.text());
    }
    assert!(page.text().contains("&lt;script&gt;alert(1)"), "{}", page.text());
    assert!(page.text().contains("{{ 7*7 }}"), "{}", page.text());
}

#[tokio::test]
async fn css_injection_by_a_name_or_a_colour_is_refused_with_the_reason() {
    let edge = Edge::start().await;
    let field = |name: &str| {
        json!([{"name": name, "label": "A", "type": "checkbox"},
        {"name": "x", "label": "X", "type": "text", "showIf": {"field": name, "equals": true}}])
    };
    let names =
        shown(&edge, &json!({ "name": "F", "fields": field("a}*{background:url(//evil.test)}") })).await;
    assert_eq!(names.status, StatusCode::BAD_REQUEST);
    assert!(names.text().contains("only letters, digits"), "{}", names.text());
    let colour = json!({ "name": "F", "fields": field("a"), "appearance": { "accent": "red}*{x:y" } });
    let colour = shown(&edge, &colour).await;
    assert_eq!(colour.status, StatusCode::BAD_REQUEST);
    for page in [&names, &colour] {
        let style: String =
            page.text().split("<style>").skip(1).map(|rest| rest.split("</style>").next().unwrap()).collect();
        assert!(!style.contains("evil.test") && !style.contains("x:y"), "{style}");
        assert!(page.header("content-security-policy").contains("sandbox"));
    }
    let wrong_type = shown(
        &edge,
        &json!({ "name": "F", "fields": [{"name": "a", "label": "A", "type": "text", "min": "x"}] }),
    )
    .await;
    assert_eq!(wrong_type.status, StatusCode::BAD_REQUEST);
    assert!(wrong_type.text().contains("fields[0].min"), "{}", wrong_type.text());
}

#[tokio::test]
async fn a_draft_that_the_console_refuses_is_not_shown() {
    let edge = Edge::start().await;
    let hostile = "<h1>owned</h1><script>alert(1)</script>";
    for (status, shown) in
        [(403, 403), (409, 409), (401, 401), (303, 401), (429, 429), (413, 413), (500, 503), (200, 503)]
    {
        // The console answers refusals with its own pages, which must not be shown in the frame.
        edge.control_plane.answer_with(status, "text/html", hostile);
        let page = post(&edge, BODY).await;
        assert_eq!(page.status.as_u16(), shown, "{status}");
        assert!(!page.text().contains("owned"), "{status}: {}", page.text());
        assert!(page.header("content-security-policy").contains("frame-ancestors 'self'; sandbox"));
    }
    edge.control_plane.answer_with(200, JSON, "{\"form\": 1}");
    assert_eq!(post(&edge, BODY).await.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_flood_of_bytes_is_refused_and_only_the_base_host_shows_drafts() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    let large = post(&edge, &format!("name={}", "x".repeat(2 << 20))).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(edge.control_plane.all().is_empty());
    let elsewhere = edge.visitor.send(Method::POST, &site.host, PATH, &[], BODY).await;
    assert!(elsewhere.status.is_client_error(), "{}", elsewhere.status);
    let read = edge.visitor.get("localhost", PATH).await;
    assert_eq!(read.status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(edge.control_plane.all().is_empty());
}
