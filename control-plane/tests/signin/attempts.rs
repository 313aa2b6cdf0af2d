//! Going out to a provider and coming back: this browser, once, in time, and only to a page of ours.

use chrono::TimeDelta;
use http::{Method, StatusCode};
use serde_json::Value;

use crate::browser::{Answer, Browser, send};
use crate::stand::Stand;

fn is_refused(answer: &Answer, browser: &Browser) {
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
    assert!(answer.text.contains("<h1>Please sign in again</h1>"), "{}", answer.text);
    assert!(!browser.cookies.contains_key("session"));
}

#[tokio::test]
async fn whoever_signs_in_is_back_where_they_wanted_to_go() {
    let stand = Stand::start().await;
    let mut browser = stand.browser();
    let back = browser.sign_in("a", &stand.a, "ada", "/claim/abc?x=y").await;
    assert_eq!((back.status, back.header("location")), (StatusCode::SEE_OTHER, "/claim/abc?x=y"));
    assert_eq!(back.header("referrer-policy"), "no-referrer");
    let cookie = back.header("set-cookie");
    assert!(cookie.starts_with("session=") && cookie.ends_with("; HttpOnly; SameSite=Lax"), "{cookie}");
    assert!(browser.is_signed_in().await);
}

#[tokio::test]
async fn nobody_is_sent_to_another_host_afterwards() {
    let stand = Stand::start().await;
    for elsewhere in ["//evil.test", "https://evil.test/", "/\\evil.test", "/\t/evil.test"] {
        let mut browser = stand.browser();
        let back = browser.sign_in("a", &stand.a, "ada", elsewhere).await;
        assert_eq!(back.header("location"), "/account", "{elsewhere:?}");
    }
}

#[tokio::test]
async fn a_state_that_was_never_given_out_signs_nobody_in() {
    let stand = Stand::start().await;
    let mut browser = stand.browser();
    let brought = stand.a.approve(&browser.begin("a", "/account").await, "ada");
    for wrong in ["code=code-1&state=guessed", "code=code-1", "code=code-1&state=", ""] {
        is_refused(&browser.come_back("a", wrong).await, &browser);
    }
    assert_eq!(stand.a.exchanges(), 0, "no code was shown to anybody");
    assert_eq!(browser.come_back("a", &brought).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn coming_back_a_second_time_signs_nobody_in() {
    let stand = Stand::start().await;
    let mut browser = stand.browser();
    let brought = stand.a.approve(&browser.begin("a", "/account").await, "ada");
    assert_eq!(browser.come_back("a", &brought).await.status, StatusCode::SEE_OTHER);
    browser.cookies.remove("session");
    is_refused(&browser.come_back("a", &brought).await, &browser);
    assert_eq!(stand.a.exchanges(), 1);
}

#[tokio::test]
async fn the_same_code_under_a_new_state_signs_nobody_in() {
    let stand = Stand::start().await;
    let mut browser = stand.browser();
    let first = stand.a.approve(&browser.begin("a", "/account").await, "ada");
    browser.come_back("a", &first).await;
    let mut thief = stand.browser();
    let second = stand.a.approve(&thief.begin("a", "/account").await, "eve");
    let replayed = thief.come_back("a", &second.replace("code-2", "code-1")).await;
    assert_eq!(replayed.status, StatusCode::BAD_REQUEST, "{}", replayed.text);
    assert!(!thief.is_signed_in().await);
}

#[tokio::test]
async fn what_another_browser_began_can_not_be_finished_here() {
    let stand = Stand::start().await;
    let (mut attacker, mut victim) = (stand.browser(), stand.browser());
    let brought = stand.a.approve(&attacker.begin("a", "/account").await, "eve");
    is_refused(&victim.come_back("a", &brought).await, &victim);
    // Not even by a browser that began something itself.
    victim.begin("a", "/account").await;
    is_refused(&victim.come_back("a", &brought).await, &victim);
    assert_eq!(stand.a.exchanges(), 0);
    assert_eq!(attacker.come_back("a", &brought).await.status, StatusCode::SEE_OTHER, "nor is it spent");
}

#[tokio::test]
async fn two_tabs_of_one_browser_do_not_disturb_each_other() {
    let stand = Stand::start().await;
    let mut browser = stand.browser();
    let first = stand.a.approve(&browser.begin("a", "/claim/one").await, "ada");
    let second = stand.a.approve(&browser.begin("a", "/claim/two").await, "ada");
    assert_eq!(browser.come_back("a", &first).await.header("location"), "/claim/one");
    assert_eq!(browser.come_back("a", &second).await.header("location"), "/claim/two");
}

#[tokio::test]
async fn an_attempt_ends_with_its_window() {
    let stand = Stand::start().await;
    for (after, expected) in
        [(TimeDelta::seconds(599), StatusCode::SEE_OTHER), (TimeDelta::seconds(600), StatusCode::BAD_REQUEST)]
    {
        let mut browser = stand.browser();
        let brought = stand.a.approve(&browser.begin("a", "/account").await, "ada");
        stand.later(after);
        assert_eq!(browser.come_back("a", &brought).await.status, expected, "after {after}");
    }
}

#[tokio::test]
async fn what_one_provider_was_asked_another_can_not_answer() {
    let stand = Stand::start().await;
    let mut browser = stand.browser();
    let brought = stand.a.approve(&browser.begin("a", "/account").await, "ada");
    is_refused(&browser.come_back("b", &brought).await, &browser);
    assert_eq!((stand.a.exchanges(), stand.b.exchanges()), (0, 0));
}

#[tokio::test]
async fn whoever_cancels_is_told_and_may_try_again() {
    let stand = Stand::start().await;
    let mut browser = stand.browser();
    let way_out = browser.begin("a", "/claim/abc").await;
    let state = way_out.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let back = browser.come_back("a", &format!("error=access_denied&state={state}")).await;
    assert_eq!(back.status, StatusCode::BAD_REQUEST);
    assert!(
        back.text.contains("<h1>You are not signed in</h1>") && back.text.contains("returnTo=%2Fclaim%2Fabc"),
        "{}",
        back.text
    );
}

#[tokio::test]
async fn a_provider_that_is_not_set_up_is_a_problem_that_says_how() {
    let stand = Stand::start().await;
    let ask = async |path: &str| {
        let answer = send(&stand.router, Method::GET, path, &[], "").await;
        let problem: Value = serde_json::from_str(&answer.text).unwrap();
        (answer.status, problem)
    };
    for path in ["/api/auth/oauth/google", "/api/auth/oauth/google/callback?code=x&state=y"] {
        let (status, problem) = ask(path).await;
        assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &"not_found".into()));
        assert!(problem["hint"].as_str().unwrap().contains("signin.providers.google.client_id"), "{problem}");
    }
    let (status, problem) = ask("/api/auth/oauth/nobody").await;
    assert_eq!((status, &problem["hint"]), (StatusCode::NOT_FOUND, &Value::Null));
    let page = stand.browser().get("/api/auth/oauth/google").await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (StatusCode::NOT_FOUND, "text/html; charset=utf-8")
    );
}

#[tokio::test]
async fn one_address_begins_so_often_and_is_told_when_to_come_back() {
    let stand = Stand::with(&["signin.max_attempts_per_hour=2"]).await;
    for _ in 0..2 {
        stand.browser().begin("a", "/account").await;
    }
    let answer = send(&stand.router, Method::GET, "/api/auth/oauth/a", &[], "").await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS, "{}", answer.text);
    assert!(answer.header("retry-after").parse::<u32>().unwrap() <= 3_600);
    let page = stand.browser().get("/api/auth/oauth/a").await;
    assert_eq!(page.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(page.text.contains("<h1>") && !page.header("retry-after").is_empty(), "{}", page.text);
}

#[tokio::test]
async fn a_provider_that_is_away_is_said_to_be() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let issuer = format!("signin.providers.a.issuer=http://{nobody}");
    let stand = Stand::with(&[&issuer]).await;
    let page = stand.browser().get("/api/auth/oauth/a").await;
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(page.text.contains("<h1>Back soon</h1>"), "{}", page.text);
}

#[tokio::test]
async fn what_is_kept_of_an_attempt_reveals_nothing_and_is_cleared_away() {
    let stand = Stand::start().await;
    let mut browser = stand.browser();
    let way_out = browser.begin("a", "/claim/a-secret-token").await;
    let kept = "select s::text from sign_ins s";
    let rows = stand.texts(kept).await;
    assert_eq!(rows.len(), 1);
    let given = way_out.query_pairs().filter(|(name, _)| name == "state" || name == "nonce");
    for secret in given
        .map(|(_, value)| value.into_owned())
        .chain(["a-secret-token".to_owned(), browser.cookies["signin"].clone()])
    {
        let spelled = secret.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert!(!rows[0].contains(&secret) && !rows[0].contains(&spelled), "{secret}");
    }
    stand.later(TimeDelta::hours(1));
    stand.browser().begin("a", "/account").await;
    assert_eq!(stand.texts(kept).await.len(), 1, "the old one is gone");
}
