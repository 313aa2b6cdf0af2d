//! Previews: a site is built beside the live one, and goes live later as it would have gone at once.

use chrono::{DateTime, TimeDelta, Utc};
use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::owner::{Owner, zip_of};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// A build with every kind of file, which differs in the text of its pages.
fn build(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let page = |body: &str| format!("<title>{text}</title>{body}").into_bytes();
    vec![
        ("dist/index.html", page("<img src=img/a.png><link rel=stylesheet href=/s/a.css>")),
        ("dist/docs/index.html", page("<a href=../>up</a><img src=/none.png>")),
        ("dist/a b.html", page("no title in the slug")),
        ("dist/a-b.html", b"<p>no title at all".to_vec()),
        ("dist/unreadable.html", b"<p>\0".to_vec()),
        ("dist/large.html", vec![b'x'; 600_000]),
        ("dist/img/a.png", PNG.to_vec()),
        ("dist/s/a.css", b"b{background:url(../img/a.png)}".to_vec()),
        ("dist/app.js", b"1".to_vec()),
        ("dist/_redirects", b"/old /a-b 301\nnonsense\n".to_vec()),
        ("dist/_headers", b"/*\n Referrer-Policy: no-referrer\n Set-Cookie: a=b\n".to_vec()),
        ("dist/.env", b"secret".to_vec()),
        ("package.json", b"{}".to_vec()),
    ]
}

fn borrowed<'a>(files: &'a [(&'static str, Vec<u8>)]) -> Vec<(&'static str, &'a [u8])> {
    files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect()
}

/// The stored rules of a deploy, as text.
async fn assert_rules_equal(owner: &Owner, one: &Value, other: &Value) {
    let [one, other] = [one, other].map(|deploy| deploy["deployId"].as_str().unwrap());
    let statement = format!(
        "do $$ declare same boolean; begin
             select (select rules from deploys where id = '{one}') = (select rules from deploys where id = '{other}')
                 into same;
             assert same;
         end $$"
    );
    owner.api.execute(&statement).await.unwrap();
}

/// A response without what differs between two deploys of the same files.
fn comparable(mut response: Value) -> Value {
    for member in ["deployId", "previousDeployId", "_meta", "_next"] {
        response.as_object_mut().unwrap().remove(member);
    }
    for page in response["pages"].as_array_mut().unwrap() {
        page.as_object_mut().unwrap().remove("id");
        page["subdomainUrl"] =
            json!(page["subdomainUrl"].as_str().unwrap().split_once("localhost").unwrap().1);
    }
    response["siteUrl"] = Value::Null;
    response
}

#[tokio::test]
async fn a_preview_goes_live_with_the_same_pages_and_bytes_as_a_deploy_at_once() {
    let (at_once, later) = (Owner::with_plan(Plan::Pro).await, Owner::with_plan(Plan::Pro).await);
    let mut responses = Vec::new();
    for text in ["first", "second"] {
        let files = build(text);
        let direct = at_once.deploy(&borrowed(&files)).await;
        let preview = later.preview(&borrowed(&files)).await;
        for member in ["files", "notes", "errors", "missingAssets", "assets"] {
            assert_eq!(preview[member], direct[member], "{member}");
        }
        let (status, published) = later.publish(&preview).await;
        assert_eq!(status, StatusCode::OK, "{published}");
        assert_eq!(comparable(published.clone()), comparable(direct.clone()));
        assert_eq!(later.pages().await, at_once.pages().await);
        assert_eq!(later.paths().await, at_once.paths().await);
        for path in
            ["index.html", "a b.html", "unreadable.html", "large.html", "img/a.png", "s/a.css", "app.js"]
        {
            let [one, other] = [&later, &at_once].map(|owner| owner.api.site_file(owner.subdomain_id, path));
            assert_eq!(one.await, other.await, "{path}");
        }
        assert_eq!(later.stored_bytes().await, at_once.stored_bytes().await);
        let (_, titles) = later.send(Method::GET, "/api/pages", Value::Null).await;
        let (_, expected) = at_once.send(Method::GET, "/api/pages", Value::Null).await;
        let titles_of = |list: &Value| {
            let pages = list["pages"].as_array().unwrap().iter();
            let mut titles: Vec<_> =
                pages.map(|page| (page["slug"].to_string(), page["title"].to_string())).collect();
            titles.sort();
            titles
        };
        assert_eq!(titles_of(&titles), titles_of(&expected));
        responses.push(published);
    }
    assert_eq!(responses[1]["previousDeployId"], responses[0]["deployId"]);
    assert_eq!(responses[1]["stats"]["pagesUpdated"], 3, "{}", responses[1]);
    assert_eq!(responses[0]["_next"][0]["tool"], "deploys.read");
    assert_rules_equal(&later, &responses[0], &responses[1]).await;

    later.roll_back(&responses[1]).await;
    assert!(later.pages().await["index"].0.contains("first"));
}

#[tokio::test]
async fn a_preview_changes_nothing_of_the_live_site() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let live = owner.deploy(&[("index.html", b"live"), ("old.html", b"old"), ("a.js", b"1")]).await;
    let (pages, paths) = (owner.pages().await, owner.paths().await);
    let preview = owner.preview(&[("index.html", b"next"), ("new.html", b"new"), ("a.js", b"22")]).await;
    assert_eq!((owner.pages().await, owner.paths().await), (pages, paths));
    assert_eq!(owner.file("a.js").await.unwrap(), "1");
    assert_eq!(owner.file("index.html").await, None);

    let url = preview["previewUrl"].as_str().unwrap();
    let (token, rest) = url.strip_prefix("http://").unwrap().split_once("--").unwrap();
    assert!(
        token.len() == 16 && token.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()),
        "{url}"
    );
    assert_eq!(format!("http://{rest}"), format!("{}/", owner.site));
    let ends: DateTime<Utc> = preview["previewExpiresAt"].as_str().unwrap().parse().unwrap();
    let state = owner.deploy_state(&preview).await;
    let created: DateTime<Utc> = state["createdAt"].as_str().unwrap().parse().unwrap();
    let lifetime = ends - created;
    assert!(lifetime >= TimeDelta::days(7) && lifetime < TimeDelta::days(7) + TimeDelta::minutes(10));
    assert_eq!(
        preview["stats"],
        json!({"pagesCreated": 0, "pagesUpdated": 0, "assetsUploaded": 0, "filesServed": 3, "filesLeftOut": 0})
    );
    assert_eq!((&preview["_next"][0]["tool"], preview.get("pages")), (&json!("deploys.publish"), None));
    for (member, value) in [
        ("status", json!("preview")),
        ("isLive", json!(false)),
        ("subdomainId", json!(owner.subdomain_id)),
        ("previewUrl", json!(url)),
        ("previewExpiresAt", preview["previewExpiresAt"].clone()),
        ("siteUrl", json!(format!("{}/", owner.site))),
        ("processedAt", Value::Null),
        ("stats", preview["stats"].clone()),
        ("filesDone", json!(3)),
        ("filesTotal", json!(3)),
        ("previousDeployId", Value::Null),
    ] {
        assert_eq!(state[member], value, "{member}");
    }
    assert!(state["createdBy"].as_str().unwrap().contains("st_trial_"), "{state}");

    let (status, done) = owner.publish(&preview).await;
    assert_eq!((status, &done["previousDeployId"]), (StatusCode::OK, &live["deployId"]), "{done}");
    let statuses: Vec<_> = done["pages"].as_array().unwrap().iter().map(|page| &page["status"]).collect();
    assert_eq!(statuses, ["updated", "created"]);
    assert_eq!(done["stalePagesNotInZip"][0]["slug"], "old");
    assert_eq!(owner.pages().await["index"], ("next".to_owned(), true));
    assert_eq!(owner.file("a.js").await.unwrap(), "22");
    let state = owner.deploy_state(&preview).await;
    for (member, value) in [
        ("status", json!("processed")),
        ("isLive", json!(true)),
        ("previewUrl", Value::Null),
        ("previewExpiresAt", Value::Null),
        ("stats", done["stats"].clone()),
    ] {
        assert_eq!(state[member], value, "{member}");
    }
    assert_eq!(owner.deploy_state(&live).await["isLive"], false);
}

#[tokio::test]
async fn the_bytes_of_previews_count_from_their_first_to_their_last_moment() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy(&[("index.html", b"live"), ("a.js", b"1")]).await;
    assert_eq!(owner.stored_bytes().await, 1);
    // The HTML of a page counts only in a preview.
    let files: [(&str, &[u8]); 2] = [("index.html", b"next"), ("a.js", b"22")];
    let (one, two) = (owner.preview(&files).await, owner.preview(&files).await);
    assert_eq!(owner.stored_bytes().await, 1 + 6 + 6);
    assert_eq!(owner.publish(&one).await.0, StatusCode::OK);
    assert_eq!(owner.stored_bytes().await, 2 + 6);
    let path = format!("/api/deploy/{}", two["deployId"].as_str().unwrap());
    let (status, deleted) = owner.send(Method::DELETE, &path, Value::Null).await;
    assert_eq!((status, &deleted["deleted"]), (StatusCode::OK, &json!(true)));
    assert_eq!(owner.stored_bytes().await, 2);
    assert_eq!(owner.send(Method::GET, &path, Value::Null).await.0, StatusCode::NOT_FOUND);
    assert_eq!(owner.file("a.js").await.unwrap(), "22", "the live site has the same bytes");
    owner.roll_back(&one).await;
    assert_eq!((owner.stored_bytes().await, owner.file("a.js").await.unwrap()), (1, "1".to_owned()));
    let no_other_files = "do $$ begin assert (select count(*) = 2 from deploy_files); end $$";
    owner.api.execute(no_other_files).await.unwrap();
}

#[tokio::test]
async fn of_two_publications_of_a_preview_at_once_one_wins() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let preview = owner.preview(&[("index.html", b"next"), ("a.js", b"22")]).await;
    let path = format!("/api/deploy/{}/publish", preview["deployId"].as_str().unwrap());
    let replicas = [owner.api.replica(&[]), owner.api.replica(&[])];
    let publish = |at: usize| {
        crate::harness::send_to(&replicas[at], Method::POST, &path, Some(&owner.key), &Value::Null)
    };
    let both = tokio::join!(publish(0), publish(1));
    let mut statuses = [both.0.0.as_u16(), both.1.0.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{both:?}");
    assert_eq!(owner.stored_bytes().await, 2);
    assert_eq!(owner.pages().await.len(), 1);
    let (status, problem) = owner.publish(&preview).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("already live"), "{problem}");
}

#[tokio::test]
async fn only_a_preview_that_has_not_ended_can_be_published() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let files: [(&str, &[u8]); 2] = [("index.html", b"next"), ("a.js", b"22")];
    let unprocessed = json!({"deployId": owner.uploaded(&zip_of(&files)).await});
    let (replaced, live, rolled_back) =
        (owner.deploy(&files).await, owner.deploy(&files).await, owner.deploy(&files).await);
    owner.roll_back(&rolled_back).await;
    let (over, ended, deleted) =
        (owner.preview(&files).await, owner.preview(&files).await, owner.preview(&files).await);
    let set = async |deploy: &Value, change: &str| {
        let id = deploy["deployId"].as_str().unwrap();
        owner.api.execute(&format!("update deploys set {change} where id = '{id}'")).await.unwrap();
    };
    set(&over, "preview_expires_at = now()").await;
    set(&ended, "preview_expires_at = now(), status = 'expired', preview_token = null").await;
    let id = deleted["deployId"].as_str().unwrap();
    let path = format!("/api/deploy/{id}");
    assert_eq!(owner.send(Method::DELETE, &path, Value::Null).await.0, StatusCode::OK);
    let before = (owner.pages().await, owner.stored_bytes().await);
    for (deploy, word) in [
        (&unprocessed, "has not been processed"),
        (&replaced, "a later one replaced it"),
        (&live, "already live"),
        (&rolled_back, "rolled back"),
        (&over, "expired"),
        (&ended, "expired"),
    ] {
        let (status, problem) = owner.publish(deploy).await;
        assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{word}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
        assert!(problem["hint"].as_str().unwrap().contains("/api/deploy"), "{problem}");
    }
    assert_eq!(owner.publish(&deleted).await.0, StatusCode::NOT_FOUND);
    for deploy in [&over, &ended] {
        let state = owner.deploy_state(deploy).await;
        assert_eq!((&state["status"], &state["previewUrl"]), (&json!("expired"), &Value::Null));
        assert!(state["previewExpiresAt"].is_string());
    }
    let preview = owner.preview(&files).await;
    let id = preview["deployId"].as_str().unwrap();
    for (path, word) in [("process", "is a preview"), ("rollback", "only the served deploy")] {
        let path = format!("/api/deploy/{id}/{path}");
        let (status, problem) = owner.send(Method::POST, &path, Value::Null).await;
        assert_eq!(status, StatusCode::CONFLICT, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    }
    for deploy in [&replaced, &live, &rolled_back] {
        let path = format!("/api/deploy/{}", deploy["deployId"].as_str().unwrap());
        assert_eq!(owner.send(Method::DELETE, &path, Value::Null).await.0, StatusCode::CONFLICT);
    }
    // The last preview has six bytes.
    assert_eq!((owner.pages().await, owner.stored_bytes().await), (before.0, before.1 + 6));
}
