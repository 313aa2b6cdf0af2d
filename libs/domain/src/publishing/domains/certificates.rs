//! The state of a domain's certificate.

use chrono::{DateTime, Utc};

use super::ErrorCode;

/// What is known of a domain's certificate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Certificate {
    /// Whether one was ordered.
    pub is_ordered: bool,
    /// When the one issued last ends.
    pub not_after: Option<DateTime<Utc>>,
    /// Why the last order failed.
    pub error: Option<ErrorCode>,
}

/// Returns `sslStatus`: `pending`, `issuing`, `active` or `failed`. An unexpired certificate is active, whatever becomes of its
/// renewal.
pub fn ssl_status(certificate: &Certificate, now: DateTime<Utc>) -> &'static str {
    match certificate {
        Certificate { not_after: Some(end), .. } if *end > now => "active",
        Certificate { error: Some(ErrorCode::AcmeRefused | ErrorCode::CaaForbids), .. } => "failed",
        Certificate { is_ordered: true, .. } => "issuing",
        _ => "pending",
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn an_unexpired_certificate_is_active_whatever_its_renewal_does() {
        let now = DateTime::UNIX_EPOCH;
        let (later, earlier) = (Some(now + TimeDelta::hours(1)), Some(now - TimeDelta::hours(1)));
        let refused = Some(ErrorCode::AcmeRefused);
        for (is_ordered, not_after, error, expected) in [
            (false, None, None, "pending"),
            (true, None, None, "issuing"),
            (true, None, Some(ErrorCode::AcmeRateLimited), "issuing"),
            (true, None, refused, "failed"),
            (true, later, refused, "active"),
            (true, earlier, None, "issuing"),
            (true, earlier, refused, "failed"),
        ] {
            assert_eq!(ssl_status(&Certificate { is_ordered, not_after, error }, now), expected);
        }
    }
}
