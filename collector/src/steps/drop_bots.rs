//! Programs read pages too, and a site's owner doesn't want to know how often.

use domain::tracking::Dropped;
use isbot::Bots;

use crate::pipeline::Arrival;

/// Drops events whose user agent is a known program's, or that have none.
pub(crate) struct DropBots(Bots);

impl DropBots {
    pub(crate) fn new() -> Self {
        Self(Bots::default())
    }

    pub(crate) fn step(&self, arrival: &Arrival) -> Result<(), Dropped> {
        let agent = arrival.user_agent.trim();
        if agent.is_empty() || self.0.is_bot(agent) { Err(Dropped::Bot) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(user_agent: &str) -> Result<(), Dropped> {
        let arrival = Arrival {
            body: Default::default(),
            ip: [127, 0, 0, 1].into(),
            user_agent: user_agent.into(),
            at: Default::default(),
            taken_at: Default::default(),
        };
        DropBots::new().step(&arrival)
    }

    #[test]
    fn browsers_pass_and_programs_do_not() {
        let browsers = [
            "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.1 Mobile/15E148 Safari/604.1",
        ];
        for browser in browsers {
            assert_eq!(verdict(browser), Ok(()), "{browser}");
        }
        let programs = [
            "",
            "curl/8.5.0",
            "python-requests/2.32",
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/142.0.0.0 Safari/537.36",
        ];
        for program in programs {
            assert_eq!(verdict(program), Err(Dropped::Bot), "{program}");
        }
    }
}
