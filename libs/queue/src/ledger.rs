//! What the queue keeps in Redis, and the five steps that change it, each one script and so all or nothing.

use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Script, ScriptInvocation};
use serde::{Deserialize, Serialize};

use crate::lease::Held;
use crate::{Config, Error, Task};

/// A server that forks or rewrites its log can pause for seconds; giving up earlier would only add load.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How long the wake-up call blocks at the server before it is made anew.
const BLOCK_SECONDS: u32 = 5;

/// Tasks in one call of the push script: what the server does at a stretch stays in the milliseconds.
const PUSH_AT_ONCE: usize = 100;

pub(crate) struct Ledger {
    calls: ConnectionManager,
    /// A connection of its own: the call that waits for wake-ups blocks it.
    waits: ConnectionManager,
    keys: Keys,
    scripts: Scripts,
}

struct Keys {
    jobs: String,
    waiting: String,
    running: String,
    holders: String,
    lapses: String,
    wake: String,
}

struct Scripts {
    push: Script,
    take: Script,
    renew: Script,
    finish: Script,
    give_back: Script,
}

/// A job as it stands in Redis.
#[derive(Serialize, Deserialize)]
struct Written<J> {
    job: J,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
}

/// What one take brought: jobs with their bodies, and the ids of those given up.
pub(crate) struct Taken {
    pub(crate) jobs: Vec<(String, String)>,
    pub(crate) dropped: Vec<String>,
}

impl Ledger {
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        let client = redis::Client::open(config.url.as_str())?;
        let patient = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(2)))
            .set_number_of_retries(2)
            .set_max_delay(Duration::from_millis(200));
        let calls = patient.clone().set_response_timeout(Some(ANSWER_WITHIN));
        let waits =
            patient.set_response_timeout(Some(ANSWER_WITHIN + Duration::from_secs(BLOCK_SECONDS.into())));
        let key = |part| format!("{}:{part}", config.name);
        Ok(Self {
            calls: ConnectionManager::new_lazy_with_config(client.clone(), calls)?,
            waits: ConnectionManager::new_lazy_with_config(client, waits)?,
            keys: Keys {
                jobs: key("jobs"),
                waiting: key("waiting"),
                running: key("running"),
                holders: key("holders"),
                lapses: key("lapses"),
                wake: key("wake"),
            },
            scripts: Scripts {
                push: Script::new(include_str!("lua/push.lua")),
                take: Script::new(include_str!("lua/take.lua")),
                renew: Script::new(include_str!("lua/renew.lua")),
                finish: Script::new(include_str!("lua/finish.lua")),
                give_back: Script::new(include_str!("lua/give_back.lua")),
            },
        })
    }

    pub(crate) async fn push<J: Serialize>(&self, tasks: &[Task<J>], limit: usize) -> Result<usize, Error> {
        let Keys { jobs, waiting, running, wake, .. } = &self.keys;
        let mut taken = 0;
        for chunk in tasks.chunks(PUSH_AT_ONCE) {
            let mut call = self.scripts.push.prepare_invoke();
            call.key(jobs).key(waiting).key(running).key(wake).arg(limit);
            for Task { id, job, traceparent } in chunk {
                let written = serde_json::to_string(&Written { job, traceparent: traceparent.clone() })?;
                call.arg(id).arg(written);
            }
            let of_chunk: usize = self.invoke(&call).await?;
            taken += of_chunk;
            if of_chunk < chunk.len() {
                break;
            }
        }
        Ok(taken)
    }

    pub(crate) async fn take(&self, most: usize, holder: &str, config: &Config) -> Result<Taken, Error> {
        let Keys { jobs, waiting, running, wake, holders, lapses } = &self.keys;
        let mut call = self.scripts.take.prepare_invoke();
        call.key(jobs).key(waiting).key(running).key(wake).key(holders).key(lapses);
        call.arg(most).arg(millis(config.lease)).arg(holder).arg(config.max_runs);
        let (jobs, dropped) = self.invoke(&call).await?;
        Ok(Taken { jobs, dropped })
    }

    /// Answers how many of them were no longer ours.
    pub(crate) async fn renew(&self, held: &[Held], lease: Duration) -> Result<usize, Error> {
        let mut call = self.scripts.renew.prepare_invoke();
        call.key(&self.keys.running).key(&self.keys.holders).arg(millis(lease));
        self.invoke(with(&mut call, held)).await
    }

    pub(crate) async fn finish(&self, done: &[Held]) -> Result<(), Error> {
        let Keys { jobs, running, holders, lapses, .. } = &self.keys;
        let mut call = self.scripts.finish.prepare_invoke();
        call.key(jobs).key(running).key(holders).key(lapses);
        self.invoke(with(&mut call, done)).await
    }

    pub(crate) async fn give_back(&self, unstarted: &[Held]) -> Result<(), Error> {
        let Keys { waiting, running, holders, wake, .. } = &self.keys;
        let mut call = self.scripts.give_back.prepare_invoke();
        call.key(waiting).key(running).key(holders).key(wake);
        self.invoke(with(&mut call, unstarted)).await
    }

    pub(crate) async fn depth(&self) -> Result<usize, Error> {
        let mut counts = redis::pipe();
        counts.llen(&self.keys.waiting).zcard(&self.keys.running);
        let mut calls = self.calls.clone();
        let (waiting, running): (usize, usize) = in_time(counts.query_async(&mut calls)).await?;
        Ok(waiting + running)
    }

    /// Returns when jobs were pushed, or after some seconds without.
    pub(crate) async fn wait(&self) -> Result<(), Error> {
        let mut waits = self.waits.clone();
        let call = redis::cmd("BLPOP").arg(&self.keys.wake).arg(BLOCK_SECONDS).to_owned();
        let _signal: redis::Value = call.query_async(&mut waits).await?;
        Ok(())
    }

    async fn invoke<T: redis::FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T, Error> {
        let mut calls = self.calls.clone();
        in_time(call.invoke_async(&mut calls)).await
    }
}

/// Reads a job back; the id is told by the caller.
pub(crate) fn read<J: serde::de::DeserializeOwned>(
    id: String,
    written: &str,
) -> Result<Task<J>, serde_json::Error> {
    let Written { job, traceparent } = serde_json::from_str(written)?;
    Ok(Task { id, job, traceparent })
}

/// Bounds the wait for a connection too, which the connection's own response time-out doesn't.
async fn in_time<T>(call: impl Future<Output = redis::RedisResult<T>>) -> Result<T, Error> {
    Ok(tokio::time::timeout(ANSWER_WITHIN, call).await.map_err(|_elapsed| Error::Timeout)??)
}

fn with<'call, 'a>(call: &'call mut ScriptInvocation<'a>, held: &[Held]) -> &'call ScriptInvocation<'a> {
    for Held { id, holder } in held {
        call.arg(id.as_ref()).arg(holder.as_ref());
    }
    call
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
