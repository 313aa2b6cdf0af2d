//! Automations: their settings, variables, schedules and quota.

use chrono::Timelike;
use chrono::{DateTime, Utc};
use chrono_tz::Europe::Berlin;
use domain::plans::Plan;
use http::Method;
use serde_json::{Value, json};

use super::fixture::{Owner, http, stop, with};

fn with_secret() -> Value {
    let body = with(http(), "env", json!({"TOKEN": "s3cret-token", "OTHER": "s3cret-other"}));
    with(body, "trigger", json!({"type": "http", "auth": {"type": "secret", "env": "TOKEN"}}))
}

#[tokio::test]
async fn an_automation_is_created_read_listed_updated_and_deleted() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(with(http(), "description", json!("D"))).await;
    let id = created["id"].as_str().unwrap();
    let expected = json!({
        "id": id, "name": "A", "slug": "a", "description": "D", "enabled": true, "folderId": null,
        "trigger": {"type": "http", "method": "POST"}, "steps": [stop()], "concurrency": null, "envNames": [],
        "triggerUrl": format!("http://localhost:8080/api/automations/run/{id}/a"), "nextRunAt": null,
        "statistics": {"runs": 0, "failures": 0, "consecutiveFailures": 0, "lastRunAt": null, "lastError": null,
                       "p50Ms": null, "p95Ms": null},
    });
    for shown in [&created, &owner.get(&path).await, &owner.get("/api/automations").await["automations"][0]] {
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(shown[member], *value, "{member}");
        }
    }
    let folder = owner.ok(Method::POST, "/api/folders", json!({"name": "F"})).await["id"].clone();
    let change = json!({"name": "B", "description": null, "enabled": false, "folderId": folder,
                        "concurrency": {"limit": 2}});
    let updated = owner.ok(Method::PUT, &path, change).await;
    assert_eq!((&updated["name"], &updated["description"]), (&json!("B"), &Value::Null));
    assert_eq!((&updated["enabled"], &updated["folderId"]), (&json!(false), &folder));
    assert_eq!((&updated["concurrency"], &updated["steps"]), (&json!({"limit": 2}), &json!([stop()])));
    let updated = owner.ok(Method::PUT, &path, json!({"concurrency": null, "folderId": null})).await;
    assert_eq!((&updated["concurrency"], &updated["folderId"]), (&Value::Null, &Value::Null));
    assert_eq!(owner.ok(Method::PUT, &path, json!({})).await["name"], "B");

    assert_eq!(owner.ok(Method::DELETE, &path, Value::Null).await["deleted"], true);
    assert_eq!(owner.call(Method::GET, &path, Value::Null).await.0, 404);
    assert_eq!(owner.call(Method::DELETE, &path, Value::Null).await.0, 404);
}

#[tokio::test]
async fn values_of_variables_are_encrypted_and_never_returned() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(with_secret()).await;
    let id = created["id"].as_str().unwrap().to_owned();
    assert_eq!(created["envNames"], json!(["OTHER", "TOKEN"]));
    let logs = owner.get(&format!("{path}/logs")).await;
    for shown in [created, owner.get(&path).await, owner.get("/api/automations").await, logs] {
        assert!(!shown.to_string().contains("s3cret"), "{shown}");
    }
    let sealed = format!("select encode(sealed_env, 'escape') from automations where id = '{id}'");
    assert!(!owner.column(&sealed).await.contains("s3cret"));

    // Null keeps a value, and a name that is left out is removed.
    let updated = owner.ok(Method::PUT, &path, json!({"env": {"TOKEN": null, "NEW": "n"}})).await;
    assert_eq!(updated["envNames"], json!(["NEW", "TOKEN"]));
    let url = format!("/api/automations/run/{id}/a");
    let kept = owner.public(Method::POST, &url, &[("x-secret", "s3cret-token")], "").await;
    assert_eq!(kept.status, 202, "{kept:?}");
    let unknown = owner.refused(Method::PUT, &path, json!({"env": {"TOKEN": null, "OTHER": null}})).await;
    assert_eq!(unknown.2, [("env.OTHER".to_owned(), "unknown_env".to_owned())]);
    let needed = owner.refused(Method::PUT, &path, json!({"env": {}})).await;
    assert_eq!(needed.2, [("trigger.auth.env".to_owned(), "unknown_env".to_owned())]);
    let open = json!({"env": {}, "trigger": {"type": "http"}});
    assert_eq!(owner.ok(Method::PUT, &path, open).await["envNames"], json!([]));
    assert_eq!(owner.column(&sealed).await, "");
}

#[tokio::test]
async fn a_slug_is_unique_in_its_account() {
    let owner = Owner::new(&[]).await;
    owner.automation(http()).await;
    let (path, _) = owner.automation(with(http(), "slug", json!("b"))).await;
    let taken = [("slug".to_owned(), "slug_taken".to_owned())];
    let again = owner.refused(Method::POST, "/api/automations", http()).await;
    assert_eq!(again, (409, "slug_taken".to_owned(), taken.to_vec()));
    let renamed = owner.refused(Method::PUT, &path, json!({"slug": "a"})).await;
    assert_eq!(renamed, (409, "slug_taken".to_owned(), taken.to_vec()));
    owner.ok(Method::PUT, &path, json!({"slug": "b"})).await;
    let projects = &owner.get("/api/account/usage").await["_meta"]["usage"]["projects"]["used"];
    let (other, _) = owner.api.trial_on(Plan::Scale).await;
    assert_eq!(owner.api.send(Method::POST, "/api/automations", Some(&other), &http()).await.0, 201);
    assert!(projects.is_number());
}

#[tokio::test]
async fn a_schedule_shows_its_next_time_in_its_own_or_the_accounts_time_zone() {
    let owner = Owner::new(&[]).await;
    owner.ok(Method::PUT, "/api/account", json!({"timezone": "Europe/Berlin"})).await;
    let schedule = |zone: Option<&str>| {
        let mut trigger = json!({"type": "schedule", "cron": "0 7 * * *"});
        if let Some(zone) = zone {
            trigger["timezone"] = json!(zone);
        }
        with(http(), "trigger", trigger)
    };
    let time = |shown: &Value| shown["nextRunAt"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    let (path, created) = owner.automation(schedule(None)).await;
    assert_eq!(time(&created).with_timezone(&Berlin).hour(), 7);
    assert_eq!(created["triggerUrl"], Value::Null);
    let updated = owner.ok(Method::PUT, &path, json!({"trigger": schedule(Some("UTC"))["trigger"]})).await;
    assert_eq!(time(&updated).hour(), 7);
    assert_eq!(owner.ok(Method::PUT, &path, json!({"enabled": false})).await["nextRunAt"], Value::Null);
    assert_eq!(time(&owner.ok(Method::PUT, &path, json!({"enabled": true})).await).hour(), 7);
    // A change that does not concern the schedule must not skip a time that is due just now.
    owner.api.execute("update automations set next_fire_at = '2026-01-01T00:00:00Z'").await.unwrap();
    for change in [json!({"name": "B"}), json!({"steps": [stop()]}), json!({"enabled": true})] {
        let updated = owner.ok(Method::PUT, &path, change).await;
        assert_eq!(updated["nextRunAt"], "2026-01-01T00:00:00Z");
    }
    let http = owner.ok(Method::PUT, &path, json!({"trigger": {"type": "http"}})).await;
    assert_eq!(http["nextRunAt"], Value::Null);
}

#[tokio::test]
async fn a_change_of_the_accounts_time_zone_moves_the_schedules_without_their_own() {
    let owner = Owner::new(&[]).await;
    let schedule = |slug: &str, zone: Option<&str>| {
        let mut trigger = json!({"type": "schedule", "cron": "0 7 * * *"});
        if let Some(zone) = zone {
            trigger["timezone"] = json!(zone);
        }
        with(with(http(), "slug", json!(slug)), "trigger", trigger)
    };
    let time = |shown: &Value| shown["nextRunAt"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    let (follows, _) = owner.automation(schedule("a", None)).await;
    let (own, created) = owner.automation(schedule("b", Some("UTC"))).await;
    let (due, _) = owner.automation(schedule("c", None)).await;
    let (disabled, _) = owner.automation(with(schedule("d", None), "enabled", json!(false))).await;
    let past = "update automations set next_fire_at = '2026-01-01T00:00:00Z' where slug = 'c'";
    owner.api.execute(past).await.unwrap();
    for zone in [chrono_tz::Asia::Tokyo, chrono_tz::America::New_York, Berlin] {
        owner.ok(Method::PUT, "/api/account", json!({"timezone": zone.name()})).await;
        let next = time(&owner.get(&follows).await);
        assert_eq!(next.with_timezone(&zone).hour(), 7, "{zone}");
        let left = next - service::Clock::system().now();
        assert!((-1..24).contains(&left.num_hours()), "{left}");
        assert_eq!(owner.get(&own).await["nextRunAt"], created["nextRunAt"], "{zone}");
        // The job-runner starts it in a moment.
        assert_eq!(owner.get(&due).await["nextRunAt"], "2026-01-01T00:00:00Z");
        assert_eq!(owner.get(&disabled).await["nextRunAt"], Value::Null);
    }
    owner.ok(Method::PUT, "/api/account", json!({"name": "N"})).await;
    assert_eq!(time(&owner.get(&follows).await).with_timezone(&Berlin).hour(), 7);
}

#[tokio::test]
async fn another_replica_schedules_in_a_changed_time_zone_at_once() {
    let owner = Owner::new(&[]).await;
    let other = owner.api.replica(&[]);
    let send = async |method: Method, path: &str, body: Value| {
        crate::harness::send_to(&other, method, path, Some(&owner.key), &body).await.1
    };
    assert_eq!(send(Method::GET, "/api/account", Value::Null).await["timezone"], "UTC", "it is cached there");
    owner.ok(Method::PUT, "/api/account", json!({"timezone": "Asia/Tokyo"})).await;
    let schedule = with(http(), "trigger", json!({"type": "schedule", "cron": "0 7 * * *"}));
    let created = send(Method::POST, "/api/automations", schedule).await;
    let next = created["nextRunAt"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    assert_eq!(next.hour(), 22);
}

#[tokio::test]
async fn an_automation_counts_as_a_project() {
    let owner = Owner::on(Plan::Free, &[]).await;
    let limit = owner.get("/api/account").await["_meta"]["usage"]["projects"]["limit"].as_i64().unwrap();
    let mut paths = Vec::new();
    for at in 0..limit {
        paths.push(owner.automation(with(http(), "slug", json!(format!("a{at}")))).await.0);
    }
    let over = with(http(), "slug", json!("over"));
    let (status, problem) = owner.call(Method::POST, "/api/automations", over.clone()).await;
    assert_eq!(
        (status.as_u16(), &problem["code"], &problem["limit"]),
        (403, &json!("quota_exceeded"), &json!(limit))
    );
    owner.ok(Method::DELETE, &paths[0], Value::Null).await;
    // A refused one is not counted.
    assert_eq!(
        owner.refused(Method::POST, "/api/automations", with(http(), "slug", json!("a1"))).await.0,
        409
    );
    owner.automation(over).await;
}

#[tokio::test]
async fn other_accounts_see_nothing() {
    let owner = Owner::new(&[]).await;
    let (path, _) = owner.automation(http()).await;
    let run = owner.ok(Method::POST, &format!("{path}/test"), json!({})).await["runId"].clone();
    let run = run.as_str().unwrap();
    let (other, _) = owner.api.trial_on(Plan::Scale).await;
    for (method, path, body) in [
        (Method::GET, path.clone(), Value::Null),
        (Method::PUT, path.clone(), json!({"name": "B"})),
        (Method::DELETE, path.clone(), Value::Null),
        (Method::GET, format!("{path}/logs"), Value::Null),
        (Method::POST, format!("{path}/test"), json!({})),
        (Method::GET, format!("{path}/runs/{run}"), Value::Null),
        (Method::POST, format!("{path}/runs/{run}/cancel"), Value::Null),
        (Method::POST, format!("{path}/runs/{run}/replay"), Value::Null),
    ] {
        let (status, problem) = owner.api.send(method.clone(), &path, Some(&other), &body).await;
        assert_eq!((status.as_u16(), &problem["code"]), (404, &json!("not_found")), "{method} {path}");
    }
    let listed = owner.api.send(Method::GET, "/api/automations", Some(&other), &Value::Null).await.1;
    assert_eq!(listed["automations"], json!([]));
}

#[tokio::test]
async fn an_automation_has_at_most_200_variables() {
    let owner = Owner::new(&[]).await;
    let env = |count: usize| -> Value {
        Value::Object((0..count).map(|at| (format!("V{at}"), json!("x"))).collect())
    };
    let too_many = vec![("env".to_owned(), "too_many".to_owned())];
    let refused = owner.refused(Method::POST, "/api/automations", with(http(), "env", env(201))).await;
    assert_eq!((refused.0, refused.2), (400, too_many.clone()));
    let (path, _) = owner.automation(with(http(), "env", env(200))).await;
    assert_eq!(owner.refused(Method::PUT, &path, json!({"env": env(201)})).await.2, too_many);
}
