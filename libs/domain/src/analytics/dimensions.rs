//! Dimensions: by what a figure can be broken down and filtered.

/// The key of what has no value, in answers and in filters: no campaign, no known country, no foreign referrer.
pub const NONE: &str = "(none)";

/// What a figure can be broken down by and filtered on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    /// The path of a page that was viewed.
    Url,
    /// The foreign host a visit came from.
    Referrer,
    /// ISO 3166-1 alpha-2.
    Country,
    /// The city's English name.
    City,
    /// The region within the country.
    Region,
    /// `desktop`, `mobile`, `tablet`, …
    Device,
    /// The browser's name.
    Browser,
    /// The operating system's name.
    Os,
    /// `utm_source` of the address a visit began at.
    UtmSource,
    /// `utm_medium` of the address a visit began at.
    UtmMedium,
    /// `utm_campaign` of the address a visit began at.
    UtmCampaign,
    /// The path of a visit's first page view.
    EntryPage,
    /// The path of a visit's last page view.
    ExitPage,
    /// What kind of source a visit came from, such as `Organic Search`.
    Channel,
}

/// What a dimension says something about, which decides who can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A single page view.
    Page,
    /// The visitor: the same in all of their events and visits.
    Visitor,
    /// The visit: known from its first event on, and not to be seen in the others.
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

    /// The dimension's name in the API.
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

    /// The dimension with that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.as_str() == text)
    }

    /// What it says something about.
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
