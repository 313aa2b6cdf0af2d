//! Parses the user agent into browser, operating system and device type. The user agent itself is not stored.

use std::borrow::Cow;
use std::sync::Arc;

use cache::Memo;
use domain::tracking::{Hit, Screen};
use domain::user_agents::device_of;
use ua_parser::{os, user_agent};

use crate::incoming_event::IncomingEvent;

/// Entries by user agent and screen class.
const MAX_CACHED_USER_AGENTS: u64 = 20_000;

/// The parsed user agent. Unknown parts are empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UserAgent {
    pub(crate) browser: String,
    pub(crate) os: String,
    pub(crate) device: &'static str,
}

/// Parses user agents by the lists of uap-core, reduced to names. Without its versions and its 628 patterns for devices
/// they take a third of the memory.
pub(crate) struct ParseUserAgent {
    browsers: user_agent::Extractor<'static>,
    operating_systems: os::Extractor<'static>,
    cache: Memo<(String, Option<&'static str>), Arc<UserAgent>>,
}

impl ParseUserAgent {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let browsers = rows(include_str!("parse_user_agent/browsers.tsv")).map(|(regex, name)| {
            user_agent::Parser { regex, family_replacement: name, ..Default::default() }
        });
        let operating_systems = rows(include_str!("parse_user_agent/systems.tsv"))
            .map(|(regex, name)| os::Parser { regex, os_replacement: name, ..Default::default() });
        Ok(Self {
            browsers: user_agent::Builder::new().push_all(browsers)?.build()?,
            operating_systems: os::Builder::new().push_all(operating_systems)?.build()?,
            cache: Memo::new(MAX_CACHED_USER_AGENTS),
        })
    }

    pub(crate) fn step(&self, event: &IncomingEvent, hit: &Hit) -> Arc<UserAgent> {
        let key = (event.user_agent.clone(), hit.screen.map(Screen::as_str));
        self.cache.get_or(&key, || Arc::new(self.parse(&event.user_agent, hit.screen)))
    }

    fn parse(&self, user_agent: &str, screen: Option<Screen>) -> UserAgent {
        let name = |name: Cow<'_, str>| if name == "Other" { String::new() } else { name.into_owned() };
        UserAgent {
            browser: self.browsers.extract(user_agent).map(|found| name(found.family)).unwrap_or_default(),
            os: self.operating_systems.extract(user_agent).map(|found| name(found.os)).unwrap_or_default(),
            device: device_of(user_agent, screen),
        }
    }
}

/// A cell of a list.
type Column = Cow<'static, str>;

fn rows(file: &'static str) -> impl Iterator<Item = (Column, Option<Column>)> {
    file.lines().filter(|line| !line.starts_with("# ")).filter_map(|line| line.split_once('\t')).map(
        |(regex, name)| (Cow::Borrowed(regex), Some(name).filter(|name| !name.is_empty()).map(Cow::Borrowed)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_browsers_operating_systems_and_devices() {
        let step = ParseUserAgent::new().unwrap();
        let user_agents = [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
                "Firefox",
                "Linux",
                "desktop",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
                "Edge",
                "Windows",
                "desktop",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
                "Mobile Safari",
                "iOS",
                "mobile",
            ),
            (
                "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
                "Chrome Mobile",
                "Android",
                "mobile",
            ),
            ("nonsense", "", "", "desktop"),
        ];
        for (user_agent, browser, os, device) in user_agents {
            let found = step.parse(user_agent, None);
            assert_eq!(
                (found.browser.as_str(), found.os.as_str(), found.device),
                (browser, os, device),
                "{user_agent}"
            );
        }
    }
}
