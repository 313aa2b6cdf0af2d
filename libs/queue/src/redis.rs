//! The queue's state in Redis and the five scripts that change it. Each script is atomic.

use std::time::Duration;

use redis::{Script, ScriptInvocation};
use redis_connection::{Connection, Primary};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::Error;
use crate::lease::LeaseKey;
use crate::task::{Task, UnreadableTask};

/// A Redis server that forks or rewrites its log can pause for seconds; a shorter timeout would only add load.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_RETRIES: usize = 2;

/// How long one blocking call waits for a notification before it is repeated.
const BLOCK_SECONDS: u32 = 5;

/// Maximum number of tasks in one call of the push script, so that each call blocks Redis for milliseconds only.
const PUSH_BATCH: usize = 100;

pub(crate) struct RedisQueue {
    calls: Connection,
    /// A connection of its own, because waiting for notifications blocks it.
    notifications: Connection,
    keys: Keys,
    scripts: Scripts,
}

struct Keys {
    jobs: String,
    waiting: String,
    running: String,
    lease_owners: String,
    expirations: String,
    notify: String,
}

struct Scripts {
    push: Script,
    claim: Script,
    renew: Script,
    ack: Script,
    nack: Script,
}

/// A job's body as stored in Redis.
#[derive(Serialize, Deserialize)]
struct StoredJob<J> {
    job: J,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
}

/// The result of a claim.
pub(crate) struct ClaimedJobs {
    /// Ids and serialized bodies.
    pub(crate) jobs: Vec<(String, String)>,
    /// Ids of jobs that were dropped because they reached `max_runs`.
    pub(crate) dropped: Vec<String>,
}

impl RedisQueue {
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        let primary = Primary::new(config.server.clone())?;
        let block_timeout = RESPONSE_TIMEOUT + Duration::from_secs(BLOCK_SECONDS.into());
        let key = |part| format!("{}:{part}", config.name);
        Ok(Self {
            calls: Connection::new(primary.clone(), RESPONSE_TIMEOUT, CONNECT_RETRIES),
            notifications: Connection::new(primary, block_timeout, CONNECT_RETRIES),
            keys: Keys {
                jobs: key("jobs"),
                waiting: key("waiting"),
                running: key("running"),
                lease_owners: key("lease_owners"),
                expirations: key("expirations"),
                notify: key("notify"),
            },
            scripts: Scripts {
                push: Script::new(include_str!("lua/push.lua")),
                claim: Script::new(include_str!("lua/claim.lua")),
                renew: Script::new(include_str!("lua/renew.lua")),
                ack: Script::new(include_str!("lua/ack.lua")),
                nack: Script::new(include_str!("lua/nack.lua")),
            },
        })
    }

    pub(crate) async fn push<J: Serialize>(
        &self,
        tasks: &[Task<J>],
        max_jobs: usize,
    ) -> Result<usize, Error> {
        let Keys { jobs, waiting, running, notify, .. } = &self.keys;
        let mut accepted = 0;
        for chunk in tasks.chunks(PUSH_BATCH) {
            let mut call = self.scripts.push.prepare_invoke();
            call.key(jobs).key(waiting).key(running).key(notify).arg(max_jobs);
            for Task { id, job, traceparent } in chunk {
                let body = serde_json::to_string(&StoredJob { job, traceparent: traceparent.clone() })?;
                call.arg(id).arg(body);
            }
            let accepted_of_chunk: usize = self.invoke(&call).await?;
            accepted += accepted_of_chunk;
            if accepted_of_chunk < chunk.len() {
                break;
            }
        }
        Ok(accepted)
    }

    pub(crate) async fn claim(&self, max: usize, owner: &str, config: &Config) -> Result<ClaimedJobs, Error> {
        let Keys { jobs, waiting, running, notify, lease_owners, expirations } = &self.keys;
        let mut call = self.scripts.claim.prepare_invoke();
        call.key(jobs).key(waiting).key(running).key(notify).key(lease_owners).key(expirations);
        call.arg(max).arg(millis(config.lease_ttl)).arg(owner).arg(config.max_runs);
        let (jobs, dropped) = self.invoke(&call).await?;
        Ok(ClaimedJobs { jobs, dropped })
    }

    /// Extends leases by `lease_ttl` from now. Returns how many of them this worker no longer owned.
    pub(crate) async fn renew(&self, keys: &[LeaseKey], lease_ttl: Duration) -> Result<usize, Error> {
        let mut call = self.scripts.renew.prepare_invoke();
        call.key(&self.keys.running).key(&self.keys.lease_owners).arg(millis(lease_ttl));
        self.invoke(with_lease_keys(&mut call, keys)).await
    }

    pub(crate) async fn ack(&self, done: &[LeaseKey]) -> Result<(), Error> {
        let Keys { jobs, running, lease_owners, expirations, .. } = &self.keys;
        let mut call = self.scripts.ack.prepare_invoke();
        call.key(jobs).key(running).key(lease_owners).key(expirations);
        self.invoke(with_lease_keys(&mut call, done)).await
    }

    pub(crate) async fn nack(&self, unstarted: &[LeaseKey]) -> Result<(), Error> {
        let Keys { waiting, running, lease_owners, notify, .. } = &self.keys;
        let mut call = self.scripts.nack.prepare_invoke();
        call.key(waiting).key(running).key(lease_owners).key(notify);
        self.invoke(with_lease_keys(&mut call, unstarted)).await
    }

    /// Forgets how often the leases of these jobs expired. A job that this version can't parse was never run by it, and must
    /// not be dropped after `max_runs`.
    pub(crate) async fn forget_expirations(&self, ids: &[&str]) -> Result<(), Error> {
        let call = redis::cmd("HDEL").arg(&self.keys.expirations).arg(ids).to_owned();
        Ok(self.calls.call(async |redis| call.query_async(redis).await).await?)
    }

    pub(crate) async fn depth(&self) -> Result<usize, Error> {
        let mut counts = redis::pipe();
        counts.llen(&self.keys.waiting).zcard(&self.keys.running);
        let (waiting, running): (usize, usize) =
            self.calls.call(async |redis| counts.query_async(redis).await).await?;
        Ok(waiting + running)
    }

    /// Returns when jobs were pushed, or after [`BLOCK_SECONDS`].
    pub(crate) async fn wait_for_notification(&self) -> Result<(), Error> {
        let call = redis::cmd("BLPOP").arg(&self.keys.notify).arg(BLOCK_SECONDS).to_owned();
        let _notification: redis::Value =
            self.notifications.blocking_call(async |redis| call.query_async(redis).await).await?;
        Ok(())
    }

    async fn invoke<T: redis::FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T, Error> {
        Ok(self.calls.call(async |redis| call.invoke_async(redis).await).await?)
    }
}

/// Parses a job's stored body.
pub(crate) fn parse<J: serde::de::DeserializeOwned>(
    id: String,
    body: &str,
) -> Result<Task<J>, serde_json::Error> {
    let StoredJob { job, traceparent } = serde_json::from_str(body)?;
    Ok(Task { id, job, traceparent })
}

/// Parses the stored body of a job of another version.
pub(crate) fn parse_unreadable(id: String, body: &str) -> Result<UnreadableTask, serde_json::Error> {
    let StoredJob { job, traceparent } = serde_json::from_str(body)?;
    Ok(UnreadableTask { id, job, traceparent })
}

fn with_lease_keys<'call, 'a>(
    call: &'call mut ScriptInvocation<'a>,
    keys: &[LeaseKey],
) -> &'call ScriptInvocation<'a> {
    for LeaseKey { id, owner } in keys {
        call.arg(id.as_ref()).arg(owner.as_ref());
    }
    call
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
