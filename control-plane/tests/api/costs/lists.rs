//! Lists of large rows: a page ends at about 1 MiB, and following the cursor still returns every row once.

use std::collections::BTreeSet;

use domain::PAGE_BYTES_MAX;
use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::Api;
use crate::submissions::list::{fields, form};

/// Follows the cursors of a list. Returns the number of rows and of bytes of each page, and checks that no row is
/// returned twice.
async fn pages(api: &Api, key: &str, path: &str, rows: &str) -> Vec<(usize, usize)> {
    let (mut pages, mut ids, mut cursor) = (Vec::new(), BTreeSet::new(), String::new());
    loop {
        let (status, list) = api.send(Method::GET, &format!("{path}{cursor}"), Some(key), &Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{path}{cursor}");
        let found = list[rows].as_array().unwrap();
        pages.push((found.len(), list[rows].to_string().len()));
        for row in found {
            assert!(ids.insert(row["id"].to_string()), "{path} returned a row twice");
        }
        assert_eq!(list["hasMore"] == true, list["nextCursor"].is_string(), "{path}{cursor}");
        match list["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return pages,
        }
    }
}

/// Asserts that all rows are on pages of about 1 MiB, or alone.
fn assert_bounded(pages: &[(usize, usize)], rows: usize) {
    assert_eq!(pages.iter().map(|(rows, _)| rows).sum::<usize>(), rows, "{pages:?}");
    for (rows, bytes) in pages {
        assert!(*rows == 1 || *bytes < PAGE_BYTES_MAX * 11 / 10, "{pages:?}");
    }
}

#[tokio::test]
async fn a_list_of_huge_submissions_ends_at_one_mebibyte() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let form = form(&api, &key, fields()).await;
    // The sixth is larger than a whole page.
    let statement = format!(
        "insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
         select gen_random_uuid(), account_id, f.id,
                jsonb_build_object('note', repeat(md5(n::text), case n when 6 then 40000 else 10000 end)),
                now() - n * interval '1 second', now()
         from forms f, generate_series(1, 20) n where f.id = '{form}'"
    );
    api.execute(&statement).await.unwrap();
    let found = pages(&api, &key, &format!("/api/forms/{form}/submissions?limit=100"), "submissions").await;
    assert_bounded(&found, 20);
    assert_eq!(found.iter().map(|(rows, _)| *rows).collect::<Vec<_>>(), [3, 2, 1, 3, 3, 3, 3, 2]);
    let found = pages(&api, &key, &format!("/api/forms/{form}/submissions?limit=2"), "submissions").await;
    assert!(found.iter().all(|(rows, _)| *rows <= 2), "the limit of rows holds as well: {found:?}");
}

#[tokio::test]
async fn a_list_of_forms_with_many_fields_ends_at_one_mebibyte() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let options: Vec<String> = (0..200).map(|n| format!("{n:0>500}")).collect();
    let field = |name: &str| json!({"name": name, "label": "A", "type": "select", "options": options});
    for number in 0..12 {
        let body = json!({"name": format!("F{number}"), "fields": [field("a"), field("b")]});
        let (status, created) = api.send(Method::POST, "/api/forms", Some(&key), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
    }
    let found = pages(&api, &key, "/api/forms?limit=100", "forms").await;
    assert_bounded(&found, 12);
    assert_eq!(found.len(), 3, "{found:?}");

    let body = json!({"name": "F", "fields": [field("a"), field("b"), field("c")]});
    let (status, problem) = api.send(Method::POST, "/api/forms", Some(&key), &body).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
    assert_eq!(
        (&problem["fieldErrors"][0]["field"], &problem["fieldErrors"][0]["code"]),
        (&json!("fields"), &json!("too_large")),
        "{problem}"
    );
}

#[tokio::test]
async fn the_entries_of_a_full_page_are_returned_a_mebibyte_at_a_time() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let page = json!({"slug": "index", "title": "T", "html": "x", "entryTemplate": "{{a}}"});
    let (status, created) = api.send(Method::POST, "/api/pages", Some(&key), &page).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let id = created["id"].as_str().unwrap();
    let statement = format!(
        "insert into page_entries (id, account_id, page_id, data, created_at)
         select gen_random_uuid(), account_id, id, jsonb_build_object('a', repeat(md5(n::text), 500)),
                now() - n * interval '1 second'
         from pages, generate_series(1, 500) n where id = '{id}';
         update pages set entry_count = 500 where id = '{id}'"
    );
    api.execute(&statement).await.unwrap();
    let path = format!("/api/pages/{id}");
    let (_, detail) = api.send(Method::GET, &path, Some(&key), &Value::Null).await;
    assert_eq!(detail["hasMoreEntries"], true);
    assert!(detail["entries"].to_string().len() < PAGE_BYTES_MAX * 11 / 10);
    let (_, listed) = api.send(Method::GET, &format!("{path}/entries"), Some(&key), &Value::Null).await;
    assert_eq!((&listed["count"], &listed["hasMore"]), (&json!(500), &json!(true)));
    assert_eq!(listed["entries"], detail["entries"]);
    assert_bounded(&pages(&api, &key, &format!("{path}/entries?limit=500"), "entries").await, 500);
    let (status, problem) =
        api.send(Method::GET, &format!("{path}/entries?limit=501"), Some(&key), &Value::Null).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("limit")));
}

#[tokio::test]
async fn a_list_of_deliveries_with_long_responses_ends_at_one_mebibyte() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (_, webhook) =
        api.send(Method::POST, "/api/webhooks", Some(&key), &json!({"url": "https://example.com/"})).await;
    let id: Uuid = webhook["id"].as_str().unwrap().parse().unwrap();
    let statement = format!(
        "with sent as (
             insert into deliveries (id, account_id, webhook_id, event, payload, next_attempt_at, created_at)
             select gen_random_uuid(), account_id, id, 'webhook.ping', '{{}}', now(), now() - n * interval '1 second'
             from webhooks, generate_series(1, 150) n where id = '{id}' returning id)
         insert into delivery_attempts (delivery_id, attempt, duration_ms, response_body, attempted_at)
         select id, 1, 5, repeat('x', 16384), now() from sent"
    );
    api.execute(&statement).await.unwrap();
    let path = format!("/api/webhooks/{id}/deliveries?limit=100");
    let found = pages(&api, &key, &path, "deliveries").await;
    assert_bounded(&found, 150);
    assert_eq!(found.iter().map(|(rows, _)| *rows).collect::<Vec<_>>(), [64, 64, 22]);
}

#[tokio::test]
async fn keys_kept_to_many_resources_are_listed_a_mebibyte_at_a_time() {
    let api = Api::start(&[]).await;
    let (key, account) = api.trial_on(Plan::Scale).await;
    let statement = format!(
        "insert into api_keys (id, account_id, fingerprint, shown_prefix, label, scopes, resource_ids, created_at)
         select gen_random_uuid(), '{account}', sha256(n::text::bytea), 'st_live_x', 'K', '{{pages:read}}',
                jsonb_build_object('pages', (select jsonb_agg(md5((n * 10000 + i)::text)::uuid)
                                             from generate_series(1, 9000) i)),
                now() + n * interval '1 second'
         from generate_series(1, 7) n"
    );
    api.execute(&statement).await.unwrap();
    let found = pages(&api, &key, "/api/keys?limit=100", "keys").await;
    assert_bounded(&found, 8);
    assert!(found.len() > 2, "{found:?}");
}
