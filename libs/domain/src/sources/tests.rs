//! Referrers and campaigns as they come, and what the rules make of them.

use std::collections::HashSet;

use super::*;

#[test]
fn every_example_gets_its_name_and_its_channel() {
    let examples: Vec<Vec<&str>> = include_str!("examples.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
        .collect();
    assert!(examples.len() >= 200, "{}", examples.len());
    let mut wrong = Vec::new();
    let mut seen = HashSet::new();
    for example in &examples {
        let [source, medium, campaign, click, referrer_host, name, channel] = example[..] else {
            panic!("{example:?}")
        };
        let found = Source::of(Clues { source, medium, campaign, click, referrer_host });
        seen.insert(found.channel);
        if (found.name.as_str(), found.channel.as_str()) != (name, channel) {
            wrong.push(format!("{example:?} gave {} by {}", found.name, found.channel.as_str()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen.len(), Channel::ALL.len(), "each channel has an example");
}

#[test]
fn spam_is_known_by_its_host_and_those_below() {
    assert!(is_spam("semalt.com"));
    assert!(is_spam("54.semalt.com"));
    assert!(!is_spam("notsemalt.com"));
    assert!(!is_spam("example.com"));
    assert!(!is_spam(""));
}

#[test]
fn channels_have_words_of_their_own() {
    let words: HashSet<_> = Channel::ALL.map(Channel::as_str).into();
    assert_eq!(words.len(), Channel::ALL.len());
}
