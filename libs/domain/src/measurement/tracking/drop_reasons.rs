//! Drop reasons of events, reported to the site's owner and the operator.

/// The reason why an event was dropped. Each is counted under its [`name`](Self::as_str).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// Body longer than [`BODY_BYTES_MAX`](super::BODY_BYTES_MAX).
    TooLarge,
    /// Not a JSON object of the expected shape.
    Unreadable,
    /// Event name missing or too long.
    Name,
    /// Page URL missing, or not http(s).
    Url,
    /// Too many properties, or values that are neither text, number nor boolean.
    Props,
    /// The request comes from a chain of deliveries that calls itself.
    Loop,
    /// The client's address exceeds its rate limit.
    RateLimited,
    /// No site has this token.
    UnknownSite,
    /// The user agent is a bot.
    Bot,
    /// The referrer is a known spam host.
    ReferrerSpam,
    /// The visitor sent Do Not Track or GPC, and the site honours it.
    DoNotTrack,
    /// The account's monthly event quota is used up.
    Quota,
    /// A dependency needed to accept the event is unavailable.
    Unavailable,
    /// The backlog of events for the warehouse is full.
    Full,
    /// The segment file could not be written.
    Unwritable,
}

impl Dropped {
    /// Every reason.
    pub const ALL: [Self; 15] = [
        Self::TooLarge,
        Self::Unreadable,
        Self::Name,
        Self::Url,
        Self::Props,
        Self::Loop,
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

    /// Returns the reason's name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::Name => "name",
            Self::Url => "url",
            Self::Props => "props",
            Self::Loop => "loop",
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
