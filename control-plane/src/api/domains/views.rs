//! Custom domains as the API shows them.

use chrono::{DateTime, Utc};
use domain::domains::{Certificate, ErrorCode, Record, compare, explain, ssl_status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::domains::Domain;
use uuid::Uuid;
use web::{Problem, Reply};

use crate::App;
use crate::call::Call;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DomainView {
    id: Uuid,
    /// Host name.
    domain: String,
    /// The subdomain that the domain serves.
    subdomain_id: Uuid,
    /// Name of that subdomain.
    subdomain_name: String,
    /// `pending`, `active` (it is served) or `failed`.
    status: String,
    /// `pending`, `verified` or `failed`.
    dns_status: String,
    /// `pending`, `issuing`, `active` or `failed`.
    ssl_status: &'static str,
    /// Records that the domain's DNS must have, beside those that the last check found.
    records: Vec<Record>,
    /// What the domain is waiting for (extension); null if everything stands.
    error_code: Option<ErrorCode>,
    /// A sentence that says what to change; null if everything stands.
    error: Option<String>,
    /// When the DNS records were last checked; null before the first check.
    last_checked_at: Option<DateTime<Utc>>,
    /// When the records are checked again, or the certificate is ordered again (extension).
    next_attempt_at: DateTime<Utc>,
    /// The certificate (extension); null before the first one is issued.
    certificate: Option<CertificateView>,
    /// The domain that requests are redirected to with 308 (extension); null if there is none.
    redirect_to: Option<Uuid>,
    /// The `Strict-Transport-Security` header (extension); null if it is not sent.
    hsts: Option<Hsts>,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CertificateView {
    /// When it expires.
    not_after: DateTime<Utc>,
    /// The certificate authority's name.
    issuer: Option<String>,
    /// When it is renewed.
    next_renewal_at: Option<DateTime<Utc>>,
}

/// The `Strict-Transport-Security` header of a domain. Browsers then refuse plain http for `maxAge` seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Hsts {
    /// Seconds, at most two years.
    #[schemars(range(min = 0, max = 63_072_000))]
    pub(super) max_age: i64,
    /// Whether it holds for all names under the domain too.
    #[serde(default)]
    pub(super) include_sub_domains: bool,
}

impl DomainView {
    /// Returns the reply's one next step: the change that the domain waits for, or none.
    pub(super) fn with_next(reply: Reply<Self>, id: Uuid, hint: Option<String>) -> Reply<Self> {
        match hint {
            Some(hint) => reply.next("verify", "domains.read", json!({"id": id}), &hint),
            None => reply,
        }
    }

    /// Returns the one thing that the owner must do or wait for; `None` if the domain is served over https.
    pub(super) fn hint(&self) -> Option<String> {
        match (&self.error, self.last_checked_at, self.ssl_status) {
            (Some(error), _, _) => Some(error.clone()),
            (None, None, _) => {
                Some("Add the records to the DNS, then check whether they are visible".to_owned())
            }
            (None, Some(_), "active") => None,
            (None, Some(_), _) => {
                Some("The records stand. Wait for the certificate, then read the domain again".to_owned())
            }
        }
    }
}

/// Returns a domain with its records, compared with what the last check found.
pub(super) fn view(app: &App, row: Domain, now: DateTime<Utc>) -> DomainView {
    let routing = &app.domain_checks.routing;
    let cname = routing.cname(&row.subdomain);
    let target = routing.target(&cname);
    let found = row.found.map(|found| found.0);
    let comparison = compare(&row.domain, &row.challenge, &target, found.as_ref());
    let order_error = row.certificate_error_code.as_deref().and_then(ErrorCode::parse);
    let certificate = Certificate {
        is_ordered: row.ordered_at.is_some(),
        not_after: row.certificate_not_after,
        error: order_error,
    };
    let ssl_status = ssl_status(&certificate, now);
    let is_order_failing = ssl_status != "active" && row.error_code.is_none();
    let (error_code, error) = match order_error.filter(|_| is_order_failing) {
        Some(code) => {
            let sentence = explain(code, &row.domain, &target, &found.unwrap_or_default());
            // What failed here is said in full; the words of another failure are the authority's or a limit's.
            let words = row.certificate_error.filter(|_| code != ErrorCode::OrderFailed);
            let words = words.map(|words| format!(" The reason: {words}"));
            (Some(code), Some(sentence + words.as_deref().unwrap_or_default()))
        }
        None => (row.error_code.as_deref().and_then(ErrorCode::parse), row.error),
    };
    let next_order_at = row.certificate_next_attempt_at.filter(|_| is_order_failing);
    DomainView {
        id: row.id,
        records: comparison.records,
        domain: row.domain,
        subdomain_id: row.subdomain_id,
        subdomain_name: row.subdomain,
        status: row.status,
        dns_status: row.dns_status,
        ssl_status,
        error_code,
        error,
        last_checked_at: row.last_checked_at,
        // What is overdue or under way is due now.
        next_attempt_at: next_order_at.unwrap_or(row.next_attempt_at).max(now),
        certificate: row.certificate_not_after.map(|not_after| CertificateView {
            not_after,
            issuer: row.certificate_issuer,
            next_renewal_at: row.certificate_renew_at.map(|at| at.max(now)),
        }),
        redirect_to: row.redirect_to,
        hsts: row
            .hsts_max_age
            .map(|max_age| Hsts { max_age, include_sub_domains: row.hsts_include_subdomains }),
        created_at: row.created_at,
    }
}

/// Returns a domain of the account.
pub(super) async fn find<S>(call: &Call<S>, conn: &mut store::Conn, id: Uuid) -> Result<Domain, Problem> {
    let domain = store::domains::find_domain(conn, call.account_id, id).await?;
    domain.ok_or_else(|| Problem::not_found("domain"))
}
