//! TLS certificates: when one is ordered, renewed and retried, and which authority issues it.
//!
//! The limits are the authority's published ones. An order beyond them would be refused and counted, so it waits here and
//! its owner sees until when.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::retries;

/// Purpose of the encryption of certificates' private keys.
pub const KEY_PURPOSE: &str = "certificate_key";
/// Purpose of the encryption of the credentials of ACME accounts.
pub const ACCOUNT_PURPOSE: &str = "acme_account";
/// Purpose of the encryption of the keys of session tickets.
pub const TICKET_KEY_PURPOSE: &str = "ticket_key";
/// Period of [`OrderLimits::orders_per_3h`].
pub const ORDERS_PERIOD: TimeDelta = TimeDelta::hours(3);
/// Period of [`OrderLimits::certificates_per_domain_per_week`].
pub const CERTIFICATES_PERIOD: TimeDelta = TimeDelta::days(7);
/// Period of [`OrderLimits::failures_per_hour`].
pub const FAILURES_PERIOD: TimeDelta = TimeDelta::hours(1);

/// Rate limits of a certificate authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderLimits {
    /// Orders of this installation within three hours.
    pub orders_per_3h: u32,
    /// Certificates for names of one registered domain within a week.
    pub certificates_per_domain_per_week: u32,
    /// Refused orders for one name within an hour.
    pub failures_per_hour: u32,
}

/// For each exhausted limit, the time of the event that must be older than its period before the next order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExhaustedLimits {
    /// Of this installation's orders.
    pub order: Option<DateTime<Utc>>,
    /// Of the orders for domains of one account.
    pub account_order: Option<DateTime<Utc>>,
    /// Of the registered domain's certificates.
    pub certificate: Option<DateTime<Utc>>,
    /// Of the name's refused orders.
    pub failure: Option<DateTime<Utc>>,
}

/// A delay that the limits of an authority demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delay {
    /// The next permitted order.
    pub until: DateTime<Utc>,
    /// The reason, for the owner.
    pub reason: String,
}

impl OrderLimits {
    /// Returns the number of orders after which first orders wait. A tenth of the limit is kept for renewals.
    #[must_use]
    pub fn first_orders_per_3h(&self) -> u32 {
        self.orders_per_3h - self.orders_per_3h / 10
    }

    /// Returns the number of first orders for domains of one account: half of all, so that no account uses them up alone.
    #[must_use]
    pub fn account_orders_per_3h(&self) -> u32 {
        self.first_orders_per_3h().div_ceil(2)
    }

    /// Returns the delay of the next order; `None` if it is permitted now.
    #[must_use]
    pub fn delay(&self, exhausted: &ExhaustedLimits, now: DateTime<Utc>) -> Option<Delay> {
        let orders = format!("The certificate authority permits {} orders in 3 hours", self.orders_per_3h);
        let account_orders =
            format!("One account may order {} certificates in 3 hours", self.account_orders_per_3h());
        let certificates = format!(
            "The certificate authority permits {} certificates for one domain in a week",
            self.certificates_per_domain_per_week
        );
        let failures = format!(
            "The certificate authority permits {} refused orders for one name in an hour",
            self.failures_per_hour
        );
        [
            (exhausted.order, ORDERS_PERIOD, orders),
            (exhausted.account_order, ORDERS_PERIOD, account_orders),
            (exhausted.certificate, CERTIFICATES_PERIOD, certificates),
            (exhausted.failure, FAILURES_PERIOD, failures),
        ]
        .into_iter()
        .filter_map(|(at, period, limit)| Some((at? + period, limit)))
        .filter(|(until, _)| *until > now)
        .max_by_key(|(until, _)| *until)
        .map(|(until, limit)| Delay { until, reason: format!("{limit}. The order waits for its turn.") })
    }
}

/// Returns the registered domain of a host: `example.co.uk` for `www.example.co.uk`. An authority counts all certificates
/// under it together. A public suffix counts as its own.
#[must_use]
pub fn registered_domain(host: &str) -> &str {
    let host = host.strip_prefix("*.").unwrap_or(host);
    psl::domain_str(host).unwrap_or(host)
}

/// Returns the time of the attempt after `failed_attempts` failures in a row, at least 1. The last delay of the schedule
/// repeats.
#[must_use]
pub fn retry_at(
    schedule: &[Duration],
    failed_attempts: u32,
    fraction: f64,
    now: DateTime<Utc>,
) -> DateTime<Utc> {
    let at = usize::try_from(failed_attempts.saturating_sub(1)).unwrap_or(usize::MAX);
    let at = at.min(schedule.len().saturating_sub(1));
    now + retries::delay_before(schedule, at, fraction, None).unwrap_or(Duration::from_hours(1))
}

/// Returns when to renew a certificate: at a random time of the window that the authority suggests (RFC 9773), otherwise
/// when a third of its life is left. Whatever the window, time for further attempts is left: a day, or a tenth of the life
/// of a certificate that lives longer than ten days.
#[must_use]
pub fn renew_at(
    not_before: DateTime<Utc>,
    not_after: DateTime<Utc>,
    suggested: Option<(DateTime<Utc>, DateTime<Utc>)>,
    fraction: f64,
) -> DateTime<Utc> {
    let life = not_after - not_before;
    let a_third_left = not_after - life / 3;
    let latest = (not_after - TimeDelta::days(1).max(life / 10)).max(a_third_left);
    let Some((start, end)) = suggested.filter(|(start, end)| start <= end && *start < not_after) else {
        return a_third_left;
    };
    let length = (end - start).to_std().unwrap_or_default().mul_f64(fraction.clamp(0.0, 1.0));
    (start + length).min(latest)
}

/// Returns a number in 0..1 that is the same each time for one certificate and spread evenly over all of them. So a suggested
/// window that is read again gives the same moment.
#[must_use]
pub fn fraction_of(identifier: &str) -> f64 {
    let digest = Sha256::digest(identifier);
    let bits = digest.iter().take(4).fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
    f64::from(bits) / 2_f64.powi(32)
}

/// A configured certificate authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// The preferred one.
    First,
    /// The one that is tried when the preferred one fails.
    Fallback,
}

/// Returns the authority of the next attempt. After the first authority has failed for `fallback_after`, two attempts at
/// each alternate, so that each is tried with both kinds of challenges.
#[must_use]
pub fn authority(
    failing_since: Option<DateTime<Utc>>,
    failed_attempts: u32,
    fallback_after: TimeDelta,
    now: DateTime<Utc>,
) -> Authority {
    let has_failed_long = failing_since.is_some_and(|since| now - since >= fallback_after);
    if has_failed_long && (failed_attempts / 2) % 2 == 1 { Authority::Fallback } else { Authority::First }
}

/// Returns when an order that the first authority's limits delay may go to the fallback: `fallback_after` after its first
/// delay or failure.
#[must_use]
pub fn fallback_at(
    failing_since: Option<DateTime<Utc>>,
    fallback_after: TimeDelta,
    now: DateTime<Utc>,
) -> DateTime<Utc> {
    failing_since.unwrap_or(now) + fallback_after
}

/// How a name is proved to an authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ChallengeKind {
    /// A file on port 80 (RFC 8555, section 8.3).
    #[serde(rename = "http-01")]
    Http01,
    /// A certificate on port 443 (RFC 8737).
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn01,
}

impl ChallengeKind {
    /// Returns the kind as stored and as in ACME.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }

    /// Returns the kind of an attempt: the next one in `preferred` after each failure.
    #[must_use]
    pub fn of_attempt(preferred: &[Self], failed_attempts: u32) -> Option<Self> {
        let at = usize::try_from(failed_attempts).unwrap_or(0).checked_rem(preferred.len())?;
        preferred.get(at).copied()
    }
}

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCode {
    /// The authority refused the order or could not verify the name.
    Refused,
    /// The authority's limit, or ours of the same size, is reached.
    RateLimited,
    /// The authority did not answer.
    Unreachable,
    /// The record of DNS-01 could not be published in our own DNS.
    DnsUpdate,
    /// This service failed, as without its database.
    Internal,
}

impl FailureCode {
    /// Every code.
    pub const ALL: [Self; 5] =
        [Self::Refused, Self::RateLimited, Self::Unreachable, Self::DnsUpdate, Self::Internal];

    /// Returns the code as stored and as in the API, which never shows the wildcard's `dns_update_failed`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "acme_refused",
            Self::RateLimited => "acme_rate_limited",
            Self::Unreachable => "acme_unreachable",
            Self::DnsUpdate => "dns_update_failed",
            Self::Internal => "order_failed",
        }
    }
}

#[cfg(test)]
mod tests;
