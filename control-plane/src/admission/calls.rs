//! The permits of calls: per account, and per address.

use std::time::Duration;

use service::admission::{Admission, Permit, Timeout, UNLIMITED};
use uuid::Uuid;
use web::{ClientIp, Code, Problem};

use super::config::Api;
use super::rate::{Hit, Rate};

/// `Retry-After` of a call that waited in vain.
const RETRY_AFTER_SECONDS: u64 = 5;

/// The limits of calls under way.
#[derive(Debug)]
pub struct Calls {
    per_account: Admission<Uuid>,
    per_address: Admission<String>,
    queue_timeout: Duration,
    /// The limit of calls per second, if there is one.
    rate: Option<Rate>,
}

/// A call under way. Dropping it admits the next one of its account and address.
#[derive(Debug)]
pub struct CallPermit {
    _account: Option<Permit<Uuid>>,
    _address: Permit<String>,
}

impl Calls {
    pub(crate) fn new(config: &Api) -> Self {
        let limit = |max: usize| if max == 0 { UNLIMITED } else { max };
        let timeout = config.queue_timeout;
        Self {
            per_account: Admission::new(UNLIMITED, limit(config.max_concurrent_per_account), timeout),
            per_address: Admission::new(UNLIMITED, limit(config.max_concurrent_per_address), timeout),
            queue_timeout: timeout,
            rate: Rate::new(config.max_requests_per_second),
        }
    }

    /// Counts a call towards the limit per second.
    pub(crate) fn hit(&self, account_id: Option<Uuid>, ip: ClientIp) -> Hit {
        self.rate.as_ref().map_or_else(Hit::default, |rate| rate.hit(account_id, ip))
    }

    /// Waits until the account and the address have a call less under way. A call that waits for its account holds no
    /// permit of its address, so a busy account delays only itself.
    ///
    /// # Errors
    /// 503 after the queue timeout; nothing was changed.
    pub(crate) async fn acquire(
        &self,
        account_id: Option<Uuid>,
        ip: ClientIp,
    ) -> Result<CallPermit, Problem> {
        let acquire = async {
            let account = match account_id {
                Some(id) => Some(self.per_account.acquire(id).await?),
                None => None,
            };
            Ok(CallPermit { _account: account, _address: self.per_address.acquire(ip.network()).await? })
        };
        let acquired = tokio::time::timeout(self.queue_timeout, acquire).await;
        acquired.unwrap_or(Err(Timeout)).map_err(|Timeout| {
            let detail = "too many calls of this account or address are under way; nothing was changed";
            Problem::new(Code::Unavailable, detail)
                .hint("send fewer calls at a time")
                .retry_after(RETRY_AFTER_SECONDS)
        })
    }
}
