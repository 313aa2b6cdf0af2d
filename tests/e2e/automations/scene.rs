//! What a story takes place in: its owner, its peer, and names of its own.

use anyhow::{Context, Result, ensure};
use harness::{Peer, PeerRequest};

use super::owner::Owner;

/// The surroundings of one story.
pub(super) struct Scene {
    pub(super) owner: Owner,
    pub(super) peer: Peer,
    /// Whether the job-runner is killed in the middle.
    pub(super) is_killed: bool,
}

impl Scene {
    /// A slug that no other story of the account has.
    pub(super) fn slug(&self, name: &str) -> String {
        format!("{name}-{}", if self.is_killed { "killed" } else { "undisturbed" })
    }

    /// The requests that runs sent to a path, without repeats. Without a kill, nothing may be repeated; after one, a
    /// repeat has the key and the body of the first request, and one that was never answered was repeated.
    pub(super) fn requests(&self, path: &str) -> Result<Vec<PeerRequest>> {
        let mut different: Vec<PeerRequest> = Vec::new();
        let all = self.peer.requests(path);
        for request in &all {
            let key = request.header("idempotency-key");
            ensure!(!key.is_empty(), "{path}: a request without Idempotency-Key");
            match different.iter().find(|one| one.header("idempotency-key") == key) {
                None => different.push(request.clone()),
                Some(first) => {
                    ensure!(self.is_killed, "{path}: a request was repeated without need: {key}");
                    ensure!(
                        (&first.path, &first.body) == (&request.path, &request.body),
                        "{path}: two different requests have the key {key}: {first:?}, {request:?}"
                    );
                }
            }
        }
        for lost in all.iter().filter(|request| request.hangs) {
            let key = lost.header("idempotency-key");
            let again = all.iter().filter(|one| !one.hangs && one.header("idempotency-key") == key);
            again.map(drop).next().with_context(|| format!("{path}: the request {key} was lost"))?;
        }
        Ok(different)
    }

    /// The only request that runs sent to a path, without repeats.
    pub(super) fn only_request(&self, path: &str) -> Result<PeerRequest> {
        let mut requests = self.requests(path)?;
        ensure!(requests.len() == 1, "{path} got {} requests: {requests:?}", requests.len());
        Ok(requests.remove(0))
    }
}
