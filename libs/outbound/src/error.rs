//! Why a call came to nothing, in words for the owner of the address. Addresses of chat platforms are secrets: no
//! message repeats a path, a query or a password.

use crate::address::NotPublic;

/// A call that has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The target isn't one that may be called; nothing was sent.
    #[error("the address is refused: {reason}")]
    RefusedTarget {
        /// Why not.
        reason: Refusal,
    },
    /// The host's name leads nowhere.
    #[error("the host's name can't be resolved")]
    Dns,
    /// No connection.
    #[error("no connection: {reason}")]
    Connect {
        /// The system's words.
        reason: String,
    },
    /// A connection, but no trust.
    #[error("TLS failed: {reason}")]
    Tls {
        /// What the handshake stumbled over.
        reason: String,
    },
    /// No whole answer within the time.
    #[error("no answer in time")]
    Timeout,
    /// The whole body was wanted and it is longer than allowed.
    #[error("the answer is too large")]
    TooLarge,
    /// What came back isn't HTTP, or broke off.
    #[error("the answer isn't proper HTTP: {reason}")]
    Protocol {
        /// What was wrong with it.
        reason: String,
    },
}

/// Why a target isn't called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not a URL with a host.
    #[error("it isn't a URL with a host")]
    NotAUrl,
    /// Neither https nor an allow-listed http.
    #[error("it must begin with https://")]
    NotHttps,
    /// A user name or password in the URL.
    #[error("it must not contain a user name or password")]
    Credentials,
    /// It leads, among other places or alone, inside.
    #[error("it leads to {0}")]
    Address(#[from] NotPublic),
}

impl Error {
    /// A stable word for logs, metrics and the API.
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

    /// Sorts a client's error by what lies at its root; the outer layers repeat the URL.
    pub(crate) fn sort(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::Timeout;
        }
        let causes = || std::iter::successors(std::error::Error::source(error), |cause| within(*cause));
        for cause in causes() {
            if let Some(ours) = cause.downcast_ref::<Self>() {
                return ours.clone();
            }
            if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                return Self::Tls { reason: tls.to_string() };
            }
        }
        let reason = causes().last().map_or_else(|| "it broke off".into(), ToString::to_string);
        if error.is_connect() { Self::Connect { reason } } else { Self::Protocol { reason } }
    }
}

/// The next cause: what an I/O error wraps (its `source` skips that), else the source.
fn within<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a (dyn std::error::Error + 'static)> {
    let wrapped = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    wrapped.map(|inner| inner as _).or_else(|| cause.source())
}
