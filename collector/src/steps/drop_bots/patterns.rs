//! The public-domain list of isbot, the field's longest: of 1,342 programs of a foreign list it knows 99 %.

use regex::{Regex, RegexBuilder};

/// A pattern that JavaScript writes with look-around, which `regex` hasn't.
struct Exceptional {
    pattern: &'static str,
    /// Doesn't count behind one of these, …
    not_after: &'static [&'static str],
    /// … nor before one of these.
    not_before: &'static [&'static str],
}

const EXCEPTIONAL: &[Exceptional] = &[
    Exceptional { pattern: "(?:^|[^g])news", not_after: &[], not_before: &["sapphire"] },
    Exceptional {
        pattern: "google",
        not_after: &[" channel/", "google/"],
        not_before: &["wv", "app", "/google", " pixel"],
    },
    Exceptional { pattern: r"bots?(?:\b|_)", not_after: &[" cu"], not_before: &[] },
    Exceptional { pattern: "scan", not_after: &["cam"], not_before: &[] },
    Exceptional { pattern: "http", not_after: &["lib"], not_before: &[] },
    Exceptional { pattern: "java", not_after: &[], not_before: &[";"] },
];

/// All of the list, compiled.
pub(super) struct Patterns {
    plain: Regex,
    exceptional: Vec<(Regex, &'static Exceptional)>,
}

impl Patterns {
    pub(super) fn new() -> Result<Self, regex::Error> {
        let lines: Vec<&str> =
            include_str!("patterns.txt").lines().filter(|line| !line.starts_with("# ")).collect();
        let compile = |pattern: &str| RegexBuilder::new(pattern).case_insensitive(true).build();
        let exceptional = EXCEPTIONAL.iter().map(|one| Ok((compile(one.pattern)?, one)));
        Ok(Self {
            plain: compile(&lines.join("|"))?,
            exceptional: exceptional.collect::<Result<_, regex::Error>>()?,
        })
    }

    /// Whether this is a program's user agent, or none at all.
    pub(super) fn is_bot(&self, agent: &str) -> bool {
        let agent = agent.trim().to_lowercase();
        let holds = |(regex, exception): &(Regex, &Exceptional)| {
            regex.find_iter(&agent).any(|found| {
                let (before, after) = (&agent[..found.start()], &agent[found.end()..]);
                !exception.not_after.iter().any(|text| before.ends_with(text))
                    && !exception.not_before.iter().any(|text| after.starts_with(text))
            })
        };
        agent.is_empty() || self.plain.is_match(&agent) || self.exceptional.iter().any(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list's own examples, one a line.
    fn lines(file: &str) -> Vec<&str> {
        file.lines().filter(|line| !line.starts_with("# ")).collect()
    }

    #[test]
    fn the_lists_own_examples_are_told_apart() {
        let patterns = Patterns::new().unwrap();
        let (programs, browsers) = (lines(include_str!("programs.txt")), lines(include_str!("browsers.txt")));
        assert!(programs.len() > 500 && browsers.len() > 500);
        let missed: Vec<_> = programs.iter().filter(|agent| !patterns.is_bot(agent)).collect();
        let wronged: Vec<_> = browsers.iter().filter(|agent| patterns.is_bot(agent)).collect();
        assert!(missed.is_empty(), "programs taken for people: {missed:#?}");
        assert!(wronged.is_empty(), "people taken for programs: {wronged:#?}");
    }

    #[test]
    fn browsers_without_a_person_and_nothing_at_all_are_programs() {
        let patterns = Patterns::new().unwrap();
        let programs = [
            "",
            " ",
            "curl/8.5.0",
            "python-requests/2.32",
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/142.0.0.0 Safari/537.36",
        ];
        for program in programs {
            assert!(patterns.is_bot(program), "{program}");
        }
    }
}
