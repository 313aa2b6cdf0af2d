//! The parsed templates. Every text is escaped, and its invisible characters are shown, without any template asking for it.

use anyhow::Context;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, Output, State, UndefinedBehavior, escape_formatter};

use super::template_functions;
use crate::formatting::visible_text::{visible, write_escaped};

macro_rules! templates {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../templates/", $name)))),+]
    };
}

const SOURCES: &[(&str, &str)] = templates![
    "shell.html",
    "parts/controls.html",
    "refused.html",
    "welcome.html",
    "overview.html",
    "forms.html",
    "builder/tabs.html",
    "builder/start.html",
    "builder/form.html",
    "builder/question.html",
    "builder/settings.html",
    "builder/details.html",
    "submissions.html",
    "submissions/edit.html",
    "submissions/erase.html",
    "analytics_sites.html",
    "analytics.html",
    "keys.html",
    "webhooks.html",
    "webhook.html",
    "account/account.html",
    "account/activity.html",
    "account/help.html",
    "analytics/tabs.html",
    "analytics/visits.html",
    "analytics/funnels.html",
    "analytics/retention.html",
    "analytics/settings.html",
    "automations/head.html",
    "automations/run_rows.html",
    "automations/list.html",
    "automations/show.html",
    "automations/runs.html",
    "automations/run.html",
    "automations/edit.html",
    "folders/list.html",
    "folders/folder.html",
    "webhooks/edit.html",
    "webhooks/delivery.html",
    "sites/list.html",
    "sites/frame.html",
    "sites/macros.html",
    "sites/deploys.html",
    "sites/deploy.html",
    "sites/pages.html",
    "sites/page.html",
    "sites/version.html",
    "sites/domains.html",
    "sites/assets.html",
];

/// The parsed templates.
#[derive(Debug)]
pub(crate) struct Templates(Environment<'static>);

impl Templates {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.set_formatter(write_value);
        template_functions::add_to(&mut environment);
        for (name, source) in SOURCES {
            environment.add_template(name, source).with_context(|| format!("parsing the template {name}"))?;
        }
        Ok(Self(environment))
    }

    /// Renders a template, or only this block of it. An unknown block renders the whole.
    pub(crate) fn render(
        &self,
        name: &str,
        context: &serde_json::Value,
        block: Option<&str>,
    ) -> Result<String, Error> {
        let template = self.0.get_template(name)?;
        if let Some(block) = block {
            let mut captured = template.render_captured(Serde(context))?;
            return Ok(captured
                .with_state_mut(|state| state.render_block(block))
                .unwrap_or_else(|_| captured.output().to_owned()));
        }
        template.render(Serde(context))
    }
}

/// Writes a value into a page. Null and undefined values are empty.
fn write_value(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    if value.is_none() || value.is_undefined() {
        return Ok(());
    }
    match value.as_str() {
        Some(text) if !value.is_safe() && matches!(state.auto_escape(), AutoEscape::Html) => {
            Ok(write_escaped(out, &visible(text))?)
        }
        _ => escape_formatter(out, state, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::icons;

    #[test]
    fn every_icon_of_a_template_exists() {
        for (template, source) in SOURCES {
            for rest in source.split("icon(\"").skip(1) {
                let name = rest.split('"').next().unwrap();
                assert_ne!(icons::svg(name).to_string(), icons::svg("").to_string(), "{template}: {name}");
            }
        }
    }
}
