//! Form pages: language, prefilled fields, caching and embedding.

use contract::Change;
use http::{Method, StatusCode};
use serde_json::json;
use store::forms::Form;
use store::mails::Kind;

use crate::client::{NAVIGATION, TestResponse};
use crate::fixtures::{now, one_text_field, submit_path};
use crate::harness::Edge;

async fn get_page(edge: &Edge, path: &str, languages: &str) -> TestResponse {
    edge.visitor.send(Method::GET, "localhost", path, &[("accept-language", languages)], "").await
}

/// The page without its form token, which changes every second.
fn without_token(response: &TestResponse) -> String {
    let (before, after) = response.text().split_once("name=\"form.token\" value=\"").unwrap();
    format!("{before}{}", after.split_once('"').unwrap().1)
}

#[tokio::test]
async fn the_page_uses_the_visitors_preferred_supported_language() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form =
        account.form(json!([{"name": "mail", "label": "Mail", "type": "email", "required": true}])).await;
    let path = format!("/f/{form}");
    for (languages, query, lang, send, wrong) in [
        ("de-AT,de;q=0.9", "", "de", "Absenden", "Bitte geben Sie eine E-Mail-Adresse"),
        ("de", "?lang=fr", "fr", "Envoyer", "Veuillez saisir une adresse e-mail"),
        ("es", "?lang=xx", "es", "Enviar", "Escriba una dirección de correo"),
        ("", "?lang=ja", "ja", "送信", "メールアドレスを入力してください"),
        ("nl", "", "en", "Send", "Please enter an e-mail address"),
        ("", "?lang=ar", "ar", "إرسال", "يرجى إدخال عنوان بريد"),
    ] {
        let page = get_page(&edge, &format!("{path}{query}"), languages).await;
        let direction = if lang == "ar" { "rtl" } else { "ltr" };
        let html = page.text();
        assert!(html.contains(&format!("<html lang=\"{lang}\" dir=\"{direction}\">")), "{lang}: {html}");
        assert!(html.contains(&format!("<button type=\"submit\">{send}</button>")), "{lang}: {html}");
        let keeps = html.contains(&format!("name=\"form.lang\" value=\"{lang}\""));
        assert_eq!(keeps, query.contains(lang), "an explicit language is kept");
        let body = if keeps { format!("mail=nope&form.lang={lang}") } else { "mail=nope".to_owned() };
        let urlencoded = ("content-type", "application/x-www-form-urlencoded");
        let headers = [urlencoded, NAVIGATION, ("accept-language", languages)];
        let refused = edge.visitor.send(Method::POST, "localhost", &submit_path(form), &headers, body).await;
        assert!(refused.text().contains(wrong), "{lang}: {}", refused.text());
        assert!(!refused.text().contains("must be an e-mail address"), "every message is translated");
    }
    let program = edge.visitor.post(&submit_path(form), &json!({"mail": "nope"})).await;
    let problem = program.problem(400, "validation_failed");
    assert_eq!(problem["fieldErrors"][0]["message"], "Mail must be an e-mail address");
}

#[tokio::test]
async fn query_parameters_prefill_declared_fields_only() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account
        .form(json!([
            {"name": "name", "label": "Name", "type": "text"},
            {"name": "source", "label": "Source", "type": "hidden"},
            {"name": "plan", "label": "Plan", "type": "select", "options": ["a", "b"]},
        ]))
        .await;
    let query = "name=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E&source=ads&plan=b&other=nowhere&form.token=x";
    let html = get_page(&edge, &format!("/f/{form}?{query}"), "").await;
    assert_eq!(html.status, StatusCode::OK);
    let html = html.text();
    assert!(html.contains("value=\"&quot;&gt;&lt;script&gt;alert(1)"), "{html}");
    assert!(!html.contains("<script>") && !html.contains("nowhere"), "{html}");
    assert!(html.contains("name=\"source\" value=\"ads\""), "{html}");
    assert!(html.contains("<option value=\"b\" selected>"), "{html}");
    assert!(!html.contains("name=\"form.token\" value=\"x\""), "{html}");
    let bare = get_page(&edge, &format!("/f/{form}"), "").await;
    assert!(
        !bare.text().contains("ads"),
        "values of one request must not leak into another: {}",
        bare.text()
    );
}

/// Requests a page compressed, and returns its HTML beside the response.
async fn get_gzip(edge: &Edge, path: &str) -> (TestResponse, String) {
    let headers = [("accept-encoding", "gzip"), ("accept-language", "en")];
    let response = edge.visitor.send(Method::GET, "localhost", path, &headers, "").await;
    assert_eq!(response.header("content-encoding"), "gzip");
    assert_eq!(response.header("vary"), "accept-encoding, accept-language");
    let html = std::io::read_to_string(flate2::read::GzDecoder::new(&response.body[..])).unwrap();
    (response, html)
}

#[tokio::test]
async fn a_short_url_of_a_large_form_is_not_answered_with_megabytes_rendered_for_it() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let options: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let choices = (0..60)
        .map(|n| json!({"name": format!("f{n}"), "label": "F", "type": "multiselect", "options": options}));
    let text = json!({"name": "name", "label": "N", "type": "text"});
    let small = account.form(json!([text])).await;
    let large = account.form(json!(std::iter::once(text).chain(choices).collect::<Vec<_>>())).await;

    let (response, html) = get_gzip(&edge, &format!("/f/{small}?name=Ada")).await;
    assert!(html.contains("value=\"Ada\"") && response.body.len() < html.len() / 2, "{html}");
    let (response, html) = get_gzip(&edge, &format!("/f/{large}?name=Ada")).await;
    assert!(html.len() > 256 * 1024, "{}", html.len());
    assert!(!html.contains("value=\"Ada\""), "a large form is shown as it is cached");
    assert!(response.body.len() < html.len() / 10, "{} of {} bytes", response.body.len(), html.len());
    let long = format!("/f/{small}?name=Ada&pad={}", "p".repeat(9_000));
    assert!(!get_gzip(&edge, &long).await.1.contains("value=\"Ada\""), "a long query is ignored");
}

#[tokio::test]
async fn a_cached_page_is_identical_and_evicted_with_its_form() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form_with(one_text_field(), |form| form.name = "First".to_owned()).await;
    let path = format!("/f/{form}");
    let first = get_page(&edge, &path, "").await;
    let again = get_page(&edge, &path, "").await;
    assert_eq!(without_token(&first), without_token(&again));
    for name in ["content-security-policy", "cache-control", "content-type", "vary"] {
        assert_eq!(first.header(name), again.header(name), "{name}");
    }
    assert_ne!(first.header("x-request-id"), again.header("x-request-id"));
    let gzip = [("accept-encoding", "gzip")];
    let gzip = edge.visitor.send(Method::GET, "localhost", &path, &gzip, "").await;
    assert_eq!(gzip.header("content-encoding"), "gzip");
    assert!(gzip.body.len() < first.body.len() / 2);

    edge.run(&format!("update forms set name = 'Second', updated_at = now() where id = '{form}'")).await;
    edge.publish_change(Change::Form { form_id: form }).await;
    edge.get_until("localhost", &path, |response| response.text().contains("<bdi>Second</bdi>")).await;
    edge.run("update accounts set suspended_at = now()").await;
    edge.publish_change(Change::Form { form_id: form }).await;
    edge.get_until("localhost", &path, |response| {
        response.status == StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS
    })
    .await;
}

#[tokio::test]
async fn a_closed_form_is_not_served_from_the_cache() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let soon = now() + std::time::Duration::from_millis(1_500);
    let form = account.form_with(one_text_field(), |form| form.closes_at = Some(soon)).await;
    let path = format!("/f/{form}");
    assert_eq!(get_page(&edge, &path, "").await.status, StatusCode::OK);
    edge.get_until("localhost", &path, |response| response.status == StatusCode::GONE).await;
}

#[tokio::test]
async fn an_embedded_form_thanks_inside_its_frame_and_links_onward() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let url = "https://example.com/next".to_owned();
    let form = account.form_with(one_text_field(), |form| form.redirect_url = Some(url.clone())).await;
    let page = get_page(&edge, &format!("/f/{form}?embed=1"), "").await;
    assert!(page.text().contains("<body class=\"embedded\">"), "{}", page.text());
    assert!(page.text().contains("name=\"form.embed\" value=\"1\""), "{}", page.text());
    let sent = edge.visitor.post_form(&submit_path(form), &[("a", "x"), ("form.embed", "1")]).await;
    let thanks = format!("/f/{form}/thanks?embed=1");
    assert_eq!((sent.status, sent.header("location")), (StatusCode::SEE_OTHER, &*thanks));
    let thanks = edge.visitor.get("localhost", &thanks).await;
    let html = thanks.text().replace("&#x2f;", "/");
    assert!(html.contains("data-submitted data-onward=\"https://example.com/next\""), "{html}");
    assert!(html.contains("href=\"https://example.com/next\" target=\"_top\""), "{html}");
}

#[tokio::test]
async fn browsers_cache_and_revalidate_the_scripts() {
    let edge = Edge::start().await;
    for path in ["/embed.js", "/form.js"] {
        let script = edge.visitor.get("localhost", path).await;
        assert_eq!(script.status, StatusCode::OK);
        assert_eq!(script.header("content-type"), "text/javascript; charset=utf-8");
        assert_eq!(script.header("access-control-allow-origin"), "*");
        assert!(script.header("cache-control").starts_with("public, max-age="), "{path}");
        let had = [("if-none-match", script.header("etag"))];
        let had = edge.visitor.send(Method::GET, "localhost", path, &had, "").await;
        assert_eq!((had.status, had.body.len()), (StatusCode::NOT_MODIFIED, 0));
    }
}

#[tokio::test]
async fn only_forms_may_be_framed_by_any_origin() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    for path in [format!("/f/{form}"), format!("/f/{form}/thanks")] {
        let policy = edge.visitor.get("localhost", &path).await;
        assert!(policy.header("content-security-policy").contains("frame-ancestors *"), "{path}");
    }
}

#[tokio::test]
async fn a_form_without_webhooks_stays_cached_after_a_submission_with_an_email() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let shape = |form: &mut Form| {
        form.notify_email = Some("owner@example.com".to_owned());
        form.success_message = Some("As it was".to_owned());
    };
    let form = account.form_with(one_text_field(), shape).await;
    // Or the form is loaded again as the subscription begins.
    edge.wait_until_subscribed().await;
    let mut messages = Vec::new();
    for _ in 0..3 {
        let response = edge.visitor.post(&submit_path(form), &json!({"a": "x"})).await;
        messages.push(response.json()["message"].as_str().unwrap().to_owned());
        // No signal announces this change, so a cached form does not show it.
        edge.run("update forms set success_message = 'As it was when it was loaded again'").await;
    }
    assert_eq!(messages, ["As it was"; 3]);
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    let mails = store::mails::list_due(&mut conn, Kind::Submission, now(), 10).await.unwrap();
    assert_eq!(mails.len(), 3);
}
