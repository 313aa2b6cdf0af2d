//! The rules of single steps.

use std::time::Duration;

use domain::pages;
use serde_json::{Map, Value};

use super::checker::Checker;
use super::headers::{is_fetch_header, is_respond_header};
use super::references::Visible;
use crate::definition::{Action, FindIn, FindStep, Step, Trigger, UpdatePageStep, WaitStep};
use crate::schedule::{WAIT_MAX, parse_duration, parse_timestamp};
use crate::templates::Template;

/// Returns why a step makes no attempts that could be limited or repeated; `None` if it makes some.
fn without_attempts(action: &Action) -> Option<&'static str> {
    match action {
        Action::Set(_) | Action::Transform(_) | Action::Stop(_) => {
            Some("it only computes, and would give the same result again")
        }
        Action::Condition(_) | Action::ForEach(_) => Some("give it to the steps inside"),
        Action::Wait(_) => Some("its length is `for`, `until` or, with resume: true, `timeout`"),
        Action::Fetch(_)
        | Action::Respond(_)
        | Action::CreateEntry(_)
        | Action::DeleteEntry(_)
        | Action::UpdatePage(_)
        | Action::Find(_)
        | Action::CreateSubmission(_)
        | Action::SendWebhook(_) => None,
    }
}

/// Returns the text of a template without expressions.
fn literal(text: &str) -> Option<String> {
    Template::parse(text).ok()?.literal().map(str::to_owned)
}

impl Checker<'_> {
    /// Checks everything about a step but its references and the steps inside it.
    pub(super) fn step(&mut self, path: &str, step: &Step, visible: &Visible) {
        self.options(path, step);
        match &step.action {
            Action::Condition(condition) => {
                self.range(path, "branches", condition.branches.len() as u64, 1, 50);
            }
            Action::ForEach(each) => {
                self.range(path, "concurrency", u64::from(each.concurrency), 1, 5);
                self.range(path, "steps", each.steps.len() as u64, 1, 500);
            }
            Action::Wait(wait) => self.wait(path, wait, visible),
            Action::Fetch(fetch) => {
                self.url(path, &fetch.url);
                self.headers(path, &fetch.headers, is_fetch_header, "can't be set");
            }
            Action::Respond(respond) => {
                if !matches!(self.definition.trigger, Trigger::Http(_)) {
                    let message = format!("{path}: respond needs a trigger of type http");
                    self.push(&format!("{path}.type"), "trigger", message);
                }
                self.range(path, "status", u64::from(respond.status), 200, 599);
                let status = respond.status;
                let reason = "is not among Content-Type, Cache-Control, Retry-After, Location (with a status 3xx) and X-…";
                self.headers(path, &respond.headers, |name| is_respond_header(name, status), reason);
            }
            Action::UpdatePage(page) => self.page(path, page),
            Action::Find(find) => self.find(path, find),
            Action::Transform(transform) => {
                if let Some(pick) = &transform.pick {
                    self.range(path, "pick", pick.len() as u64, 1, 100);
                }
            }
            Action::Set(_)
            | Action::Stop(_)
            | Action::CreateEntry(_)
            | Action::DeleteEntry(_)
            | Action::CreateSubmission(_)
            | Action::SendWebhook(_) => {}
        }
    }

    fn options(&mut self, path: &str, step: &Step) {
        if step.options.name.as_ref().is_some_and(|name| name.chars().count() > 200) {
            let field = format!("{path}.name");
            self.push(&field, "too_long", format!("{field} may have at most 200 characters"));
        }
        let (timeout, retry) = (step.options.timeout_ms, step.options.retry);
        if let Some(reason) = without_attempts(&step.action) {
            let message = format!("a step of type {} can't have it: {reason}", step.action.kind().as_str());
            for (name, is_given) in [("timeoutMs", timeout.is_some()), ("retry", retry.is_some())] {
                if is_given {
                    self.refuse(path, name, "no_attempts", &message);
                }
            }
            return;
        }
        if let Some(timeout) = timeout {
            self.range(path, "timeoutMs", timeout, 100, 60_000);
        }
        if let Some(retry) = retry {
            self.range(path, "retry.max", u64::from(retry.max), 1, 5);
        }
    }

    fn range(&mut self, path: &str, name: &str, value: u64, min: u64, max: u64) {
        if !(min..=max).contains(&value) {
            let field = format!("{path}.{name}");
            self.push(&field, "range", format!("{field} is between {min} and {max}, this is {value}"));
        }
    }

    fn refuse(&mut self, path: &str, name: &str, code: &'static str, message: &str) {
        let field = format!("{path}.{name}");
        self.push(&field, code, format!("{field}: {message}"));
    }

    fn wait(&mut self, path: &str, wait: &WaitStep, visible: &Visible) {
        let given = [wait.duration.is_some(), wait.until.is_some(), wait.resume];
        if given.iter().filter(|is_given| **is_given).count() != 1 {
            let message = format!("{path}: give exactly one of for, until and resume: true");
            self.push(path, "exclusive", message);
        }
        for (name, duration) in [("for", &wait.duration), ("timeout", &wait.timeout)] {
            let Some(duration) = duration else { continue };
            match parse_duration(duration) {
                None => self.refuse(path, name, "duration", "a duration such as 15m, 36h or 1h30m is needed"),
                Some(duration) if duration > WAIT_MAX => {
                    self.refuse(path, name, "range", "at most 30 days are possible");
                }
                Some(Duration::ZERO) => self.refuse(path, name, "range", "at least one second is needed"),
                Some(_) => {}
            }
        }
        // A date ahead may be more than 30 days from now, and fewer from when the step runs.
        if let Some(until) = wait.until.as_deref().and_then(literal)
            && parse_timestamp(&until).is_none()
        {
            self.refuse(
                path,
                "until",
                "timestamp",
                "a timestamp such as 2027-01-31T09:00:00+01:00 or a template of one is needed",
            );
        }
        if !wait.resume {
            for (name, is_given) in
                [("timeout", wait.timeout.is_some()), ("onTimeout", wait.on_timeout.is_some())]
            {
                if is_given {
                    self.refuse(path, name, "exclusive", "it needs resume: true");
                }
            }
        } else if visible.is_in_loop() {
            self.refuse(
                path,
                "resume",
                "in_loop",
                "a loop can't wait for a confirmation; it has one link for all items",
            );
        }
    }

    fn url(&mut self, path: &str, text: &str) {
        // A template that is invalid has been reported with its references.
        let Ok(template) = Template::parse(text) else { return };
        let is_valid = match template.literal() {
            Some(literal) => url::Url::parse(literal)
                .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host()),
            None => ["{{", "https://", "http://"].iter().any(|start| text.trim_start().starts_with(start)),
        };
        if !is_valid {
            self.refuse(path, "url", "url", "a URL that begins with https:// or http:// is needed");
        }
    }

    fn headers(
        &mut self,
        path: &str,
        headers: &Map<String, Value>,
        is_allowed: impl Fn(&str) -> bool,
        reason: &str,
    ) {
        for (name, value) in headers {
            let shown: String = name.chars().take(64).collect();
            let field = format!("headers.{shown}");
            if !is_allowed(name) {
                self.refuse(path, &field, "header", &format!("the header {shown} {reason}"));
            } else if value.as_str().is_none_or(|value| value.contains(['\r', '\n', '\0'])) {
                self.refuse(path, &field, "type", "a text of one line is needed");
            }
        }
        self.range(path, "headers", headers.len() as u64, 0, 50);
    }

    fn page(&mut self, path: &str, page: &UpdatePageStep) {
        if page.page_id.is_some() == page.slug.is_some() {
            self.push(path, "exclusive", format!("{path}: give either pageId or slug"));
        }
        if page.slug.is_none() {
            for (name, is_given) in [("upsert", page.upsert), ("subdomainId", page.subdomain_id.is_some())] {
                if is_given {
                    self.refuse(path, name, "exclusive", "it needs slug");
                }
            }
        }
        if page.upsert {
            for (name, is_given) in [("title", page.title.is_some()), ("html", page.html.is_some())] {
                if !is_given {
                    self.refuse(path, name, "required", "upsert needs it for a new page");
                }
            }
        }
        let is_valid = match &page.is_published {
            Some(Value::String(text)) => {
                Template::parse(text).is_ok_and(|template| template.literal().is_none())
            }
            other => other.as_ref().is_none_or(Value::is_boolean),
        };
        if !is_valid {
            self.refuse(path, "isPublished", "type", "true, false or a template is needed");
        }
        let literal = |text: &Option<String>| text.as_deref().and_then(literal);
        let mut errors = literal(&page.slug).map(|slug| pages::check_slug(&slug)).unwrap_or_default();
        let (title, html) = (literal(&page.title), literal(&page.html));
        let css = page.css.as_ref().and_then(Option::as_deref);
        let template = page.entry_template.as_ref().and_then(Option::as_deref);
        errors.extend(pages::check_content(title.as_deref(), html.as_deref(), css, template));
        for error in errors {
            self.push(&format!("{path}.{}", error.field), error.code, format!("{path}.{}", error.message));
        }
    }

    fn find(&mut self, path: &str, find: &FindStep) {
        let (required, other) = match find.source {
            FindIn::Entries => (("pageId", find.page_id.is_some()), ("formId", find.form_id.is_some())),
            FindIn::Submissions => (("formId", find.form_id.is_some()), ("pageId", find.page_id.is_some())),
        };
        if !required.1 {
            self.refuse(path, required.0, "required", "it is required for what is searched");
        }
        if other.1 {
            self.refuse(path, other.0, "exclusive", "it does not belong to what is searched");
        }
        self.range(path, "limit", u64::from(find.limit), 1, 100);
        self.range(path, "where", find.filter.len() as u64, 0, 20);
    }
}
