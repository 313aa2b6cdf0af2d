//! Browser, system and kind of device. The user agent itself ends here.

use std::borrow::Cow;
use std::sync::Arc;

use cache::Memo;
use domain::agents::device_of;
use domain::tracking::{Hit, Screen};
use ua_parser::{os, user_agent};

use crate::pipeline::IncomingEvent;

/// User agents that are remembered, by the kind of screen.
const REMEMBERED: u64 = 20_000;

/// What a user agent says. Empty where it says nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Agent {
    pub(crate) browser: String,
    pub(crate) os: String,
    pub(crate) device: &'static str,
}

/// Reads user agents by the lists of uap-core, names only: without its 628 expressions for devices and all versions
/// they take a third of the memory.
pub(crate) struct ParseUserAgent {
    browsers: user_agent::Extractor<'static>,
    systems: os::Extractor<'static>,
    known: Memo<(String, Option<&'static str>), Arc<Agent>>,
}

impl ParseUserAgent {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let browsers = rows(include_str!("parse_user_agent/browsers.tsv")).map(|(regex, name)| {
            user_agent::Parser { regex, family_replacement: name, ..Default::default() }
        });
        let systems = rows(include_str!("parse_user_agent/systems.tsv")).map(|(regex, name)| os::Parser {
            regex,
            os_replacement: name,
            ..Default::default()
        });
        Ok(Self {
            browsers: user_agent::Builder::new().push_all(browsers)?.build()?,
            systems: os::Builder::new().push_all(systems)?.build()?,
            known: Memo::new(REMEMBERED),
        })
    }

    pub(crate) fn step(&self, arrival: &IncomingEvent, hit: &Hit) -> Arc<Agent> {
        let key = (arrival.user_agent.clone(), hit.screen.map(Screen::word));
        self.known.get_or(&key, || Arc::new(self.read(&arrival.user_agent, hit.screen)))
    }

    fn read(&self, agent: &str, screen: Option<Screen>) -> Agent {
        let known = |name: Cow<'_, str>| if name == "Other" { String::new() } else { name.into_owned() };
        Agent {
            browser: self.browsers.extract(agent).map(|found| known(found.family)).unwrap_or_default(),
            os: self.systems.extract(agent).map(|found| known(found.os)).unwrap_or_default(),
            device: device_of(agent, screen),
        }
    }
}

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
    fn browsers_and_systems_are_told_by_their_names() {
        let parse_user_agent = ParseUserAgent::new().unwrap();
        let agents = [
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
        for (agent, browser, os, device) in agents {
            let found = parse_user_agent.read(agent, None);
            assert_eq!(
                (found.browser.as_str(), found.os.as_str(), found.device),
                (browser, os, device),
                "{agent}"
            );
        }
    }
}
