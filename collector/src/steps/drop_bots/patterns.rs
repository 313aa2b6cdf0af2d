//! Bot patterns of isbot, a public-domain list and the longest in use: it matches 99 % of the 1,342 user agents of an
//! independent list of bots.

use regex::{Regex, RegexBuilder};

/// A pattern that uses look-around in JavaScript, which the `regex` crate does not support.
struct LookaroundPattern {
    pattern: &'static str,
    /// A match directly after one of these texts does not count.
    not_after: &'static [&'static str],
    /// A match directly before one of these texts does not count.
    not_before: &'static [&'static str],
}

const LOOKAROUND: &[LookaroundPattern] = &[
    LookaroundPattern { pattern: "(?:^|[^g])news", not_after: &[], not_before: &["sapphire"] },
    LookaroundPattern {
        pattern: "google",
        not_after: &[" channel/", "google/"],
        not_before: &["wv", "app", "/google", " pixel"],
    },
    LookaroundPattern { pattern: r"bots?(?:\b|_)", not_after: &[" cu"], not_before: &[] },
    LookaroundPattern { pattern: "scan", not_after: &["cam"], not_before: &[] },
    LookaroundPattern { pattern: "http", not_after: &["lib"], not_before: &[] },
    LookaroundPattern { pattern: "java", not_after: &[], not_before: &[";"] },
];

/// The compiled list.
pub(super) struct Patterns {
    plain: Regex,
    lookaround: Vec<(Regex, &'static LookaroundPattern)>,
}

impl Patterns {
    pub(super) fn new() -> Result<Self, regex::Error> {
        let lines: Vec<&str> =
            include_str!("patterns.txt").lines().filter(|line| !line.starts_with("# ")).collect();
        let compile = |pattern: &str| RegexBuilder::new(pattern).case_insensitive(true).build();
        let lookaround = LOOKAROUND.iter().map(|rule| Ok((compile(rule.pattern)?, rule)));
        Ok(Self {
            plain: compile(&lines.join("|"))?,
            lookaround: lookaround.collect::<Result<_, regex::Error>>()?,
        })
    }

    /// Whether the user agent is a bot's or empty.
    pub(super) fn is_bot(&self, user_agent: &str) -> bool {
        let user_agent = user_agent.trim().to_lowercase();
        let matches = |(regex, rule): &(Regex, &LookaroundPattern)| {
            regex.find_iter(&user_agent).any(|found| {
                let (before, after) = (&user_agent[..found.start()], &user_agent[found.end()..]);
                !rule.not_after.iter().any(|text| before.ends_with(text))
                    && !rule.not_before.iter().any(|text| after.starts_with(text))
            })
        };
        user_agent.is_empty() || self.plain.is_match(&user_agent) || self.lookaround.iter().any(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the list, one a line.
    fn lines(file: &str) -> Vec<&str> {
        file.lines().filter(|line| !line.starts_with("# ")).collect()
    }

    #[test]
    fn the_examples_of_the_list_are_classified_correctly() {
        let patterns = Patterns::new().unwrap();
        let (bots, browsers) = (lines(include_str!("programs.txt")), lines(include_str!("browsers.txt")));
        assert!(bots.len() > 500 && browsers.len() > 500);
        let missed: Vec<_> = bots.iter().filter(|user_agent| !patterns.is_bot(user_agent)).collect();
        let misjudged: Vec<_> = browsers.iter().filter(|user_agent| patterns.is_bot(user_agent)).collect();
        assert!(missed.is_empty(), "bots classified as browsers: {missed:#?}");
        assert!(misjudged.is_empty(), "browsers classified as bots: {misjudged:#?}");
    }

    #[test]
    fn headless_browsers_tools_and_empty_user_agents_are_bots() {
        let patterns = Patterns::new().unwrap();
        let bots = [
            "",
            " ",
            "curl/8.5.0",
            "python-requests/2.32",
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/142.0.0.0 Safari/537.36",
        ];
        for bot in bots {
            assert!(patterns.is_bot(bot), "{bot}");
        }
    }
}
