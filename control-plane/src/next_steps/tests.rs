//! The rules, one account at a time.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use domain::fields::Field;
use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::{Resource, ScopeSet};
use serde_json::{Value, json};
use store::overview::{
    AutomationCounts, AutomationOverview, FormOverview, Overview, PageCounts, PageOverview, SiteOverview,
    SubdomainOverview, WebhookCounts, WebhookOverview,
};
use uuid::Uuid;
use web::NextStep;

use super::context::Context;
use super::sample::sample;
use super::{After, MAX, first_steps, rank, readable, tools};

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn at(minute: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + minute * 60, 0).unwrap()
}

fn fields(fields: Value) -> Vec<Field> {
    serde_json::from_value(fields).unwrap()
}

fn empty() -> Overview {
    let subdomain =
        SubdomainOverview { id: id(1), name: "calm-otter".to_owned(), has_site: false, taken_slugs: vec![] };
    Overview { subdomains: 1, keys: 1, subdomain: Some(subdomain), ..Overview::default() }
}

fn with_page(mut overview: Overview) -> Overview {
    overview.usage.projects += 1;
    overview.pages = PageCounts { total: 1, published: 1 };
    overview.page = Some(PageOverview {
        id: id(2),
        folder_id: None,
        subdomain_id: id(1),
        slug: "index".to_owned(),
        title: "Hello".to_owned(),
        is_published: true,
        has_entry_template: false,
        created_at: at(1),
    });
    overview.subdomain.as_mut().unwrap().taken_slugs.push("index".to_owned());
    overview
}

fn with_form(mut overview: Overview) -> Overview {
    overview.usage.projects += 1;
    overview.forms = 1;
    overview.form = Some(FormOverview {
        id: id(3),
        folder_id: None,
        name: "Contact".to_owned(),
        fields: fields(json!([{"name": "email", "label": "E-mail", "type": "email", "required": true}])),
        submissions: 0,
        is_open: true,
        proof_of_work: false,
        has_webhook: false,
        has_link: false,
        has_automation: false,
        created_at: at(2),
    });
    overview
}

fn with_webhook(mut overview: Overview) -> Overview {
    overview.usage.webhooks += 1;
    overview.webhooks = WebhookCounts { active: 1, failing: 0, disabled: 0 };
    overview.webhook = Some(WebhookOverview { id: id(4), has_deliveries: false });
    overview.linkable_webhook_id = Some(id(4));
    overview
}

fn with_all() -> Overview {
    let mut overview = with_webhook(with_form(with_page(empty())));
    overview.webhook = Some(WebhookOverview { id: id(4), has_deliveries: true });
    let form = overview.form.as_mut().unwrap();
    (form.submissions, form.has_webhook, form.has_automation, form.created_at) = (1, true, true, at(0));
    overview.usage.projects += 2;
    overview.sites = 1;
    overview.site =
        Some(SiteOverview { id: id(5), folder_id: None, name: "Site".to_owned(), subdomain_id: Some(id(1)) });
    overview.subdomain.as_mut().unwrap().has_site = true;
    overview.automations = AutomationCounts { enabled: 1, failing: 0, disabled: 0 };
    overview.automation =
        Some(AutomationOverview { id: id(6), folder_id: None, is_enabled: true, has_run: true });
    (overview.folders, overview.folder_id, overview.keys) = (1, Some(id(7)), 2);
    overview
}

struct Caller {
    plan: Plan,
    scopes: ScopeSet,
    restrictions: Restrictions,
}

impl Default for Caller {
    fn default() -> Self {
        Self { plan: Plan::Free, scopes: ScopeSet::FULL, restrictions: Restrictions::default() }
    }
}

impl Caller {
    fn steps(&self, overview: &Overview, after: After<'_>) -> Vec<NextStep> {
        let overview = readable(overview.clone(), self.scopes, after.form_id());
        let context = Context {
            overview: &overview,
            limits: self.plan.limits(),
            scopes: self.scopes,
            restrictions: &self.restrictions,
            embed_code: overview.form.as_ref().map(|_| "<script></script>"),
        };
        rank(&context, after)
    }

    fn tools(&self, overview: &Overview, after: After<'_>) -> Vec<String> {
        self.steps(overview, after).into_iter().map(|step| step.tool).collect()
    }
}

const PAGE: After<'_> = After::Page { id: Uuid::from_u128(2), is_published: true, is_scheduled: false };
const FORM: After<'_> = After::Form { id: Uuid::from_u128(3) };
const WEBHOOK: After<'_> = After::Webhook { id: Uuid::from_u128(4) };

#[test]
fn each_state_of_an_account_has_its_best_suggestion() {
    let heard = {
        let mut overview = with_webhook(with_form(with_page(empty())));
        overview.form.as_mut().unwrap().has_webhook = true;
        overview
    };
    let mut tried = heard.clone();
    tried.webhook.as_mut().unwrap().has_deliveries = true;
    let mut answered = tried.clone();
    answered.form.as_mut().unwrap().submissions = 1;
    let mut embedded = answered.clone();
    embedded.page.as_mut().unwrap().created_at = at(3);
    let mut failing = with_all();
    failing.troubled_webhook_id = Some(id(4));
    let cases = [
        (empty(), After::Status, "pages.create"),
        (with_page(empty()), PAGE, "forms.create"),
        (with_form(empty()), FORM, "pages.create"),
        (with_form(empty()), After::Status, "pages.create"),
        (with_form(with_page(empty())), FORM, "webhooks.create"),
        (heard.clone(), WEBHOOK, "webhooks.test"),
        (heard, After::Status, "webhooks.test"),
        (tried, After::Status, "submissions.submit"),
        (answered, After::Status, "pages.create"),
        (embedded.clone(), After::Status, "analytics.create"),
        (embedded, After::Site { id: id(5) }, "analytics.query"),
        (failing, After::Status, "deliveries.list"),
        (with_all(), After::Status, "analytics.query"),
        (with_all(), After::Automation { id: id(6), is_enabled: false }, "automations.update"),
        (with_all(), After::Folder { id: id(7), name: "F" }, "folders.organize"),
        (with_all(), After::Key { id: id(8) }, "keys.list"),
        (with_all(), After::Domain { id: id(8), hint: "h" }, "domains.read"),
        (with_all(), After::Page { id: id(2), is_published: false, is_scheduled: false }, "pages.update"),
    ];
    for (overview, after, best) in cases {
        let steps = Caller::default().steps(&overview, after);
        let names: Vec<&str> = steps.iter().map(|step| step.tool.as_str()).collect();
        assert_eq!(names.first(), Some(&best), "{after:?}: {names:?}");
        assert!(names.len() <= MAX, "{names:?}");
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }
}

#[test]
fn a_trial_begins_with_a_page() {
    let steps = first_steps("calm-otter".to_owned());
    let names: Vec<&str> = steps.iter().map(|step| step.tool.as_str()).collect();
    assert_eq!(names, ["pages.create", "forms.create", "launch.create"]);
    assert_eq!(steps[0].params["slug"], "index");
}

#[test]
fn nothing_is_suggested_that_the_account_has() {
    let creations = [
        "pages.create",
        "forms.create",
        "webhooks.create",
        "forms.update",
        "analytics.create",
        "automations.create",
        "folders.create",
        "keys.create",
        "domains.create",
    ];
    for after in [After::Status, After::Help, PAGE, After::Pages, After::Entry { page_id: id(2) }] {
        let names = Caller::default().tools(&with_all(), after);
        assert!(!names.is_empty(), "{after:?}");
        assert!(names.iter().all(|name| !creations.contains(&name.as_str())), "{after:?}: {names:?}");
    }
}

#[test]
fn the_plans_one_webhook_is_linked_instead_of_a_second_one() {
    let overview = with_webhook(with_form(with_page(empty())));
    for plan in [Plan::Free, Plan::Pro] {
        let steps = Caller { plan, ..Caller::default() }.steps(&overview, FORM);
        assert!(steps.iter().all(|step| step.tool != "webhooks.create"), "{steps:?}");
        assert_eq!(steps[0].tool, "forms.update");
        assert_eq!(steps[0].params, json!({"id": id(3), "webhookIds": [id(4)]}));
    }
    // It is used up by a webhook that the caller does not see.
    let mut hidden = with_form(with_page(empty()));
    hidden.usage.webhooks = 1;
    let names = Caller::default().tools(&hidden, FORM);
    assert!(!names.contains(&"webhooks.create".to_owned()), "{names:?}");
}

#[test]
fn a_full_plan_gets_no_creations() {
    let mut overview = with_form(with_page(empty()));
    overview.usage.projects = 10;
    overview.usage.webhooks = 1;
    let names = Caller::default().tools(&overview, After::Status);
    assert!(names.contains(&"account.plans".to_owned()), "{names:?}");
    let none = ["pages.create", "forms.create", "webhooks.create", "analytics.create", "automations.create"];
    assert!(names.iter().all(|name| !none.contains(&name.as_str())), "{names:?}");
    let scale = Caller { plan: Plan::Scale, ..Caller::default() }.tools(&overview, After::Status);
    assert!(scale.contains(&"webhooks.create".to_owned()), "{scale:?}");
}

#[test]
fn a_key_is_asked_for_nothing_that_it_may_not_do() {
    let overviews = [
        empty(),
        with_page(empty()),
        with_form(with_page(empty())),
        with_webhook(with_form(empty())),
        with_all(),
    ];
    let scopes =
        ["*:read", "pages:*", "forms:create", "forms:*", "webhooks:*", "account:create", "pages:create"];
    for overview in &overviews {
        for scope in scopes {
            let scopes = ScopeSet::parse([scope]).unwrap();
            let caller = Caller { scopes, ..Caller::default() };
            for after in [After::Status, After::Help, PAGE, FORM] {
                for step in caller.steps(overview, after) {
                    let tool = tools::ALL.iter().find(|tool| tool.id == step.tool).unwrap();
                    assert!(tool.scope.is_none_or(|needed| scopes.allows(needed)), "{scope}: {step:?}");
                }
            }
        }
    }
}

#[test]
fn a_restricted_key_creates_only_inside_its_restrictions() {
    let folder = Restrictions { folder_id: Some(id(7)), ids: BTreeMap::new() };
    let caller = Caller { plan: Plan::Scale, restrictions: folder, ..Caller::default() };
    let names = caller.tools(&with_page(empty()), After::Status);
    assert!(names.contains(&"forms.create".to_owned()), "{names:?}");
    for account_wide in ["analytics.create", "folders.create", "domains.create"] {
        assert!(!names.contains(&account_wide.to_owned()), "{names:?}");
    }
    let kinds = [Resource::Pages, Resource::Forms, Resource::Webhooks, Resource::Analytics, Resource::Keys];
    let ids = kinds.into_iter().map(|kind| (kind, BTreeSet::from([id(9)]))).collect();
    let caller = Caller { restrictions: Restrictions { folder_id: None, ids }, ..Caller::default() };
    for overview in [empty(), with_form(with_page(empty()))] {
        let names = caller.tools(&overview, After::Status);
        let listed = ["pages.create", "forms.create", "webhooks.create", "analytics.create", "keys.create"];
        assert!(names.iter().all(|name| !listed.contains(&name.as_str())), "{names:?}");
    }
}

#[test]
fn resources_that_the_key_may_not_read_are_not_named() {
    let scopes = ScopeSet::parse(["webhooks:create", "pages:create", "account:read"]).unwrap();
    let caller = Caller { scopes, ..Caller::default() };
    let shown = format!("{:?}", caller.steps(&with_form(with_page(empty())), After::Status));
    assert!(!shown.contains(&id(3).to_string()), "{shown}");
}

#[test]
fn what_only_a_person_knows_is_never_first() {
    let pro = Caller { plan: Plan::Pro, ..Caller::default() };
    let steps = pro.steps(&with_all(), After::Status);
    assert!(steps.iter().skip(1).any(|step| step.tool == "domains.create"), "{steps:?}");
    let scopes = ScopeSet::parse(["domains:create", "pages:read"]).unwrap();
    let only = Caller { plan: Plan::Pro, scopes, ..Caller::default() };
    assert_eq!(only.steps(&with_all(), After::Status).len(), 0);
    let mut unheard = with_form(with_page(empty()));
    unheard.page.as_mut().unwrap().created_at = at(3);
    let webhook = &pro.steps(&unheard, After::Status)[0];
    assert_eq!(webhook.params, json!({"url": "https://example.com/replace-me", "formIds": [id(3)]}));
}

#[test]
fn slugs_of_suggested_pages_are_free() {
    let mut overview = with_form(with_page(empty()));
    let slug = |overview: &Overview| {
        let steps = Caller::default().steps(overview, FORM);
        steps.into_iter().find(|step| step.tool == "pages.create").unwrap().params["slug"].clone()
    };
    assert_eq!(slug(&overview), "contact");
    let taken = super::SLUGS.iter().map(|slug| (*slug).to_owned()).collect();
    overview.subdomain.as_mut().unwrap().taken_slugs = taken;
    assert_eq!(slug(&overview), "page-00000003");
}

#[test]
fn a_sample_is_accepted_by_its_form() {
    let accepted = [
        json!([{"name": "a", "label": "A", "type": "text", "required": true, "minLength": 40}]),
        json!([{"name": "name", "label": "N", "type": "text", "required": true, "maxLength": 3}]),
        json!([{"name": "n", "label": "N", "type": "number", "required": true, "min": 3, "max": 5}]),
        json!([{"name": "n", "label": "N", "type": "number", "required": true, "max": -5}]),
        json!([{"name": "s", "label": "S", "type": "multiselect", "options": ["x", "y"], "required": true}]),
        json!([{"name": "d", "label": "D", "type": "date"}, {"name": "f", "label": "F", "type": "file"}]),
        json!([{"name": "t", "label": "T", "type": "tel", "required": true},
               {"name": "u", "label": "U", "type": "url", "required": true},
               {"name": "c", "label": "C", "type": "checkbox", "required": true}]),
    ];
    for form in accepted {
        let answers = sample(&fields(form.clone()));
        assert!(answers.is_some_and(|answers| !answers.is_empty()), "{form}");
    }
    for preset in domain::workflows::ALL.iter() {
        let has_file = preset.fields().iter().any(|field| field.required && field.accept.is_some());
        assert_eq!(sample(&preset.fields()).is_some(), !has_file, "{}", preset.id);
    }
    let unknown = [
        json!([{"name": "f", "label": "F", "type": "file", "required": true}]),
        json!([{"name": "id", "label": "I", "type": "text", "required": true}]),
        json!([{"name": "p", "label": "P", "type": "text", "required": true, "pattern": "[0-9]{5}"}]),
    ];
    for form in unknown {
        assert_eq!(sample(&fields(form.clone())), None, "{form}");
    }
}

#[test]
fn the_scopes_of_tools_are_those_of_the_document() {
    let document = serde_json::to_value(crate::api::document()).unwrap();
    let mut scopes = BTreeMap::new();
    for path in document["paths"].as_object().unwrap().values() {
        for operation in path.as_object().unwrap().values() {
            let needed = operation["security"][0]["apiKey"][0].as_str().map(str::to_owned);
            scopes.insert(operation["operationId"].as_str().unwrap_or_default().to_owned(), needed);
        }
    }
    for tool in tools::ALL {
        assert_eq!(scopes.get(tool.id), Some(&tool.scope.map(|scope| scope.to_string())), "{}", tool.id);
    }
}
