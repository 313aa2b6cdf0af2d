//! What follows from a call itself: before and after what the account lacks.

use domain::scopes::{Action, Resource};
use serde_json::json;
use uuid::Uuid;

use super::context::{Context, Suggestion};
use super::setup::{submission_of, test_payload, visits_of};
use super::tools;

/// The call that suggestions are made for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum After<'a> {
    Trial,
    Page {
        id: Uuid,
        is_published: bool,
        is_scheduled: bool,
    },
    /// Several pages at once, or those of a deploy.
    Pages,
    Entry {
        page_id: Uuid,
    },
    Form {
        id: Uuid,
    },
    Submission {
        form_id: Uuid,
        id: Uuid,
    },
    Webhook {
        id: Uuid,
    },
    Site {
        id: Uuid,
    },
    Automation {
        id: Uuid,
        is_enabled: bool,
    },
    Folder {
        id: Uuid,
        name: &'a str,
    },
    Key {
        id: Uuid,
    },
    Subdomain {
        id: Uuid,
        name: &'a str,
    },
    Domain {
        id: Uuid,
        hint: &'a str,
    },
    Asset {
        id: Uuid,
        public_url: &'a str,
        filename: &'a str,
    },
    Deploy {
        id: Uuid,
        hint: &'a str,
    },
    /// A processed deploy that is not live.
    Preview {
        id: Uuid,
    },
    Help,
    /// The site of the analytics that counts the launched pages, if any.
    Launch {
        site_id: Option<Uuid>,
    },
    /// A form with the first of its new webhooks, if any.
    Pipeline {
        form_id: Uuid,
        webhook_id: Option<Uuid>,
    },
    Status,
}

/// The suggestions of a call.
#[derive(Debug, Default)]
pub(super) struct Follow {
    /// Before what the account lacks.
    pub(super) first: Vec<Suggestion>,
    /// After that.
    pub(super) last: Vec<Suggestion>,
}

impl After<'_> {
    /// The form that the call has created, which its caller knows whatever it may read.
    pub(super) fn form_id(self) -> Option<Uuid> {
        match self {
            Self::Form { id } | Self::Pipeline { form_id: id, .. } => Some(id),
            _ => None,
        }
    }

    /// What to do next because of the call itself.
    pub(super) fn suggestions(self, context: &Context<'_>) -> Follow {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        match self {
            Self::Trial => last.extend(launch(context)),
            Self::Page { id, is_published, is_scheduled } => {
                first.extend((!is_published && !is_scheduled).then(|| publish(context, id)).flatten());
                last.extend(context.overview.site.as_ref().and_then(|site| visits_of(context, site.id)));
            }
            Self::Pages | Self::Help => last.extend(status(context)),
            Self::Entry { page_id } => {
                let hint = "See the entries of the page";
                last.extend(context.suggest("review", tools::ENTRIES_LIST, json!({"id": page_id}), hint));
            }
            Self::Form { id } => last.extend(review(context, id)),
            Self::Submission { form_id, id } => {
                let one = json!({"id": form_id, "subId": id});
                last.extend(context.suggest(
                    "check",
                    tools::SUBMISSIONS_READ,
                    one,
                    "Read the submission back",
                ));
                last.extend(review(context, form_id));
            }
            Self::Webhook { id } => {
                first.extend(ping(context, id));
                let hint = "See the deliveries and the receiver's responses";
                last.extend(context.suggest("check", tools::DELIVERIES_LIST, json!({"id": id}), hint));
            }
            Self::Site { id } => {
                first.extend(visits_of(context, id));
                let hint = "See who is on the site now";
                let query = json!({"siteId": id});
                last.extend(context.suggest("watch", tools::ANALYTICS_REALTIME, query, hint));
            }
            Self::Automation { id, is_enabled } => {
                first.extend(try_automation(context, id, is_enabled));
                let hint = "See the runs, with input and output of each step";
                last.extend(context.suggest("check", tools::AUTOMATIONS_LOGS, json!({"id": id}), hint));
            }
            Self::Folder { id, name } => {
                first.extend(fill(context, id));
                if context.may_add(Resource::Keys) {
                    let key = json!({"label": name, "folderId": id});
                    let hint = "Create a key restricted to this folder";
                    last.extend(context.suggest("delegate", tools::KEYS_CREATE, key, hint));
                }
            }
            Self::Key { id } => {
                last.extend(context.suggest(
                    "review",
                    tools::KEYS_LIST,
                    json!({}),
                    "See all keys and their scopes",
                ));
                let hint = "If the key leaks, give it a new secret; the old one stops working at once";
                last.extend(context.suggest("rotate", tools::KEYS_ROTATE, json!({"id": id}), hint));
            }
            Self::Subdomain { id, name } => first.extend(start_subdomain(context, id, name)),
            Self::Domain { id, hint } => {
                first.extend(context.suggest("verify", tools::DOMAINS_READ, json!({"id": id}), hint));
            }
            Self::Asset { id, public_url, filename } => {
                first.extend(show_asset(context, id, public_url, filename));
            }
            Self::Deploy { id, hint } => {
                first.extend(context.suggest("publish", tools::DEPLOYS_PROCESS, json!({"id": id}), hint));
            }
            Self::Preview { id } => {
                let hint = "Look at the preview, then make it live";
                first.extend(context.suggest("publish", tools::DEPLOYS_PUBLISH, json!({"id": id}), hint));
            }
            Self::Launch { site_id } => last.extend(site_id.and_then(|id| visits_of(context, id))),
            Self::Pipeline { form_id, webhook_id } => {
                first.extend(webhook_id.and_then(|id| ping(context, id)));
                last.extend(review(context, form_id));
            }
            Self::Status => first.extend(repair(context)),
        }
        // A new form gets its test before the account gets more.
        if let Some(form) = context.overview.form.as_ref().filter(|form| Some(form.id) == self.form_id())
            && form.has_webhook
        {
            first.extend(submission_of(context, form));
        }
        Follow { first, last }
    }
}

/// The read that tells everything else.
pub(super) fn status(context: &Context<'_>) -> Option<Suggestion> {
    let hint = "See what the account has and what it can do next";
    context.suggest("status", tools::STATUS_READ, json!({}), hint)
}

fn launch(context: &Context<'_>) -> Option<Suggestion> {
    let may_write = context.has_scope(Resource::Pages, Action::Update) && context.may_count_visits();
    if !may_write || !context.has_scope(Resource::Analytics, Action::Create) {
        return None;
    }
    let html = "<!doctype html>\n<html lang=\"en\">\n<title>Hello</title>\n<h1>Hello</h1>\n</html>";
    let site = json!({"pages": [{"slug": "index", "title": "Hello", "html": html}], "analytics": true});
    context.suggest("launch", tools::LAUNCH_CREATE, site, "Launch a whole site with analytics in one call")
}

fn publish(context: &Context<'_>, id: Uuid) -> Option<Suggestion> {
    let page = json!({"id": id, "isPublished": true});
    context.suggest("publish", tools::PAGES_UPDATE, page, "Show the page to visitors")
}

fn review(context: &Context<'_>, form_id: Uuid) -> Option<Suggestion> {
    context.suggest("review", tools::SUBMISSIONS_LIST, json!({"id": form_id}), "Read the form's submissions")
}

fn ping(context: &Context<'_>, id: Uuid) -> Option<Suggestion> {
    let hint = "Send a signed ping and see the receiver's response";
    context.suggest("try", tools::WEBHOOKS_TEST, json!({"id": id}), hint)
}

fn try_automation(context: &Context<'_>, id: Uuid, is_enabled: bool) -> Option<Suggestion> {
    if !is_enabled {
        let change = json!({"id": id, "enabled": true});
        return context.suggest("enable", tools::AUTOMATIONS_UPDATE, change, "Let the trigger start it");
    }
    let test = json!({"id": id, "triggerData": {"payload": test_payload(context)}});
    context.suggest("try", tools::AUTOMATIONS_TEST, test, "Run the steps once and see each one's output")
}

/// Moves the newest resources that are in no folder, or creates a form.
fn fill(context: &Context<'_>, folder_id: Uuid) -> Option<Suggestion> {
    let overview = context.overview;
    let parts = [
        ("page", overview.page.as_ref().map(|one| (one.id, one.folder_id))),
        ("form", overview.form.as_ref().map(|one| (one.id, one.folder_id))),
        ("analytics", overview.site.as_ref().map(|one| (one.id, one.folder_id))),
        ("automation", overview.automation.map(|one| (one.id, one.folder_id))),
    ];
    let loose = parts.into_iter().filter_map(|(kind, part)| Some((kind, part?)));
    let loose: Vec<_> = loose
        .filter(|(_, (_, folder_id))| folder_id.is_none())
        .map(|(kind, (id, _))| json!({"type": kind, "id": id}))
        .collect();
    if !loose.is_empty() {
        let moves = json!({"id": folder_id, "resources": loose});
        let hint = "Move what is in no folder into it; its addresses stay";
        return context.suggest("fill", tools::FOLDERS_ORGANIZE, moves, hint);
    }
    if overview.forms > 0 || !context.may_add_project(Resource::Forms) {
        return None;
    }
    let mut form = super::setup::contact_form();
    form["folderId"] = json!(folder_id);
    context.suggest("fill", tools::FORMS_CREATE, form, "Create a form in it")
}

fn start_subdomain(context: &Context<'_>, id: Uuid, name: &str) -> Vec<Suggestion> {
    let mut found = Vec::new();
    if context.may_add_project(Resource::Pages) {
        let page = json!({"slug": "index", "title": name, "html": "<h1>Hello</h1>", "subdomainId": id});
        found.extend(context.suggest("publish", tools::PAGES_CREATE, page, "Publish its first page"));
    }
    if context.may_count_visits() {
        let site = json!({"name": name, "subdomainId": id});
        found.extend(context.suggest(
            "measure",
            tools::ANALYTICS_CREATE,
            site,
            "Count the visits of its pages",
        ));
    }
    found
}

fn show_asset(context: &Context<'_>, id: Uuid, public_url: &str, filename: &str) -> Option<Suggestion> {
    if context.overview.subdomain.is_none() || !context.may_add_project(Resource::Pages) {
        let hint = "Upload the file, then see that it is stored";
        return context.suggest("check", tools::ASSETS_LIST, json!({}), hint);
    }
    let slug = context.free_slug(&["picture", "image"], id);
    let html = format!("<img src=\"{public_url}\" alt=\"\">");
    let title: String = filename.chars().take(200).collect();
    let page = json!({"slug": slug, "title": title, "html": html});
    context.suggest("show", tools::PAGES_CREATE, page, "Upload the file, then show it on a page")
}

/// What fails comes before what is new.
fn repair(context: &Context<'_>) -> Vec<Suggestion> {
    let overview = context.overview;
    let webhook = overview.troubled_webhook_id.and_then(|id| {
        let hint = "Deliveries of this webhook fail; see the receiver's responses";
        context.suggest("repair", tools::DELIVERIES_LIST, json!({"id": id}), hint)
    });
    let automation = overview.failing_automation_id.and_then(|id| {
        let hint = "The last run failed; see the step and its error";
        context.suggest("repair", tools::AUTOMATIONS_LOGS, json!({"id": id}), hint)
    });
    let domain = overview.inactive_domain_id.and_then(|id| {
        let hint = "The domain is not served yet; see what it waits for";
        context.suggest("verify", tools::DOMAINS_READ, json!({"id": id}), hint)
    });
    [webhook, automation, domain].into_iter().flatten().collect()
}
