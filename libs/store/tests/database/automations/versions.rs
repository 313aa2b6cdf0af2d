//! A run goes on with the permissions and variables of the version that it began with.

use std::collections::{BTreeMap, BTreeSet};

use super::{ACCOUNT, now};
use chrono::TimeDelta;
use domain::restrictions::Restrictions;
use domain::scopes::{Resource, ScopeSet};
use sandbox::test::{automation, run_of, trial};
use service::Rng;
use store::Conn;
use store::automations::{
    Authority, AutomationChange, NewRun, OverLimit, RunEnd, RunLimit, RunLock, RunResult, SaveOutcome,
    claim_runs, complete_runs, delete_unused_definitions, insert_runs, lock_run, lock_runs,
    update_automation,
};
use uuid::Uuid;

const AUTOMATION: Uuid = Uuid::from_u128(2);
const PAGE: Uuid = Uuid::from_u128(3);

fn full() -> Authority {
    Authority { scopes: ScopeSet::FULL, restrictions: Restrictions::default() }
}

fn of_one_page() -> Authority {
    let ids = BTreeMap::from([(Resource::Pages, BTreeSet::from([PAGE]))]);
    Authority { scopes: ScopeSet::FULL, restrictions: Restrictions { folder_id: None, ids } }
}

async fn save(conn: &mut Conn, hash: &[u8], env: Option<&[u8]>, authority: &Authority) {
    let names = ["TOKEN".to_owned()];
    let change = AutomationChange {
        definition: Some((hash, "{}")),
        env: Some((if env.is_some() { &names } else { &[] }, env)),
        authority: Some(authority),
        trigger: Some(("http", None)),
        ..AutomationChange::default()
    };
    let saved = update_automation(conn, ACCOUNT, AUTOMATION, &change, now()).await.unwrap();
    assert_eq!(saved, SaveOutcome::Stored);
}

async fn start(conn: &mut Conn, hash: &[u8], number: u128) {
    let run = NewRun { definition_hash: hash.to_vec(), ..run_of(AUTOMATION, Uuid::from_u128(number)) };
    insert_runs(conn, ACCOUNT, now(), -1, OverLimit::Refuse, &[run]).await.unwrap();
}

/// Claims all runs after their leases, and returns what each may do and read.
async fn claimed(
    conn: &mut Conn,
    minutes: i64,
) -> Vec<(Option<Vec<u8>>, BTreeMap<Resource, BTreeSet<Uuid>>)> {
    let (at, limits) = (now() + TimeDelta::minutes(minutes), [RunLimit { account_id: ACCOUNT, limit: 10 }]);
    let until = at + TimeDelta::seconds(30);
    let mut runs = claim_runs(conn, at, until, Rng::system().uuid_v7(at), &limits).await.unwrap();
    runs.sort_by_key(|run| run.claim.run_id);
    let mut found = Vec::new();
    for run in runs {
        let alone = lock_run(conn, ACCOUNT, run.claim).await.unwrap().unwrap();
        let locks = lock_runs(conn, &[(ACCOUNT, run.claim)]).await.unwrap();
        let in_batch = match &locks[&run.claim.run_id] {
            RunLock::Held(authority) => Some(&authority.restrictions),
            RunLock::Busy => None,
        };
        assert_eq!(Some(&alone.restrictions), in_batch);
        found.push((run.sealed_env, alone.restrictions.ids));
    }
    found
}

#[tokio::test]
async fn a_run_gains_nothing_when_a_wider_key_saves_another_version() {
    let database = sandbox::test::database().await;
    trial(&database, ACCOUNT, now()).await;
    automation(&database, ACCOUNT, AUTOMATION, None, now()).await;
    let conn = &mut store::acquire(&database.db).await.unwrap();
    let (narrow, wide) = (of_one_page().restrictions.ids, BTreeMap::new());

    save(conn, b"a", None, &of_one_page()).await;
    start(conn, b"a", 101).await;
    // A second version of the narrow key, so that the first one is no longer the version before the wide one.
    save(conn, b"b", Some(b"dummy"), &of_one_page()).await;
    start(conn, b"b", 102).await;
    let dummy = Some(b"dummy".to_vec());
    let both = [(dummy.clone(), narrow.clone()), (dummy.clone(), narrow.clone())];
    assert_eq!(claimed(conn, 1).await, both, "variables of a key with the same permissions apply at once");

    save(conn, b"c", Some(b"secret"), &full()).await;
    start(conn, b"c", 103).await;
    let secret = Some(b"secret".to_vec());
    let kept = [(None, narrow.clone()), (dummy.clone(), narrow.clone()), (secret, wide.clone())];
    assert_eq!(claimed(conn, 2).await, kept);

    save(conn, b"d", Some(b"rotated"), &full()).await;
    let rotated = Some(b"rotated".to_vec());
    let kept = [(None, narrow.clone()), (dummy, narrow.clone()), (rotated.clone(), wide.clone())];
    assert_eq!(claimed(conn, 3).await, kept);

    // A wide key that saves the first version again stands for it.
    save(conn, b"a", Some(b"rotated"), &full()).await;
    assert_eq!(claimed(conn, 4).await[0], (rotated, wide));
}

#[tokio::test]
async fn a_former_version_is_deleted_after_its_last_run() {
    let database = sandbox::test::database().await;
    trial(&database, ACCOUNT, now()).await;
    automation(&database, ACCOUNT, AUTOMATION, None, now()).await;
    let conn = &mut store::acquire(&database.db).await.unwrap();
    start(conn, b"1", 101).await;
    save(conn, b"2", None, &full()).await;
    save(conn, b"3", None, &full()).await;
    let former = async || -> Vec<Vec<u8>> {
        let hashes = "select definition_hash from automation_former_versions order by 1";
        sqlx::query_scalar(hashes).fetch_all(&*database.db).await.unwrap()
    };
    assert_eq!(former().await, [b"1", b"2"]);
    let later = now() + TimeDelta::hours(1);
    delete_unused_definitions(conn, later, 10).await.unwrap();
    assert_eq!(former().await, [b"1"]);
    let limits = [RunLimit { account_id: ACCOUNT, limit: 10 }];
    let runs = claim_runs(conn, now(), later, Rng::system().uuid_v7(now()), &limits).await.unwrap();
    let end = RunEnd { claim: runs[0].claim, result: RunResult::Success { message: None }, at: now() };
    assert_eq!(complete_runs(conn, &[end]).await.unwrap().len(), 1);
    delete_unused_definitions(conn, later, 10).await.unwrap();
    assert!(former().await.is_empty());
}
