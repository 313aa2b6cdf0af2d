//! Why an attempt to order a certificate failed, in the authority's own words.

use std::error::Error as _;

use domain::certificates::FailureCode;
use instant_acme::{Error, Problem};

/// Longer words are cut: they are shown to the owner.
const MAX_WORDS: usize = 1_000;

/// What the owner is told when this service failed.
const INTERNAL: &str = "This service failed while it ordered the certificate.";

/// An attempt that failed.
#[derive(Debug)]
pub(super) enum AttemptError {
    /// The authority answered with an error, or did not answer.
    Acme(Error),
    /// The authority could not verify the name or refused the order, with these words.
    Refused(String),
    /// What was issued can't be used.
    Unusable(anyhow::Error),
    /// The record of the DNS challenge could not be published in our own DNS.
    Unpublished(anyhow::Error),
    /// Postgres or this service failed. The owner is told no more than that.
    Internal(anyhow::Error),
    /// Another replica took the certificate over.
    LeaseLost,
}

impl From<Error> for AttemptError {
    fn from(error: Error) -> Self {
        Self::Acme(error)
    }
}

impl From<store::Error> for AttemptError {
    fn from(error: store::Error) -> Self {
        Self::Internal(error.into())
    }
}

/// What the owner is told, and how the next attempt begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Explained {
    pub(super) code: FailureCode,
    pub(super) words: String,
    /// Whether the next attempt continues the order.
    pub(super) keeps_order: bool,
}

/// How a failure is mended within the same attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The authority rejected fresh nonces: the attempt is repeated.
    Repeat,
    /// The authority does not know the account: another one is registered, and its orders begin anew.
    Register,
    /// The authority does not know the order: another one begins.
    Reorder,
}

impl AttemptError {
    /// Returns the remedy; `None` if the attempt failed.
    pub(super) fn remedy(&self) -> Option<Remedy> {
        let Self::Acme(Error::Api(problem)) = self else { return None };
        match kind(problem) {
            "badNonce" => Some(Remedy::Repeat),
            "accountDoesNotExist" => Some(Remedy::Register),
            _ if problem.status == Some(404) => Some(Remedy::Reorder),
            _ => None,
        }
    }

    /// Returns whether the authority refused the order or the name.
    pub(super) fn is_refusal(&self) -> bool {
        let code = self.explain().map(|explained| explained.code);
        self.remedy().is_none() && code == Some(FailureCode::Refused)
    }

    /// Explains a failure; `None` if another replica goes on.
    pub(super) fn explain(&self) -> Option<Explained> {
        let (code, words) = match self {
            Self::Acme(Error::Api(problem)) => (code(problem), words(problem)),
            Self::Acme(error @ Error::Unsupported(_)) => (FailureCode::Refused, error.to_string()),
            Self::Acme(error) => {
                // The cause behind «client error (Connect)» says what happened.
                let cause = root_cause(error).map(|cause| format!(": {cause}")).unwrap_or_default();
                let words = format!("The certificate authority can't be reached: {error}{cause}");
                (FailureCode::Unreachable, words)
            }
            Self::Refused(words) => (FailureCode::Refused, words.clone()),
            Self::Unusable(error) => (FailureCode::Refused, format!("{error:#}")),
            Self::Unpublished(error) => (FailureCode::DnsUpdate, format!("{error:#}")),
            Self::Internal(_) => (FailureCode::Internal, INTERNAL.to_owned()),
            Self::LeaseLost => return None,
        };
        // What is only busy or unavailable continues the order later.
        let keeps_order = code != FailureCode::Refused;
        Some(Explained { code, words: shown(&words), keeps_order })
    }
}

/// Returns whether an authority refuses that an order names the certificate that it replaces.
pub(super) fn refuses_replacement(error: &Error) -> bool {
    match error {
        Error::Unsupported(_) => true,
        Error::Api(problem) => {
            problem.status == Some(409) || matches!(kind(problem), "alreadyReplaced" | "malformed")
        }
        // The authority ignored the field, which RFC 9773 forbids.
        Error::Other(error) => error.to_string().contains("replaces field mismatch"),
        _ => false,
    }
}

fn root_cause(error: &Error) -> Option<String> {
    let mut cause = error.source()?;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    Some(cause.to_string())
}

/// Returns the last part of an ACME error type.
fn kind(problem: &Problem) -> &str {
    problem.r#type.as_deref().and_then(|kind| kind.rsplit(':').next()).unwrap_or_default()
}

fn code(problem: &Problem) -> FailureCode {
    match (kind(problem), problem.status) {
        ("rateLimited", _) | (_, Some(429)) => FailureCode::RateLimited,
        // A rejected nonce says nothing about the order, which may be issued by now.
        ("serverInternal" | "badNonce", _) | (_, Some(500..)) => FailureCode::Unreachable,
        _ => FailureCode::Refused,
    }
}

/// Returns the authority's own words.
pub(super) fn words(problem: &Problem) -> String {
    let detail = problem.detail.clone().unwrap_or_default();
    let parts = problem.subproblems.iter().filter_map(|part| part.detail.clone());
    let all: Vec<String> = [detail].into_iter().chain(parts).filter(|part| !part.is_empty()).collect();
    if all.is_empty() {
        format!("The certificate authority reports: {}", kind(problem))
    } else {
        all.join(" ")
    }
}

/// Returns words without characters that a database or a terminal can't show.
fn shown(words: &str) -> String {
    words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(json: &str) -> AttemptError {
        AttemptError::Acme(Error::Api(serde_json::from_str(json).unwrap()))
    }

    #[test]
    fn a_refusal_keeps_the_authoritys_words_without_control_characters() {
        let refused = problem(
            r#"{"type":"urn:ietf:params:acme:error:unauthorized","detail":"Incorrect\u0000 \u001b[31mvalue","status":403}"#,
        );
        let explained = refused.explain().unwrap();
        assert_eq!(explained.words, "Incorrect   [31mvalue");
        assert_eq!((explained.code, explained.keeps_order), (FailureCode::Refused, false));
        let long = AttemptError::Refused("é".repeat(5_000)).explain().unwrap();
        assert_eq!(long.words.chars().count(), MAX_WORDS);
        let empty = problem(r#"{"type":"urn:ietf:params:acme:error:caa","status":403}"#);
        assert_eq!(empty.explain().unwrap().words, "The certificate authority reports: caa");
    }

    #[test]
    fn an_unreachable_authority_keeps_the_order_and_a_limit_is_told_apart() {
        let away = AttemptError::Acme(Error::Timeout(None)).explain().unwrap();
        assert_eq!((away.code, away.keeps_order), (FailureCode::Unreachable, true));
        let internal = problem(r#"{"type":"urn:ietf:params:acme:error:serverInternal","status":500}"#);
        assert_eq!(internal.explain().unwrap().code, FailureCode::Unreachable);
        let limited =
            problem(r#"{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many","status":429}"#);
        let limited = limited.explain().unwrap();
        assert_eq!((limited.code, limited.keeps_order), (FailureCode::RateLimited, true));
    }

    #[test]
    fn a_failure_of_this_service_keeps_the_order_and_shows_the_owner_no_internals() {
        let internal = AttemptError::Internal(anyhow::anyhow!("password authentication failed for user app"));
        let internal = internal.explain().unwrap();
        assert_eq!((internal.code, internal.words.as_str()), (FailureCode::Internal, INTERNAL));
        let unpublished = AttemptError::Unpublished(anyhow::anyhow!("no such zone")).explain().unwrap();
        assert_eq!((unpublished.code, unpublished.words.as_str()), (FailureCode::DnsUpdate, "no such zone"));
        assert!(internal.keeps_order && unpublished.keeps_order);
    }

    #[test]
    fn only_a_refusal_without_a_remedy_is_one() {
        let nonce = problem(r#"{"type":"urn:ietf:params:acme:error:badNonce","status":400}"#);
        let rejected = problem(r#"{"type":"urn:ietf:params:acme:error:rejectedIdentifier","status":400}"#);
        assert!(!nonce.is_refusal() && rejected.is_refusal());
        assert!(nonce.explain().unwrap().keeps_order, "the next attempt would have a second one issued");
        assert!(!AttemptError::Acme(Error::Timeout(None)).is_refusal());
    }

    #[test]
    fn a_rejected_nonce_and_an_unknown_account_or_order_are_mended() {
        let remedy = |json| problem(json).remedy();
        let nonce = r#"{"type":"urn:ietf:params:acme:error:badNonce","status":400}"#;
        let account = r#"{"type":"urn:ietf:params:acme:error:accountDoesNotExist","status":400}"#;
        let order = r#"{"type":"urn:ietf:params:acme:error:malformed","status":404}"#;
        let refused = r#"{"type":"urn:ietf:params:acme:error:rejectedIdentifier","status":400}"#;
        assert_eq!(remedy(nonce), Some(Remedy::Repeat));
        assert_eq!(remedy(account), Some(Remedy::Register));
        assert_eq!(remedy(order), Some(Remedy::Reorder));
        assert_eq!(remedy(refused), None);
    }
}
