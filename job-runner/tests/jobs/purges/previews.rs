//! Previews end with their files, and no earlier.

use cache::BusEvent;
use chrono::TimeDelta;
use contract::{Change, Signal};
use domain::deploys::report::{DeployReport, DeployStats};
use domain::static_sites::SiteRules;
use futures::StreamExt;
use sandbox::test::until;
use store::deploys::Status;
use store::deploys::files::DeployFile;
use store::deploys::previews::{NewPreview, finish_preview};
use uuid::Uuid;

use crate::fixture::account::{Account, new_id, now};

/// Bytes that each file of a preview counts.
const FILE_BYTES: i64 = 5;

impl Account {
    async fn subdomain(&self) -> Uuid {
        let (id, name) = (new_id(), "quiet-otter");
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::subdomains::insert_subdomain(&mut conn, self.id, id, name, now()).await.unwrap();
        id
    }

    /// Inserts a preview with one file, which ends after `expires_in`.
    async fn preview(&self, subdomain_id: Uuid, token: &str, expires_in: TimeDelta) -> Uuid {
        let (deploy_id, zip) = (new_id(), self.put(b"zip"));
        let mut tx = store::begin(&self.database.db).await.unwrap();
        store::deploys::insert_deploy(&mut tx, self.id, deploy_id, 3, ("a key", None), now()).await.unwrap();
        let zip = store::blobs::reference_blobs(&mut tx, self.id, &[zip]).await.unwrap()[0].id;
        store::deploys::update_uploaded(&mut tx, self.id, deploy_id, zip).await.unwrap();
        let stats = DeployStats {
            pages_created: 0,
            pages_updated: 0,
            assets_uploaded: 0,
            files_served: 1,
            files_left_out: 0,
        };
        let new = NewPreview {
            deploy_id,
            subdomain_id,
            token,
            expires_at: now() + expires_in,
            files: 1,
            rules: &SiteRules::default(),
            stats: &stats,
            report: &DeployReport::default(),
        };
        assert!(finish_preview(&mut tx, self.id, &new).await.unwrap());
        let blob = self.put(token.as_bytes());
        let file = DeployFile {
            path: "index.html".to_owned(),
            blob_id: store::blobs::reference_blobs(&mut tx, self.id, &[blob]).await.unwrap()[0].id,
            size_bytes: FILE_BYTES,
            content_type: "text/html".to_owned(),
            by_content: false,
            reason: None,
            title: None,
        };
        store::deploys::files::insert_files(&mut tx, self.id, deploy_id, &[file]).await.unwrap();
        store::blobs::release_blobs(&mut tx, self.id, &[zip], now()).await.unwrap();
        assert!(store::usage::reserve_bytes(&mut tx, self.id, FILE_BYTES, -1).await.unwrap());
        store::commit(tx).await.unwrap();
        deploy_id
    }

    async fn status(&self, deploy_id: Uuid) -> Status {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::deploys::find_deploy(&mut conn, self.id, deploy_id).await.unwrap().unwrap().status
    }
}

#[tokio::test]
async fn an_expired_preview_ends_with_its_files_and_bytes_and_no_other_does() {
    let account = Account::new().await;
    let site = account.subdomain().await;
    let over = account.preview(site, "aaaaaaaaaaaaaaaa", TimeDelta::seconds(-1)).await;
    let running_on = account.preview(site, "bbbbbbbbbbbbbbbb", TimeDelta::hours(1)).await;
    // A process is publishing it.
    let leased = account.preview(site, "cccccccccccccccc", TimeDelta::seconds(-1)).await;
    account
        .change(&format!("update deploys set leased_until = now() + interval '1 hour' where id = '{leased}'"))
        .await;
    assert_eq!(account.stored_bytes().await, 3 * FILE_BYTES);
    let bus: cache::Bus<Signal> = cache::Bus::connect(&account.redis.url, &account.redis.prefix).unwrap();
    let mut events = std::pin::pin!(bus.subscribe());
    assert_eq!(events.next().await, Some(BusEvent::Lagged));
    let running = account.run(&[]).await;
    let host = Change::Host { host: "aaaaaaaaaaaaaaaa--quiet-otter".to_owned() };
    let signal = BusEvent::Message(Signal::Changed(host));
    let mut changes = events
        .by_ref()
        .filter(|event| std::future::ready(matches!(event, BusEvent::Message(Signal::Changed(_)))));
    assert_eq!(changes.next().await, Some(signal), "and nothing of the live site");
    // The zip and the file of the expired preview.
    until(async || account.blobs.files().len() == 2).await;
    assert_eq!(account.status(over).await, Status::Expired);
    assert_eq!(account.stored_bytes().await, 2 * FILE_BYTES);
    for deploy_id in [running_on, leased] {
        assert_eq!(account.status(deploy_id).await, Status::Preview);
    }
    account.change(&format!("update deploys set leased_until = now() where id = '{leased}'")).await;
    until(async || account.status(leased).await == Status::Expired).await;
    until(async || account.blobs.files().len() == 1).await;
    running.stop().await;
    assert_eq!(account.stored_bytes().await, FILE_BYTES);
    assert_eq!(account.status(running_on).await, Status::Preview);
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let find = async |conn: &mut store::Conn, token: &str| {
        store::deploys::previews::find_site(conn, token, "quiet-otter", now()).await.unwrap()
    };
    assert!(find(&mut conn, "aaaaaaaaaaaaaaaa").await.is_none());
    let site = find(&mut conn, "bbbbbbbbbbbbbbbb").await.unwrap().parse();
    assert!(site.is_preview && !site.claimed && site.deploy_id == Some(running_on));
}
