//! Tests of the checks of whole definitions.

use domain::plans::Plan;
use serde_json::{Value, json};

use super::*;

const ID: &str = "0198c5f0-0000-7000-8000-000000000001";

fn env() -> BTreeSet<String> {
    ["TOKEN".to_owned()].into()
}

fn check_as(plan: Plan, trigger: Value, steps: Value) -> Vec<(String, &'static str, String)> {
    let definition = AutomationDefinition::read(&json!({"trigger": trigger, "steps": steps})).unwrap();
    check(&definition, &plan.limits(), &env()).into_iter().map(|e| (e.field, e.code, e.message)).collect()
}

fn fields(steps: Value) -> Vec<String> {
    check_as(Plan::Scale, json!({"type": "http"}), steps).into_iter().map(|(field, ..)| field).collect()
}

fn set(id: &str, template: &str) -> Value {
    json!({"id": id, "type": "set", "values": {"v": template}})
}

fn one(template: &str) -> Option<String> {
    let steps = json!([set("first", "1"), set("second", template), set("third", "1")]);
    check_as(Plan::Scale, json!({"type": "http"}), steps).into_iter().next().map(|(.., message)| message)
}

#[test]
fn a_sound_definition_has_no_errors() {
    let steps = json!([
        {"id": "find", "type": "find", "in": "entries", "pageId": ID, "where": {"email": "{{ trigger.payload.email }}"}},
        {"id": "known", "type": "condition", "branches": [{"if": "steps.find.count > 0", "steps": [set("old", "{{ steps.find.items }}")]}],
         "else": [{"id": "new", "type": "create_entry", "pageId": ID, "data": {"email": "{{ trigger.payload.email }}"}}]},
        set("after", "{{ steps.new.id ?? steps.old.v[0].id }}"),
        {"id": "rows", "type": "transform", "input": "{{ trigger.payload.rows }}", "filter": "item.ok && index < 5", "map": {"k": "{{ item.n }}"}},
        {"id": "loop", "type": "for_each", "items": "{{ steps.rows }}", "as": "row", "concurrency": 2, "steps": [
            {"id": "call", "type": "fetch", "url": "https://example.com/{{ row.k }}/{{ index }}", "headers": {"Authorization": "Bearer {{ env.TOKEN }}"}},
            set("inside", "{{ steps.call.status }}")]},
        {"id": "mail", "type": "fetch", "url": "{{ trigger.payload.hook }}", "method": "POST", "body": {"link": "{{ run.resumeUrl }}"}},
        {"id": "ok", "type": "wait", "resume": true, "timeout": "3d", "onTimeout": "continue"},
        {"id": "end", "type": "respond", "status": 302, "headers": {"Location": "/x", "X-Own": "1"}, "if": "steps.ok.resumed"},
    ]);
    assert_eq!(check_as(Plan::Scale, json!({"type": "http"}), steps), []);
}

#[test]
fn a_reference_to_a_missing_or_later_step_is_refused() {
    let at = "steps[1].values.v";
    assert_eq!(one("{{ steps.first.v }}"), None);
    assert_eq!(
        one("{{ steps.frist.v }}"),
        Some(format!("{at}: there is no step frist; did you mean first?"))
    );
    for later in ["{{ steps.third.v }}", "{{ steps.second.v }}"] {
        assert!(one(later).unwrap().ends_with("does not run before this one"), "{later}");
    }
    for dynamic in ["{{ steps }}", "{{ steps[trigger.x] }}", "{{ env }}", "{{ run }}", "{{ json(env) }}"] {
        assert!(one(dynamic).unwrap().contains("known beforehand"), "{dynamic}");
    }
    assert!(one("{{ triger.x }}").unwrap().ends_with("there is no variable triger; did you mean trigger?"));
    assert!(one("{{ item }}").unwrap().contains("there is no variable item"));
    assert!(one("{{ env.TOKN }}").unwrap().ends_with("env has no variable TOKN; did you mean TOKEN?"));
    assert!(one("{{ run.stardedAt }}").unwrap().ends_with("did you mean startedAt?"));
    assert_eq!(one("{{ run.id + run.startedAt }}"), None);
}

#[test]
fn a_loop_hides_its_steps_and_branches_hide_each_other() {
    let each =
        json!({"id": "loop", "type": "for_each", "items": [1], "steps": [set("inside", "{{ item }}")]});
    let errors = check_as(
        Plan::Scale,
        json!({"type": "http"}),
        json!([
            each,
            set("b", "{{ steps.inside.v }}"),
            set("c", "{{ item }}"),
            set("d", "{{ steps.loop.items }}")
        ]),
    );
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].2.contains("inside a loop"), "{errors:?}");
    let branch = |id, read| json!({"if": "true", "steps": [set(id, read)]});
    let condition = json!({"id": "c", "type": "condition", "branches": [branch("x", "1"), branch("y", "{{ steps.x.v }}")], "else": [set("z", "{{ steps.c }}")]});
    assert_eq!(
        fields(json!([condition])),
        ["steps[0].branches[1].steps[0].values.v", "steps[0].else[0].values.v"]
    );
}

#[test]
fn a_template_that_does_not_parse_has_its_path() {
    let fetch = json!({"id": "a", "type": "fetch", "url": "https://x/{{ 1 +", "body": {"a": [{"b": "{{ lowr(1) }}"}]}, "if": "{{ true }}"});
    let each = json!({"id": "b", "type": "for_each", "items": [1], "steps": [fetch]});
    let condition =
        json!({"id": "c", "type": "condition", "branches": [{"if": "let x = 1", "steps": [each]}]});
    let at = "steps[0].branches[0].steps[0].steps[0]";
    let expected = [
        "steps[0].branches[0].if".to_owned(),
        format!("{at}.if"),
        format!("{at}.url"),
        format!("{at}.body.a[0].b"),
    ];
    assert_eq!(fields(json!([condition])), expected);
}

#[test]
fn ids_are_identifiers_and_unique() {
    let nested =
        json!({"id": "c", "type": "condition", "branches": [{"if": "true", "steps": [set("a", "")]}]});
    let steps =
        json!([set("a", ""), set("1x", ""), set("a-b", ""), set("", ""), nested, set(&"x".repeat(65), "")]);
    let expected =
        ["steps[1].id", "steps[2].id", "steps[3].id", "steps[4].branches[0].steps[0].id", "steps[5].id"];
    assert_eq!(fields(steps), expected);
}

#[test]
fn nested_steps_count_for_the_plan() {
    let fetch = |id: usize| json!({"id": format!("f{id}"), "type": "fetch", "url": "https://example.com"});
    let each = json!({"id": "loop", "type": "for_each", "items": [], "steps": (0..3).map(fetch).collect::<Vec<_>>()});
    let errors = check_as(Plan::Free, json!({"type": "http"}), json!([each]));
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].2, "your plan allows 2 fetch steps, this has 3, nested ones included");
    let many = |count: usize| -> Value { (0..count).map(|at| set(&format!("s{at}"), "")).collect() };
    assert_eq!(check_as(Plan::Free, json!({"type": "http"}), many(10)), []);
    assert_eq!(check_as(Plan::Free, json!({"type": "http"}), many(11))[0].1, "plan_limit");
    assert_eq!(check_as(Plan::Scale, json!({"type": "http"}), many(500)), []);
    assert_eq!(check_as(Plan::Scale, json!({"type": "http"}), many(501))[0].1, "too_many");
    assert_eq!(check_as(Plan::Scale, json!({"type": "http"}), json!([]))[0].1, "required");
}

#[test]
fn a_definition_that_is_too_deep_or_too_large_is_refused() {
    let deep = |levels: usize| {
        (0..levels).fold(set("x", ""), |inner, level| {
            json!({"id": format!("l{level}"), "type": "for_each", "items": [], "steps": [inner]})
        })
    };
    assert_eq!(fields(json!([deep(4)])), Vec::<String>::new());
    assert_eq!(fields(json!([deep(5)])).len(), 1);
    let large = set("a", &"x".repeat(DEFINITION_BYTES_MAX));
    assert_eq!(check_as(Plan::Scale, json!({"type": "http"}), json!([large]))[0].1, "too_large");
}

#[test]
fn rules_of_single_steps_hold() {
    let cases = [
        (json!({"type": "wait"}), ""),
        (json!({"type": "wait", "for": "1m", "resume": true}), ""),
        (json!({"type": "wait", "for": "31d"}), ".for"),
        (json!({"type": "wait", "for": "soon"}), ".for"),
        (json!({"type": "wait", "for": "0s"}), ".for"),
        (json!({"type": "wait", "for": "1m", "timeout": "1m"}), ".timeout"),
        (json!({"type": "wait", "until": "tomorrow"}), ".until"),
        (json!({"type": "wait", "until": ""}), ".until"),
        (json!({"type": "wait", "until": "2027-01-31"}), ".until"),
        (json!({"type": "wait", "until": "2027-01-31T09:00:00"}), ".until"),
        (json!({"type": "wait", "until": "2027-02-30T09:00:00Z"}), ".until"),
        (json!({"type": "for_each", "items": [], "steps": [set("y", "")], "concurrency": 6}), ".concurrency"),
        (json!({"type": "for_each", "items": [], "steps": [set("y", "")], "as": "env"}), ".as"),
        (json!({"type": "condition", "branches": []}), ".branches"),
        (json!({"type": "fetch", "url": "ftp://x"}), ".url"),
        (json!({"type": "fetch", "url": "/x"}), ".url"),
        (json!({"type": "fetch", "url": "x{{ trigger.a }}"}), ".url"),
        (json!({"type": "fetch", "url": "https://x", "headers": {"Host": "y"}}), ".headers.Host"),
        (json!({"type": "fetch", "url": "https://x", "headers": {"a": "b\r\nc: d"}}), ".headers.a"),
        (json!({"type": "fetch", "url": "https://x", "headers": {"a b": "c"}}), ".headers.a b"),
        (json!({"type": "fetch", "url": "https://x", "headers": {"a": 1}}), ".headers.a"),
        (json!({"type": "respond", "headers": {"Set-Cookie": "a=b"}}), ".headers.Set-Cookie"),
        (json!({"type": "respond", "headers": {"Location": "/"}}), ".headers.Location"),
        (json!({"type": "respond", "headers": {"X-Request-Id": "1"}}), ".headers.X-Request-Id"),
        (json!({"type": "respond", "status": 100}), ".status"),
        (
            json!({"type": "respond", "headers": {"Content-Security-Policy": ""}}),
            ".headers.Content-Security-Policy",
        ),
        (
            json!({"type": "respond", "headers": {"Access-Control-Allow-Origin": "*"}}),
            ".headers.Access-Control-Allow-Origin",
        ),
        (json!({"type": "update_page", "title": "x"}), ""),
        (json!({"type": "update_page", "pageId": ID, "slug": "ab"}), ""),
        (json!({"type": "update_page", "slug": "A b"}), ".slug"),
        (json!({"type": "update_page", "slug": "ab", "upsert": true, "title": "x"}), ".html"),
        (json!({"type": "update_page", "pageId": ID, "upsert": true, "title": "x", "html": "x"}), ".upsert"),
        (json!({"type": "update_page", "pageId": ID, "isPublished": "yes"}), ".isPublished"),
        (json!({"type": "update_page", "pageId": ID, "entryTemplate": "{{ a b }}"}), ".entryTemplate"),
        (json!({"type": "find", "in": "entries", "formId": ID, "pageId": ID}), ".formId"),
        (json!({"type": "find", "in": "submissions"}), ".formId"),
        (json!({"type": "find", "in": "entries", "pageId": ID, "limit": 101}), ".limit"),
        (json!({"type": "fetch", "url": "https://x", "timeoutMs": 99}), ".timeoutMs"),
        (json!({"type": "fetch", "url": "https://x", "timeoutMs": 60_001}), ".timeoutMs"),
        (json!({"type": "fetch", "url": "https://x", "retry": {"max": 6}}), ".retry.max"),
        (json!({"type": "set", "values": {}, "name": "x".repeat(201)}), ".name"),
    ];
    for (mut step, field) in cases {
        step["id"] = json!("a");
        assert_eq!(fields(json!([step])), [format!("steps[0]{field}")], "{step}");
    }
    let inside = json!({"id": "l", "type": "for_each", "items": [], "steps": [{"id": "w", "type": "wait", "resume": true}]});
    assert_eq!(fields(json!([inside])), ["steps[0].steps[0].resume"]);
}

#[test]
fn a_wait_until_a_readable_date_is_accepted_however_far_ahead() {
    for until in [
        "2027-01-31T09:00:00+01:00",
        " 9999-12-31T23:59:59Z ",
        "1970-01-01T00:00:00Z",
        "{{ trigger.payload.at }}",
        "{{ trigger.payload.day }}T09:00:00Z",
    ] {
        let steps = json!([{"id": "a", "type": "wait", "until": until}]);
        assert_eq!(fields(steps), Vec::<String>::new(), "{until}");
    }
}

#[test]
fn a_time_limit_and_retries_are_refused_where_nothing_is_attempted() {
    let body = json!([set("y", "")]);
    let computing = [
        json!({"type": "set", "values": {}}),
        json!({"type": "transform", "input": []}),
        json!({"type": "stop", "status": "success"}),
        json!({"type": "condition", "branches": [{"if": "true", "steps": body}]}),
        json!({"type": "for_each", "items": [], "steps": body}),
        json!({"type": "wait", "for": "1m"}),
        json!({"type": "wait", "resume": true}),
    ];
    let attempting = [
        json!({"type": "fetch", "url": "https://x"}),
        json!({"type": "respond"}),
        json!({"type": "create_entry", "pageId": ID, "data": {}}),
        json!({"type": "delete_entry", "pageId": ID, "entryId": ID}),
        json!({"type": "update_page", "pageId": ID}),
        json!({"type": "find", "in": "entries", "pageId": ID}),
        json!({"type": "create_submission", "formId": ID, "payload": {}}),
        json!({"type": "send_webhook", "webhookId": ID, "payload": {}}),
    ];
    let limited = |mut step: Value| {
        (step["id"], step["timeoutMs"], step["retry"]) = (json!("a"), json!(500), json!({"max": 1}));
        check_as(Plan::Scale, json!({"type": "http"}), json!([step]))
    };
    for step in computing {
        let errors = limited(step.clone());
        let fields: Vec<_> = errors.iter().map(|(field, code, _)| (field.as_str(), *code)).collect();
        let expected = [("steps[0].timeoutMs", "no_attempts"), ("steps[0].retry", "no_attempts")];
        assert_eq!(fields, expected, "{step}");
    }
    let errors = limited(json!({"type": "wait", "for": "1m"}));
    let expected = "steps[0].timeoutMs: a step of type wait can't have it: its length is `for`, `until` or, with \
                    resume: true, `timeout`";
    assert_eq!(errors[0].2, expected);
    for step in attempting {
        assert_eq!(limited(step.clone()), [], "{step}");
    }
}

#[test]
fn a_hundred_thousand_wrong_references_cost_no_more_than_the_errors_that_are_shown() {
    let mut steps: Vec<Value> = (0..450).map(|at| set(&format!("step_with_a_name_{at}"), "")).collect();
    let values = (0..40_000).map(|at| (format!("v{at}"), json!("{{steps.x}}")));
    let values: serde_json::Map<String, Value> = values.collect();
    steps.push(json!({"id": "wrong", "type": "set", "values": values}));
    let begun = std::time::Instant::now();
    assert_eq!(fields(json!(steps)).len(), FIELD_ERRORS_MAX);
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
}

#[test]
fn ten_thousand_loops_are_refused_before_they_are_compared() {
    let each = |at: usize| json!({"id": format!("l{at}"), "type": "for_each", "items": [], "steps": []});
    let steps: Value = (0..10_000).map(each).collect();
    let begun = std::time::Instant::now();
    assert_eq!(check_as(Plan::Scale, json!({"type": "http"}), steps)[0].1, "too_many");
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
}

#[test]
fn an_error_does_not_repeat_a_name_of_a_megabyte() {
    let values = serde_json::Map::from_iter([("n".repeat(900_000), json!("{{ 1 + }}"))]);
    let steps = json!([{"id": "a", "type": "set", "values": values}]);
    let errors = check_as(Plan::Scale, json!({"type": "http"}), steps);
    assert!(errors.len() == 1 && errors[0].0.len() + errors[0].2.len() <= 2_000);
}

#[test]
fn a_resume_link_needs_a_later_wait() {
    let wait = json!({"id": "w", "type": "wait", "resume": true});
    assert_eq!(fields(json!([set("a", "{{ run.resumeUrl }}"), wait])), Vec::<String>::new());
    assert_eq!(fields(json!([wait, set("a", "{{ run.resumeUrl }}")])), ["steps[1].values.v"]);
    assert_eq!(
        fields(json!([set("a", "{{ run.resumeUrl }}"), {"id": "w", "type": "wait", "for": "1m"}])),
        ["steps[0].values.v"]
    );
}

#[test]
fn triggers_and_concurrency_are_checked() {
    let first = |trigger: Value, step: Value| {
        check_as(Plan::Scale, trigger, json!([step])).into_iter().next().map(|(field, ..)| field)
    };
    let set = || set("a", "");
    assert_eq!(
        first(json!({"type": "schedule", "cron": "0 0 30 2 *"}), set()).as_deref(),
        Some("trigger.cron")
    );
    assert_eq!(
        first(json!({"type": "schedule", "cron": "0 0 * * *", "timezone": "Mars/Base"}), set()).as_deref(),
        Some("trigger.timezone")
    );
    assert_eq!(
        first(json!({"type": "http", "auth": {"type": "secret", "env": "NONE"}}), set()).as_deref(),
        Some("trigger.auth.env")
    );
    assert_eq!(first(json!({"type": "http", "auth": {"type": "secret", "env": "TOKEN"}}), set()), None);
    let respond = json!({"id": "a", "type": "respond"});
    assert_eq!(
        first(json!({"type": "form_submission", "formId": ID}), respond).as_deref(),
        Some("steps[0].type")
    );
    for (concurrency, field) in [
        (json!({"limit": 0}), "limit"),
        (json!({"limit": 1, "key": "{{ env.TOKEN }}"}), "key"),
        (json!({"limit": 1, "key": "{{"}), "key"),
    ] {
        let value = json!({"trigger": {"type": "http"}, "steps": [set()], "concurrency": concurrency});
        let errors = check(&AutomationDefinition::read(&value).unwrap(), &Plan::Scale.limits(), &env());
        assert_eq!(errors[0].field, format!("concurrency.{field}"));
    }
    let definition =
        AutomationDefinition::read(&json!({"trigger": {"type": "http"}, "steps": [set()]})).unwrap();
    let wrong: BTreeSet<String> = ["1A", "A-B", ""].map(str::to_owned).into();
    assert_eq!(check(&definition, &Plan::Scale.limits(), &wrong).len(), 3);
}

#[test]
fn every_resource_is_listed_with_its_scope() {
    let steps = json!([
        {"id": "a", "type": "create_entry", "pageId": ID, "data": {}}, {"id": "b", "type": "delete_entry", "pageId": ID, "entryId": "x"},
        {"id": "c", "type": "for_each", "items": [], "steps": [{"id": "d", "type": "find", "in": "submissions", "formId": ID}]},
        {"id": "e", "type": "create_submission", "formId": ID, "payload": {}}, {"id": "f", "type": "send_webhook", "webhookId": ID, "payload": {}},
        {"id": "g", "type": "update_page", "slug": "x", "upsert": true, "folderId": ID}, {"id": "h", "type": "find", "in": "entries", "pageId": ID},
    ]);
    let definition = AutomationDefinition::read(
        &json!({"trigger": {"type": "form_submission", "formId": ID}, "steps": steps}),
    )
    .unwrap();
    let shown: Vec<String> = resources(&definition)
        .iter()
        .map(|one| format!("{} {} {} {}", one.path, one.resource.as_str(), one.id.is_some(), one.scope))
        .collect();
    assert_eq!(
        shown,
        [
            "trigger.formId forms true submissions:read",
            "steps[0].pageId pages true entries:create",
            "steps[1].pageId pages true entries:delete",
            "steps[2].steps[0].formId forms true submissions:read",
            "steps[3].formId forms true submissions:create",
            "steps[4].webhookId webhooks true deliveries:create",
            "steps[5].slug pages false pages:update",
            "steps[5].upsert pages false pages:create",
            "steps[5].folderId folders true pages:update",
            "steps[6].pageId pages true entries:read",
        ]
    );
}
