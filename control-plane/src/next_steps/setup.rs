//! What an account lacks, best first. Each rule looks at one thing and suggests nothing if the account has it, or if the
//! plan or the caller's key does not allow it.

use domain::scopes::{Action, Resource, ScopeSet};
use serde_json::{Map, Value, json};
use store::overview::FormOverview;

use super::context::{Context, Suggestion, suffix};
use super::tools;

/// The address of a webhook that the owner has to replace.
pub(super) const PLACEHOLDER_URL: &str = "https://example.com/replace-me";

/// Slugs of the pages that rules suggest.
pub(super) const SLUGS: [&str; 6] = ["index", "contact", "form", "get-in-touch", "picture", "image"];

/// From this number of resources on, folders and further keys help.
const PROJECTS_TO_GROUP: i64 = 3;

type Rule = fn(&Context<'_>) -> Option<Suggestion>;

/// All rules, in the order of their suggestions.
pub(super) const RULES: [Rule; 13] = [
    publish_first_page,
    create_first_form,
    notify,
    link_webhook,
    test_webhook,
    submit_test,
    show_form,
    count_visits,
    automate,
    test_automation,
    group,
    delegate,
    upgrade,
];

/// What remains to be looked at when nothing is lacking.
pub(super) const READS: [Rule; 4] = [ask_analytics, review_submissions, check_deliveries, add_domain];

fn publish_first_page(context: &Context<'_>) -> Option<Suggestion> {
    let overview = context.overview;
    let may_add = overview.subdomain.is_some() && context.may_add_project(Resource::Pages);
    if overview.pages.total > 0 || !may_add {
        return None;
    }
    if context.embed_code.is_some() {
        return show_form(context);
    }
    let slug = context.free_slug(&["index"], overview.subdomain.as_ref()?.id);
    let html = "<!doctype html>\n<html lang=\"en\">\n<title>Hello</title>\n<h1>Hello</h1>\n</html>";
    let page = json!({"slug": slug, "title": "Hello", "html": html});
    context.suggest(
        "publish",
        tools::PAGES_CREATE,
        page,
        "Publish a page; it is live at once on your subdomain",
    )
}

fn create_first_form(context: &Context<'_>) -> Option<Suggestion> {
    if context.overview.forms > 0 || !context.may_add_project(Resource::Forms) {
        return None;
    }
    context.suggest(
        "collect",
        tools::FORMS_CREATE,
        contact_form(),
        "Create a form; it has a page of its own and fits into yours",
    )
}

/// The params of a form that most sites need.
pub(super) fn contact_form() -> Value {
    json!({
        "name": "Contact",
        "fields": [
            {"name": "name", "label": "Name", "type": "text", "required": true},
            {"name": "email", "label": "E-mail", "type": "email", "required": true},
            {"name": "message", "label": "Message", "type": "textarea", "required": true},
        ],
    })
}

/// A form with submissions that no webhook receives.
fn unheard_form<'a>(context: &Context<'a>) -> Option<&'a FormOverview> {
    context.overview.form.as_ref().filter(|form| !form.has_webhook)
}

fn notify(context: &Context<'_>) -> Option<Suggestion> {
    let form = unheard_form(context)?;
    // An existing webhook can receive them, too, or gets them as soon as it is enabled again.
    if form.has_link || can_link(context) || !context.may_add_webhook() {
        return None;
    }
    let webhook = json!({"url": PLACEHOLDER_URL, "formIds": [form.id]});
    let hint = "Receive every submission, signed; put the address of your server, Slack or Discord in place of `url`";
    context.suggest("notify", tools::WEBHOOKS_CREATE, webhook, hint)
}

fn can_link(context: &Context<'_>) -> bool {
    context.overview.linkable_webhook_id.is_some() && context.has_scope(Resource::Webhooks, Action::Update)
}

fn link_webhook(context: &Context<'_>) -> Option<Suggestion> {
    let (form, webhook_id) = (unheard_form(context)?, context.overview.linkable_webhook_id?);
    // `webhookIds` are all of the form's webhooks: one that is linked must not lose its link.
    if form.has_link || !can_link(context) {
        return None;
    }
    let link = json!({"id": form.id, "webhookIds": [webhook_id]});
    context.suggest(
        "notify",
        tools::FORMS_UPDATE,
        link,
        "Send the submissions of this form to your webhook, too",
    )
}

fn test_webhook(context: &Context<'_>) -> Option<Suggestion> {
    let webhook = context.overview.webhook.filter(|webhook| !webhook.has_deliveries)?;
    let hint = "Send a signed ping and see the receiver's response";
    context.suggest("try", tools::WEBHOOKS_TEST, json!({"id": webhook.id}), hint)
}

fn submit_test(context: &Context<'_>) -> Option<Suggestion> {
    let form = context.overview.form.as_ref().filter(|form| form.submissions == 0)?;
    submission_of(context, form)
}

/// Suggests a test submission.
pub(super) fn submission_of(context: &Context<'_>, form: &FormOverview) -> Option<Suggestion> {
    let mut params = Map::from_iter([("id".to_owned(), json!(form.id))]);
    params.extend(context.sample_of(form)?);
    let hint = "Send a test submission, as a visitor would; it needs no key";
    context.suggest("submit", tools::SUBMISSIONS_SUBMIT, Value::Object(params), hint)
}

fn show_form(context: &Context<'_>) -> Option<Suggestion> {
    let (overview, html) = (context.overview, context.embed_code?);
    let form = overview.form.as_ref()?;
    // A page that is newer than the form may show it already.
    let is_newer = match &overview.page {
        Some(page) => page.created_at < form.created_at,
        None => overview.pages.total == 0,
    };
    if !is_newer || overview.subdomain.is_none() || !context.may_add_project(Resource::Pages) {
        return None;
    }
    let wanted: &[&str] =
        if overview.pages.total == 0 { &["index"] } else { &["contact", "form", "get-in-touch"] };
    let slug = context.free_slug(wanted, form.id);
    let page = json!({"slug": slug, "title": form.name, "html": html});
    context.suggest(
        "embed",
        tools::PAGES_CREATE,
        page,
        "Show the form in a page of your site; its HTML fits anywhere else",
    )
}

fn count_visits(context: &Context<'_>) -> Option<Suggestion> {
    let subdomain = context.overview.subdomain.as_ref().filter(|subdomain| !subdomain.has_site)?;
    if context.overview.pages.total == 0 || !context.may_count_visits() {
        return None;
    }
    let site = json!({"name": subdomain.name, "subdomainId": subdomain.id});
    let hint = "Count the visits of your pages, without cookies; they get the script by themselves";
    context.suggest("measure", tools::ANALYTICS_CREATE, site, hint)
}

fn automate(context: &Context<'_>) -> Option<Suggestion> {
    let form = context.overview.form.as_ref().filter(|form| !form.has_automation)?;
    let automations = context.overview.automations;
    let has_some = automations.enabled + automations.failing + automations.disabled > 0;
    let may_read = context.has_scope(Resource::Submissions, Action::Read);
    if has_some || !may_read || !context.may_add_project(Resource::Automations) {
        return None;
    }
    let automation = json!({
        "name": format!("After {}", form.name.chars().take(60).collect::<String>().trim()),
        "slug": format!("after-submission-{}", suffix(form.id)),
        "trigger": {"type": "form_submission", "formId": form.id},
        "steps": [{
            "id": "received",
            "type": "set",
            "values": {"answers": "{{ trigger.payload }}", "at": "{{ run.startedAt }}"},
        }],
    });
    let hint = "Run steps after each submission; this one keeps the answers, and yours can follow";
    context.suggest("automate", tools::AUTOMATIONS_CREATE, automation, hint)
}

fn test_automation(context: &Context<'_>) -> Option<Suggestion> {
    let automation = context.overview.automation.filter(|one| one.is_enabled && !one.has_run)?;
    let test = json!({"id": automation.id, "triggerData": {"payload": test_payload(context)}});
    context.suggest("try", tools::AUTOMATIONS_TEST, test, "Run the steps once and see each one's output")
}

/// The answers of a test run.
pub(super) fn test_payload(context: &Context<'_>) -> Value {
    let form = context.overview.form.as_ref().filter(|form| form.has_automation);
    Value::Object(form.and_then(|form| context.sample_of(form)).unwrap_or_default())
}

fn group(context: &Context<'_>) -> Option<Suggestion> {
    let overview = context.overview;
    let is_worth_it = overview.usage.projects >= PROJECTS_TO_GROUP;
    let may_add = context.has_whole_account() && context.may_add(Resource::Folders);
    if overview.folders > 0 || !is_worth_it || !may_add {
        return None;
    }
    let name = overview.subdomain.as_ref().map_or("Website", |subdomain| subdomain.name.as_str());
    let hint = "Group what belongs together; a key can be restricted to a folder";
    context.suggest("organize", tools::FOLDERS_CREATE, json!({"name": name}), hint)
}

fn delegate(context: &Context<'_>) -> Option<Suggestion> {
    // Its own key is one; a session has none.
    let reading = ScopeSet::parse(["*:read"]).is_ok_and(|scopes| scopes.is_subset_of(context.scopes));
    let is_worth_it = context.overview.usage.projects >= PROJECTS_TO_GROUP;
    if context.overview.keys > 1 || !is_worth_it || !reading || !context.may_add(Resource::Keys) {
        return None;
    }
    let key = json!({"label": "Reads only", "scopes": ["*:read"]});
    context.suggest(
        "delegate",
        tools::KEYS_CREATE,
        key,
        "Create a key that can change nothing, for what only reads",
    )
}

fn upgrade(context: &Context<'_>) -> Option<Suggestion> {
    let (used, limits) = (context.overview.usage, context.limits);
    let is_full = limits.projects >= 0 && used.projects >= limits.projects;
    let hint = "The plan's projects are used up; see what a larger plan includes";
    is_full.then(|| context.suggest("upgrade", tools::ACCOUNT_PLANS, json!({}), hint)).flatten()
}

fn ask_analytics(context: &Context<'_>) -> Option<Suggestion> {
    visits_of(context, context.overview.site.as_ref()?.id)
}

/// Suggests a question about the visits of a site.
pub(super) fn visits_of(context: &Context<'_>, site_id: uuid::Uuid) -> Option<Suggestion> {
    let query = json!({"siteId": site_id, "metric": "page_views", "period": "today"});
    context.suggest("ask", tools::ANALYTICS_QUERY, query, "See how many pages were viewed today")
}

fn review_submissions(context: &Context<'_>) -> Option<Suggestion> {
    let form = context.overview.form.as_ref().filter(|form| form.submissions > 0)?;
    context.suggest(
        "review",
        tools::SUBMISSIONS_LIST,
        json!({"id": form.id}),
        "Read the submissions of your newest form",
    )
}

fn check_deliveries(context: &Context<'_>) -> Option<Suggestion> {
    let webhook = context.overview.webhook.filter(|webhook| webhook.has_deliveries)?;
    let hint = "See the deliveries and the receiver's responses";
    context.suggest("check", tools::DELIVERIES_LIST, json!({"id": webhook.id}), hint)
}

fn add_domain(context: &Context<'_>) -> Option<Suggestion> {
    let domains = context.overview.domains;
    let has_some = domains.active + domains.pending + domains.failed > 0;
    if has_some || context.overview.pages.total == 0 || !context.may_add_domain() {
        return None;
    }
    let domain = json!({"domain": "www.example.com"});
    let hint = "Serve the site on your own domain; put it in place of `domain`";
    context.suggest("brand", tools::DOMAINS_CREATE, domain, hint).map(Suggestion::for_person)
}
