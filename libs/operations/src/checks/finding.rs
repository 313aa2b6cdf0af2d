//! The result of one check.

use std::fmt;

use serde::Serialize;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// It works; an operator should know.
    Warning,
    /// Something does not work.
    Failed,
}

impl Status {
    /// Returns the status as it is shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was checked, such as `postgres.version`.
    pub check: &'static str,
    pub status: Status,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    /// A check that found nothing wrong.
    pub fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, status: Status::Ok, detail: detail.into(), advice: None }
    }

    /// A check that found something to know.
    pub fn warning(check: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Self { check, status: Status::Warning, detail: detail.into(), advice }
    }

    /// A check that found something broken.
    pub fn failed(check: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, status: Status::Failed, detail: detail.into(), advice: Some(advice.into()) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8} {:<22} {}", self.status.as_str(), self.check, self.detail)?;
        match &self.advice {
            Some(advice) => write!(f, "\n{:32}→ {advice}", ""),
            None => Ok(()),
        }
    }
}
