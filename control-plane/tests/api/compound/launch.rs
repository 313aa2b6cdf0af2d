//! A launch makes a site live, and the same launch again changes nothing.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{get, launch, once, page, projects, refused, with};
use crate::harness::Api;
use crate::no_side_effects::Snapshot;

const PATH: &str = "/api/launch";

fn statuses(response: &Value) -> Vec<&str> {
    response["pages"].as_array().unwrap().iter().map(|page| page["status"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_launch_creates_the_pages_the_name_and_the_analytics_once() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let index = with(page("index"), json!({"css": "p { color: red }"}));
    let body = json!({"subdomain": "my-site", "pages": [index, page("about")]});
    let (status, launched) = launch(&api, &key, &body).await;
    assert_eq!(status, StatusCode::CREATED, "{launched}");
    assert_eq!(
        (&launched["siteUrl"], &launched["subdomain"], &launched["renamed"]),
        (&json!("http://my-site.localhost:8080"), &json!("my-site"), &json!(true))
    );
    assert_eq!(statuses(&launched), ["created", "created"]);
    let counts = ["created", "updated", "unchanged"].map(|name| launched[name].as_u64().unwrap());
    assert_eq!(counts, [2, 0, 0]);
    assert_eq!(launched["pages"][0]["subdomainUrl"], "http://my-site.localhost:8080/");
    assert_eq!(launched["pages"][1]["subdomainUrl"], "http://my-site.localhost:8080/about");

    let read = get(&api, &key, &format!("/api/pages/{}", launched["pages"][0]["id"].as_str().unwrap())).await;
    assert_eq!((&read["css"], &read["isPublished"]), (&json!("p { color: red }"), &json!(true)));
    let listed = get(&api, &key, "/api/analytics/sites").await;
    let site = &listed["sites"][0];
    assert_eq!(
        (&site["id"], listed["sites"].as_array().unwrap().len()),
        (&launched["analyticsSite"]["id"], 1)
    );
    assert_eq!(
        (&site["subdomainId"], &site["domain"], &site["siteToken"]),
        (&launched["subdomainId"], &json!("my-site.localhost"), &launched["analyticsSite"]["siteToken"])
    );
    assert_eq!(
        get(&api, &key, "/api/account").await["subdomain"],
        "my-site",
        "the new name is visible at once"
    );
    assert_eq!(projects(&api, &key).await, 3);

    // More often than a subdomain may be renamed in a day.
    let before = Snapshot::take(&api).await;
    for _ in 0..5 {
        let (status, again) = launch(&api, &key, &body).await;
        assert_eq!((status, &again["renamed"]), (StatusCode::OK, &json!(false)), "{again}");
        assert_eq!(statuses(&again), ["unchanged", "unchanged"]);
        assert_eq!(again["analyticsSite"], launched["analyticsSite"]);
        assert_eq!(again["pages"][1]["id"], launched["pages"][1]["id"]);
    }
    assert_eq!(before.check().await, Ok(()), "the same launch changes no row");
}

#[tokio::test]
async fn a_launched_update_has_a_version_to_roll_back_to() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let styled = with(page("index"), json!({"css": "p {}"}));
    let (_, first) = launch(&api, &key, &json!({"pages": [styled, page("about")]})).await;
    let index = format!("/api/pages/{}", first["pages"][0]["id"].as_str().unwrap());
    let changed = with(page("index"), json!({"html": "<p>new"}));
    let (status, second) = launch(&api, &key, &json!({"pages": [page("about"), changed]})).await;
    assert_eq!((status, statuses(&second)), (StatusCode::OK, vec!["unchanged", "updated"]), "{second}");
    let read = get(&api, &key, &index).await;
    assert_eq!((&read["html"], &read["css"]), (&json!("<p>new"), &json!("p {}")), "the style sheet stays");

    let versions = get(&api, &key, &format!("{index}/versions")).await["versions"].clone();
    assert_eq!(versions.as_array().unwrap().len(), 2);
    let oldest = json!({"versionId": versions[1]["id"]});
    let (status, back) = api.send(Method::POST, &format!("{index}/rollback"), Some(&key), &oldest).await;
    assert_eq!((status, &back["html"]), (StatusCode::OK, &json!("<p>index")), "{back}");

    let bare = with(page("index"), json!({"css": null}));
    let (_, third) = launch(&api, &key, &json!({"pages": [bare, page("new")]})).await;
    assert_eq!(statuses(&third), ["updated", "created"]);
    assert_eq!(get(&api, &key, &index).await["css"], Value::Null);
    assert_eq!(projects(&api, &key).await, 4, "three pages and their analytics site");
}

#[tokio::test]
async fn a_launched_page_is_visible_even_if_it_was_hidden() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let hidden = with(page("index"), json!({"isPublished": false}));
    let later = with(page("later"), json!({"publishAt": "2090-01-01T00:00:00Z"}));
    for page in [&hidden, &later] {
        let (status, created) = api.send(Method::POST, "/api/pages", Some(&key), page).await;
        assert_eq!((status, &created["isPublished"]), (StatusCode::CREATED, &json!(false)));
    }
    let (_, launched) = launch(&api, &key, &json!({"pages": [page("index"), page("later")]})).await;
    assert_eq!(statuses(&launched), ["updated", "updated"]);
    for page in get(&api, &key, "/api/pages").await["pages"].as_array().unwrap() {
        assert_eq!((&page["isPublished"], &page["publishAt"]), (&json!(true), &Value::Null));
    }
}

#[tokio::test]
async fn a_site_is_launched_on_the_requested_subdomain_without_analytics() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let name = json!({"name": "second-one"});
    let (_, second) = api.send(Method::POST, "/api/account/subdomains", Some(&key), &name).await;
    let body = json!({
        "pages": [page("index")], "subdomainId": second["id"], "subdomain": "renamed-one", "analytics": false
    });
    let (status, launched) = launch(&api, &key, &body).await;
    assert_eq!(status, StatusCode::CREATED, "{launched}");
    assert_eq!(
        (&launched["subdomainId"], &launched["siteUrl"], &launched["analyticsSite"]),
        (&second["id"], &json!("http://renamed-one.localhost:8080"), &Value::Null)
    );
    assert_eq!(get(&api, &key, "/api/analytics/sites").await["sites"], json!([]));

    // The analytics site of a subdomain is used, whichever call has made it, and its host follows a rename.
    let site = json!({"name": "S", "subdomainId": second["id"], "domain": "renamed-one.localhost"});
    let (_, site) = api.send(Method::POST, "/api/analytics/sites", Some(&key), &site).await;
    let body = json!({"pages": [page("index")], "subdomainId": second["id"], "subdomain": "third-one"});
    let (status, launched) = launch(&api, &key, &body).await;
    assert_eq!((status, &launched["analyticsSite"]["id"]), (StatusCode::OK, &site["site"]["id"]));
    let listed = get(&api, &key, "/api/analytics/sites").await;
    assert_eq!(listed["sites"][0]["domain"], "third-one.localhost");
}

#[tokio::test]
async fn a_refused_launch_leaves_nothing_behind() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (other, _) = api.trial_on(Plan::Pro).await;
    let foreign = get(&api, &other, "/api/account/subdomain").await;
    launch(&api, &key, &json!({"pages": [page("index")]})).await;

    let invalid = [
        (
            json!([page("fine"), with(page("bad"), json!({"html": "x".repeat(512 * 1024 + 1)}))]),
            "pages[1].html",
        ),
        (json!([page("UPPER")]), "pages[0].slug"),
        (json!([page("one"), page("two"), page("one")]), "pages[2].slug"),
        (json!([{"slug": "one", "title": "T"}]), "pages[0].html"),
        (json!([with(page("one"), json!({"title": 7}))]), "pages[0].title"),
        (json!([with(page("one"), json!({"title": "a\u{0}b"}))]), "pages[0].title"),
        (json!([with(page("one"), json!({"colour": 1}))]), "pages[0].colour"),
        (json!((0..201).map(|at| page(&format!("page-{at}"))).collect::<Vec<_>>()), "pages"),
        (json!([]), "pages"),
        (json!({}), "pages"),
    ];
    for (pages, field) in invalid {
        let problem = refused(&api, &key, PATH, &json!({"pages": pages}), (400, "validation_failed")).await;
        let error = &problem["fieldErrors"][0];
        assert_eq!(error["field"], field, "{problem}");
        assert!(error["message"].as_str().unwrap().starts_with(field), "{problem}");
    }
    let new = json!([page("new"), with(page("index"), json!({"html": "changed"}))]);
    let taken = json!({"pages": new, "subdomain": foreign["subdomain"]});
    let problem = refused(&api, &key, PATH, &taken, (409, "conflict")).await;
    assert!(problem["hint"].as_str().unwrap().contains("another name"), "{problem}");
    for subdomain_id in [json!(Uuid::nil()), foreign["id"].clone()] {
        let body = json!({"pages": new, "subdomainId": subdomain_id, "subdomain": "my-site"});
        refused(&api, &key, PATH, &body, (404, "not_found")).await;
    }
    for name in ["www", "ab", "A_b", "xn--80ak6aa92e"] {
        let body = json!({"pages": new, "subdomain": name});
        let problem = refused(&api, &key, PATH, &body, (400, "validation_failed")).await;
        assert_eq!(problem["fieldErrors"][0]["field"], "subdomain");
    }
    for name in ["name-one", "name-two", "name-three"] {
        assert_eq!(launch(&api, &key, &json!({"pages": [page("index")], "subdomain": name})).await.0, 200);
    }
    refused(&api, &key, PATH, &json!({"pages": new, "subdomain": "name-four"}), (429, "rate_limited")).await;
}

#[tokio::test]
async fn only_new_pages_and_a_new_analytics_site_count_towards_the_plan() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let pages: Vec<Value> = (0..10).map(|at| page(&format!("page-{at}"))).collect();
    let problem =
        refused(&api, &key, PATH, &json!({"pages": pages, "subdomain": "my-site"}), (403, "quota_exceeded"))
            .await;
    assert_eq!((&problem["limit"], &problem["used"]), (&json!(10), &json!(0)));
    assert!(problem["detail"].as_str().unwrap().contains("would need 11"), "{problem}");
    let (status, launched) = launch(&api, &key, &json!({"pages": pages, "analytics": false})).await;
    assert_eq!(status, StatusCode::CREATED, "{launched}");
    assert_eq!(projects(&api, &key).await, 10);

    let changed: Vec<Value> =
        pages.iter().map(|page| with(page.clone(), json!({"html": "changed"}))).collect();
    let (status, launched) = launch(&api, &key, &json!({"pages": changed, "analytics": false})).await;
    assert_eq!((status, &launched["updated"]), (StatusCode::OK, &json!(10)), "updates count for nothing");
    let one_more = json!({"pages": [page("page-0"), page("one-more")], "analytics": false});
    let problem = refused(&api, &key, PATH, &one_more, (403, "quota_exceeded")).await;
    assert_eq!((&problem["limit"], &problem["used"]), (&json!(10), &json!(10)));
    refused(&api, &key, PATH, &json!({"pages": [page("page-0")]}), (403, "quota_exceeded")).await;
}

#[tokio::test]
async fn two_hundred_pages_and_several_megabytes_are_launched_at_once() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Scale).await;
    let html = "x".repeat(512 * 1024);
    let pages: Vec<Value> = (0..200)
        .map(|at| {
            let page = page(&format!("page-{at}"));
            if at < 12 { with(page, json!({"html": html})) } else { page }
        })
        .collect();
    let body = json!({"pages": pages});
    let (status, launched) = launch(&api, &key, &body).await;
    assert_eq!((status, &launched["created"]), (StatusCode::CREATED, &json!(200)));
    let slugs: Vec<&str> =
        launched["pages"].as_array().unwrap().iter().map(|page| page["slug"].as_str().unwrap()).collect();
    assert!(slugs.iter().enumerate().all(|(at, slug)| *slug == format!("page-{at}")), "in order: {slugs:?}");
    let (status, again) = launch(&api, &key, &body).await;
    assert_eq!((status, &again["unchanged"]), (StatusCode::OK, &json!(200)));
    let beyond = json!({"pages": [with(page("index"), json!({"html": "x".repeat((160 << 20) + 1)}))]});
    let (status, problem) = launch(&api, &key, &beyond).await;
    assert_eq!((status, &problem["code"]), (StatusCode::PAYLOAD_TOO_LARGE, &json!("payload_too_large")));
}

#[tokio::test]
async fn a_repeated_launch_is_replayed() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let body = json!({"pages": [page("index")], "subdomain": "my-site"});
    let (status, headers, first) = api.exchange(once(&key, PATH, &body)).await;
    assert_eq!(
        (status, headers.contains_key("idempotent-replayed")),
        (StatusCode::CREATED, false),
        "{first}"
    );
    let before = Snapshot::take(&api).await;
    let (status, headers, again) = api.exchange(once(&key, PATH, &body)).await;
    assert_eq!((status, &headers["idempotent-replayed"]), (StatusCode::CREATED, &"true".parse().unwrap()));
    assert_eq!(again["pages"], first["pages"]);
    assert_eq!(before.check().await, Ok(()));
    let other = json!({"pages": [page("other")]});
    let (status, _, problem) = api.exchange(once(&key, PATH, &other)).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("idempotency_mismatch")));
}
