//! Tests of sources and channels with real referrers and campaigns.

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
fn spam_hosts_include_their_subdomains() {
    assert!(is_spam("semalt.com"));
    assert!(is_spam("54.semalt.com"));
    assert!(!is_spam("notsemalt.com"));
    assert!(!is_spam("example.com"));
    assert!(!is_spam(""));
}

#[test]
fn every_channel_has_its_own_name() {
    let words: HashSet<_> = Channel::ALL.map(Channel::as_str).into();
    assert_eq!(words.len(), Channel::ALL.len());
}
