//! The 19 channels and their rules, in order of evaluation.

use std::sync::LazyLock;

use regex::Regex;

use super::Kind;

/// The channel of a visit, such as organic search or e-mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the meaning; the rules stand beside")]
pub enum Channel {
    CrossNetwork,
    PaidShopping,
    PaidSearch,
    PaidSocial,
    PaidVideo,
    Display,
    PaidOther,
    OrganicShopping,
    OrganicSocial,
    OrganicVideo,
    OrganicSearch,
    Assistants,
    Email,
    Affiliates,
    Audio,
    Sms,
    MobilePush,
    Referral,
    Direct,
}

impl Channel {
    /// Every channel, in the order of the rules.
    pub const ALL: [Self; 19] = [
        Self::CrossNetwork,
        Self::PaidShopping,
        Self::PaidSearch,
        Self::PaidSocial,
        Self::PaidVideo,
        Self::Display,
        Self::PaidOther,
        Self::OrganicShopping,
        Self::OrganicSocial,
        Self::OrganicVideo,
        Self::OrganicSearch,
        Self::Assistants,
        Self::Email,
        Self::Affiliates,
        Self::Audio,
        Self::Sms,
        Self::MobilePush,
        Self::Referral,
        Self::Direct,
    ];

    /// Returns the channel's name in responses and in the warehouse.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CrossNetwork => "Cross-network",
            Self::PaidShopping => "Paid Shopping",
            Self::PaidSearch => "Paid Search",
            Self::PaidSocial => "Paid Social",
            Self::PaidVideo => "Paid Video",
            Self::Display => "Display",
            Self::PaidOther => "Paid Other",
            Self::OrganicShopping => "Organic Shopping",
            Self::OrganicSocial => "Organic Social",
            Self::OrganicVideo => "Organic Video",
            Self::OrganicSearch => "Organic Search",
            Self::Assistants => "AI Assistants",
            Self::Email => "Email",
            Self::Affiliates => "Affiliates",
            Self::Audio => "Audio",
            Self::Sms => "SMS",
            Self::MobilePush => "Mobile Push",
            Self::Referral => "Referral",
            Self::Direct => "Direct",
        }
    }
}

const DISPLAY: &[&str] = &["display", "banner", "expandable", "interstitial", "cpm"];
const SOCIAL: &[&str] = &["social", "social-network", "social-media", "sm", "social network", "social media"];
const EMAIL: &[&str] = &["email", "e-mail", "e_mail", "e mail", "newsletter"];
const REFERRAL: &[&str] = &["referral", "app", "link"];
/// Matches campaigns of shops: `eshop` but not `workshop`.
static SHOPPING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("^(.*(([^a-df-z]|^)shop|shopping).*)$").ok());

/// The inputs of the rules; all but the source's name are in lower case.
pub(super) struct Evidence<'a> {
    pub(super) kind: Option<Kind>,
    pub(super) name: &'a str,
    /// Whether the source's name is that of a site's advertisements.
    pub(super) advertised: bool,
    pub(super) campaign_source: &'a str,
    pub(super) medium: &'a str,
    pub(super) campaign: &'a str,
    pub(super) click: &'a str,
}

impl Evidence<'_> {
    /// Returns the channel of the first rule that matches.
    pub(super) fn channel(&self) -> Channel {
        Channel::ALL.into_iter().find(|channel| self.holds(*channel)).unwrap_or(Channel::Direct)
    }

    fn holds(&self, channel: Channel) -> bool {
        let is = |kind| self.kind == Some(kind);
        let shopping =
            || is(Kind::Shopping) || SHOPPING.as_ref().is_some_and(|shop| shop.is_match(self.campaign));
        let medium = self.medium;
        let either = |words: &[&str]| {
            words.iter().any(|word| medium.contains(word) || self.campaign_source.contains(word))
        };
        match channel {
            Channel::CrossNetwork => self.campaign.contains("cross-network"),
            Channel::PaidShopping => self.paid_medium() && shopping(),
            Channel::PaidSearch => is(Kind::Search) && (self.paid() || self.paid_click()),
            Channel::PaidSocial => is(Kind::Social) && self.paid(),
            Channel::PaidVideo => is(Kind::Video) && self.paid(),
            Channel::Display => DISPLAY.contains(&medium),
            Channel::PaidOther => self.paid_medium(),
            Channel::OrganicShopping => shopping(),
            Channel::OrganicSocial => is(Kind::Social) || SOCIAL.contains(&medium),
            Channel::OrganicVideo => is(Kind::Video) || medium.contains("video"),
            Channel::OrganicSearch => is(Kind::Search) || medium == "organic",
            Channel::Assistants => is(Kind::Assistant),
            Channel::Email => is(Kind::Email) || either(EMAIL),
            Channel::Affiliates => medium == "affiliate",
            Channel::Audio => medium == "audio",
            Channel::Sms => medium == "sms" || self.campaign_source == "sms",
            Channel::MobilePush => {
                medium.ends_with("push")
                    || medium.contains("mobile")
                    || medium.contains("notification")
                    || self.campaign_source == "firebase"
            }
            Channel::Referral => REFERRAL.contains(&medium) || !self.name.is_empty(),
            Channel::Direct => true,
        }
    }

    /// Returns whether the medium is `cpc`, `cpv`, `ppc` and the like, `retargeting` or `paid…`.
    fn paid_medium(&self) -> bool {
        self.medium.contains("cp")
            || matches!(self.medium, "ppc" | "retargeting")
            || self.medium.starts_with("paid")
    }

    fn paid(&self) -> bool {
        self.paid_medium() || self.advertised
    }

    /// Returns whether the URL has a click parameter that only paid advertisements get.
    fn paid_click(&self) -> bool {
        match self.click {
            "gclid" | "gbraid" | "wbraid" => self.name == "Google",
            "msclkid" => self.name == "Bing",
            _ => false,
        }
    }
}
