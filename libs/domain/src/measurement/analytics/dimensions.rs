//! Dimensions by which metrics are broken down and filtered.

/// The key of an absent value, in responses and filters: no campaign, unknown country, no external referrer.
pub const NONE: &str = "(none)";

/// A dimension of breakdowns and filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    /// Path of a viewed page.
    Url,
    /// External host that referred the visit.
    Referrer,
    /// ISO 3166-1 alpha-2 code.
    Country,
    /// English name of the city.
    City,
    /// Region within the country.
    Region,
    /// `desktop`, `mobile`, `tablet`, …
    Device,
    /// Name of the browser.
    Browser,
    /// Name of the operating system.
    Os,
    /// `utm_source` of the visit's first URL.
    UtmSource,
    /// `utm_medium` of the visit's first URL.
    UtmMedium,
    /// `utm_campaign` of the visit's first URL.
    UtmCampaign,
    /// Path of the visit's first page view.
    EntryPage,
    /// Path of the visit's last page view.
    ExitPage,
    /// Channel of the visit, such as `Organic Search`.
    Channel,
}

/// The entity that has a dimension, which decides what table can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A single page view.
    Page,
    /// The visitor; the value is the same in all of its events and visits.
    Visitor,
    /// The visit; the value is stored with its first event only.
    Visit,
}

impl Dimension {
    /// Every dimension.
    pub const ALL: [Self; 14] = [
        Self::Url,
        Self::Referrer,
        Self::Country,
        Self::City,
        Self::Region,
        Self::Device,
        Self::Browser,
        Self::Os,
        Self::UtmSource,
        Self::UtmMedium,
        Self::UtmCampaign,
        Self::EntryPage,
        Self::ExitPage,
        Self::Channel,
    ];

    /// Returns the dimension's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Referrer => "referrer",
            Self::Country => "country",
            Self::City => "city",
            Self::Region => "region",
            Self::Device => "device",
            Self::Browser => "browser",
            Self::Os => "os",
            Self::UtmSource => "utm_source",
            Self::UtmMedium => "utm_medium",
            Self::UtmCampaign => "utm_campaign",
            Self::EntryPage => "entry_page",
            Self::ExitPage => "exit_page",
            Self::Channel => "channel",
        }
    }

    /// Parses the result of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.as_str() == text)
    }

    /// Returns the entity that has the dimension.
    pub fn subject(self) -> Subject {
        match self {
            Self::Url => Subject::Page,
            Self::Country | Self::City | Self::Region | Self::Device | Self::Browser | Self::Os => {
                Subject::Visitor
            }
            Self::Referrer
            | Self::UtmSource
            | Self::UtmMedium
            | Self::UtmCampaign
            | Self::EntryPage
            | Self::ExitPage
            | Self::Channel => Subject::Visit,
        }
    }
}
