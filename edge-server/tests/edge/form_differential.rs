//! Form pages from the fast path and from hyper: the same request bytes must get the same response, in every language
//! and for prefilled, closed and protected forms.

use chrono::TimeDelta;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixtures::{Account, now};
use crate::harness::Edge;
use crate::parser_differential::{ParserDifferential, is_from_fast_path};

const OPEN: &str = "0192f0c1-0000-7000-8000-000000000001";
/// Requires a proof of work.
const PROOF: &str = "0192f0c1-0000-7000-8000-000000000002";
const CLOSED: &str = "0192f0c1-0000-7000-8000-000000000003";
const FULL: &str = "0192f0c1-0000-7000-8000-000000000004";
/// Belongs to a suspended account.
const SUSPENDED: &str = "0192f0c1-0000-7000-8000-000000000005";
/// Every edge has the same form ids, so that the pages are identical.
pub(crate) const FORMS: [&str; 5] = [OPEN, PROOF, CLOSED, FULL, SUSPENDED];
const TOKEN: &str = "name=\"form.token\" value=\"";

/// Inserts the forms and requests each page, so that it is in the cache.
pub(crate) async fn prepare(edge: &Edge, site: &Account<'_>) {
    let suspended = edge.account("loud-otter").await;
    for (at, id) in FORMS.into_iter().enumerate() {
        let account = if id == SUSPENDED { &suspended } else { site };
        let fields = json!([
            {"name": "name", "label": "Name", "type": "text", "required": true},
            {"name": "news", "label": "News?", "type": "checkbox"},
            {"name": "mail", "label": "Mail", "type": "email", "showIf": {"field": "news", "equals": true}},
            {"name": "cv", "label": "CV", "type": "file"},
            {"name": "source", "label": "Source", "type": "hidden"},
        ]);
        let shape = |form: &mut store::forms::Form| {
            form.id = id.parse().unwrap();
            form.name = format!("Form {at}");
            form.spam.proof_of_work = id == PROOF;
            form.closes_at = (id == CLOSED).then(|| now() - TimeDelta::hours(1));
            form.max_submissions = (id == FULL).then_some(1);
            form.redirect_url = (id == OPEN).then(|| "https://example.com/next".to_owned());
        };
        account.form_with(fields, shape).await;
    }
    edge.run(&format!("update forms set submission_count = 1 where id = '{FULL}'")).await;
    edge.run(&format!("update accounts set suspended_at = now() where id = '{}'", suspended.id)).await;
    for id in FORMS {
        for path in [format!("/f/{id}"), format!("/f/{id}?embed=1")] {
            for language in ["en", "de"] {
                let headers = [("accept-language", language)];
                edge.visitor.send(http::Method::GET, "localhost", &path, &headers, "").await;
            }
        }
    }
}

/// The page without its form token, which holds a signed timestamp.
pub(crate) fn without_token(body: &str) -> String {
    let Some((before, (token, after))) =
        body.split_once(TOKEN).and_then(|(before, rest)| Some((before, rest.split_once('"')?)))
    else {
        return body.to_owned();
    };
    let is_token = token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_graphic());
    assert!(is_token, "{token}");
    format!("{before}{TOKEN}\"{}", without_token(after))
}

fn get(id: &str, lines: &str) -> String {
    format!("GET /f/{id} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n")
}

/// The response, and whether it came from the fast path.
async fn first(edge: &Edge, request: &str) -> (String, bool) {
    let responses = edge.visitor.raw(&crate::request_fuzz::with_closing_request(request.as_bytes())).await;
    let is_fast = is_from_fast_path(&responses);
    (responses, is_fast)
}

#[tokio::test]
async fn the_fast_path_answers_plain_form_requests_in_every_language() {
    let both = ParserDifferential::start().await;
    let gzip = "Accept-Encoding: gzip, deflate, br, zstd\r\n";
    for request in [
        get(OPEN, ""),
        get(PROOF, ""),
        get(OPEN, "").replace("GET", "HEAD"),
        get(OPEN, "Accept-Language: de-AT,de;q=0.9,en;q=0.8\r\n"),
        // Not in the cache yet: rendered for this request.
        get(OPEN, "Accept-Language: ja\r\n"),
        get(&format!("{OPEN}?lang=ar&embed=1"), "Accept-Language: de\r\n"),
        get(OPEN, gzip),
    ] {
        let (response, is_fast) = first(&both.fast, &request).await;
        assert!(is_fast && response.starts_with("HTTP/1.1 200"), "{request}{response}");
        let (response, is_fast) = first(&both.hyper, &request).await;
        assert!(!is_fast && response.starts_with("HTTP/1.1 200"), "{request}{response}");
    }
    for request in [
        get(CLOSED, ""),
        get(FULL, ""),
        get(SUSPENDED, ""),
        get(&format!("{OPEN}?name=Ada"), ""),
        get(OPEN, "Accept-Language: de\r\nAccept-Language: fr\r\n"),
        get(OPEN, "").replace("GET", "POST"),
    ] {
        let (response, is_fast) = first(&both.fast, &request).await;
        assert!(!is_fast, "{request}{response}");
    }
}

#[tokio::test]
async fn form_responses_match_hypers_in_every_language() {
    let both = ParserDifferential::start().await;
    let languages = [
        "de",
        "de-AT,de;q=0.9,en;q=0.8",
        "nl, fr-CA;q=0.8, en;q=0.5",
        "DE_ch",
        "en;q=0.2, ja ;q=0.7",
        "ar",
        "de;q=0, es",
        "de;q=x,,;;",
        "*",
        "",
        "de\tfr",
        "d\u{e9}, fr",
        "fr\r\nAccept-Language: de",
        "de\r\nX: y\r\naccept-language: fr",
    ];
    let with = languages.map(|language| get(OPEN, &format!("Accept-Language: {language}\r\n")));
    let written: Vec<&str> = with.iter().map(String::as_str).collect();
    both.compare_each(&written).await;
}

#[tokio::test]
async fn prefilled_closed_and_protected_forms_match_hypers() {
    let both = ParserDifferential::start().await;
    let queries = [
        "?",
        "?lang=fr",
        "?lang=xx",
        "?lang=de&lang=fr",
        "?lang=de-CH&embed=1",
        "?embed=1",
        "?embed=yes&&",
        "?%6cang=de",
        "?lang=d%65",
        "?name=Ada+L&source=%3Cb%3E&news=true",
        "?name=%22%3E%3Cscript%3E",
        "?other=1",
        "?lang=de&name=Ada",
        "?name=%ff&%=&==",
        "/",
        "/thanks",
        "/thanks?lang=de&embed=1",
        "/x",
    ];
    let mut all: Vec<String> = queries.map(|query| get(&format!("{OPEN}{query}"), "")).to_vec();
    for id in FORMS {
        all.extend([get(id, ""), get(id, "").replace("GET", "HEAD"), get(id, "Accept-Language: ar\r\n")]);
    }
    let ids = [OPEN.replace('-', ""), OPEN.to_uppercase(), format!("urn:uuid:{OPEN}"), format!("{{{OPEN}}}")];
    all.extend(ids.iter().map(|id| get(id, "")));
    all.extend(["", "nope", "0192f0c1-0000-7000-8000-00000000ffff"].map(|id| get(id, "")));
    let written: Vec<&str> = all.iter().map(String::as_str).collect();
    both.compare_each(&written).await;
}

#[tokio::test]
async fn form_requests_with_other_headers_match_hypers() {
    let both = ParserDifferential::start().await;
    let form = &*get(OPEN, "");
    let page = "GET / HTTP/1.1\r\nHost: quiet-otter.localhost\r\n\r\n";
    let hidden = "POST /api/forms HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut all = vec![
        form.repeat(40),
        [form, page, form, &get(CLOSED, ""), form, &get(PROOF, "")].concat(),
        [page, form, &form.replace("GET", "HEAD"), page].concat(),
        format!("{}{hidden}{form}", get(OPEN, "Content-Length: 4\r\n")),
        format!("{}0\r\n\r\n{form}", get(OPEN, "Transfer-Encoding: chunked\r\n")),
    ];
    for lines in [
        "Accept-Encoding: gzip\r\n",
        "Accept-Encoding: br\r\n",
        "If-None-Match: *\r\n",
        "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        "X-Request-Id: a-request-of-mine\r\n",
        "X-Request-Id: <no word>\r\n",
        "Range: bytes=0-1\r\n",
        "Content-Length: 0\r\n",
        "Connection: close\r\n",
        "Cookie: a=b\r\nUser-Agent: Mozilla/5.0\r\n",
        "Host: quiet-otter.localhost\r\n",
    ] {
        all.push(get(OPEN, lines));
    }
    for host in ["quiet-otter.localhost", "LOCALHOST", "localhost.", "127.0.0.1:80", "absent.test", ""] {
        all.push(form.replace("localhost", host));
    }
    for method in ["HEAD", "POST", "OPTIONS", "get"] {
        all.push(form.replace("GET", method));
    }
    let written: Vec<&str> = all.iter().map(String::as_str).collect();
    both.compare_each(&written).await;
}

#[tokio::test]
async fn the_fast_path_waits_for_an_expired_form_to_reload() {
    let edge = Edge::with(&["cache.max_age=50ms"]).await;
    let account = edge.account("quiet-otter").await;
    let form =
        account.form_with(crate::fixtures::one_text_field(), |form| form.name = "Old".to_owned()).await;
    let mut connection = edge.visitor.connect().await;
    let mut fetch = async || {
        connection.write_all(get(&form.to_string(), "").as_bytes()).await.unwrap();
        let mut response = Vec::new();
        while !response.trim_ascii_end().ends_with(b"</html>") {
            assert!(connection.read_buf(&mut response).await.unwrap() > 0);
        }
        let response = String::from_utf8(response).unwrap();
        assert!(is_from_fast_path(&response), "{response}");
        response
    };
    assert!(fetch().await.contains("<bdi>Old</bdi>"));
    edge.run(&format!("update forms set name = 'New', updated_at = now() where id = '{form}'")).await;
    sandbox::test::until(async || fetch().await.contains("<bdi>New</bdi>")).await;
}
