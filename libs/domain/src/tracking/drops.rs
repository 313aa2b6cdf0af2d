//! Why an event was not counted: a site's owner and an operator both ask.

/// The reason an event ended before the warehouse. Every one is counted under its [`word`](Self::as_str).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// Longer than [`BODY_BYTES_MAX`](super::BODY_BYTES_MAX).
    TooLarge,
    /// Not a JSON object of the expected shape.
    Unreadable,
    /// No name, or one too long to be a name.
    Name,
    /// No page address, or not one of the web.
    Url,
    /// Too many properties, or values that are neither text, number nor boolean.
    Props,
    /// The address sends more than its share.
    RateLimited,
    /// No site has this token.
    UnknownSite,
    /// The user agent is a program's.
    Bot,
    /// The page that led here is one of those that only advertise themselves.
    ReferrerSpam,
    /// The visitor asked not to be counted, and the site heeds it.
    DoNotTrack,
    /// The account's events of the month are used up.
    Quota,
    /// What is needed to place the event could not be asked for.
    Unavailable,
    /// Too much waits to be sent to the warehouse already.
    Full,
    /// The disk refused it.
    Unwritable,
}

impl Dropped {
    /// Every reason.
    pub const ALL: [Self; 14] = [
        Self::TooLarge,
        Self::Unreadable,
        Self::Name,
        Self::Url,
        Self::Props,
        Self::RateLimited,
        Self::UnknownSite,
        Self::Bot,
        Self::ReferrerSpam,
        Self::DoNotTrack,
        Self::Quota,
        Self::Unavailable,
        Self::Full,
        Self::Unwritable,
    ];

    /// The reason's stable name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::Name => "name",
            Self::Url => "url",
            Self::Props => "props",
            Self::RateLimited => "rate_limited",
            Self::UnknownSite => "unknown_site",
            Self::Bot => "bot",
            Self::ReferrerSpam => "referrer_spam",
            Self::DoNotTrack => "do_not_track",
            Self::Quota => "quota",
            Self::Unavailable => "unavailable",
            Self::Full => "full",
            Self::Unwritable => "unwritable",
        }
    }
}
