//! The errors of a call, with messages for the webhook's owner. URLs of chat platforms are secrets, so no message repeats a
//! path, a query or a password.

use crate::address::NotPublic;

/// A call without a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The target may not be called; nothing was sent.
    #[error("the URL is refused: {reason}")]
    RefusedTarget {
        /// The rule it violates.
        reason: Refusal,
    },
    /// The host name can't be resolved.
    #[error("the host name can't be resolved")]
    Dns,
    /// The connection could not be established.
    #[error("the connection failed: {reason}")]
    Connect {
        /// The system's message.
        reason: String,
    },
    /// The TLS handshake failed.
    #[error("TLS failed: {reason}")]
    Tls {
        /// The TLS library's message.
        reason: String,
    },
    /// The response was not complete in time.
    #[error("the response timed out")]
    Timeout,
    /// The whole body was requested and exceeds its limit.
    #[error("the response is too large")]
    TooLarge,
    /// The response is not valid HTTP or was interrupted.
    #[error("the response is not valid HTTP: {reason}")]
    Protocol {
        /// The HTTP library's message.
        reason: String,
    },
}

/// The reason why a target is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it is not a URL with a host")]
    NotAUrl,
    /// Neither https nor allow-listed http.
    #[error("it must begin with https://")]
    NotHttps,
    #[error("it must not contain a user name or password")]
    Credentials,
    /// At least one of its addresses is not public.
    #[error("it resolves to {0}")]
    Address(#[from] NotPublic),
}

impl Error {
    /// Every value of [`Error::class`].
    pub const CLASSES: [&str; 7] =
        ["refused_target", "dns", "connect", "tls", "timeout", "too_large", "protocol"];

    /// Returns a stable identifier for logs, metrics and the API, one of [`Error::CLASSES`].
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::RefusedTarget { .. } => "refused_target",
            Self::Dns => "dns",
            Self::Connect { .. } => "connect",
            Self::Tls { .. } => "tls",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::Protocol { .. } => "protocol",
        }
    }

    /// Classifies reqwest's error by its root cause, because the outer errors repeat the URL.
    pub(crate) fn classify(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::Timeout;
        }
        let causes = || std::iter::successors(std::error::Error::source(error), |cause| next_cause(*cause));
        for cause in causes() {
            if let Some(error) = cause.downcast_ref::<Self>() {
                return error.clone();
            }
            if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                return Self::Tls { reason: tls.to_string() };
            }
        }
        let reason =
            causes().last().map_or_else(|| "the connection was interrupted".into(), ToString::to_string);
        if error.is_connect() { Self::Connect { reason } } else { Self::Protocol { reason } }
    }
}

/// Returns the error that an I/O error wraps, which its `source` skips, else the source.
fn next_cause<'a>(
    cause: &'a (dyn std::error::Error + 'static),
) -> Option<&'a (dyn std::error::Error + 'static)> {
    let wrapped = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    wrapped.map(|inner| inner as _).or_else(|| cause.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_classes_are_listed() {
        let reason = || "a reason".to_owned();
        let all = [
            Error::RefusedTarget { reason: Refusal::NotHttps },
            Error::Dns,
            Error::Connect { reason: reason() },
            Error::Tls { reason: reason() },
            Error::Timeout,
            Error::TooLarge,
            Error::Protocol { reason: reason() },
        ];
        assert_eq!(all.map(|error| error.class()), Error::CLASSES);
    }
}
