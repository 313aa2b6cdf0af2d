//! Page entries: rendered as soon as the edge receives the signal, escaped, newest first.

use contract::Signal;
use serde_json::{Value, json};
use store::entries::{EntryOutcome, NewEntry, PageLocation, insert_entry};
use store::pages::{PageChange, update_page};
use uuid::Uuid;

use crate::fixtures::{Account, now};
use crate::harness::Edge;

impl Account<'_> {
    /// Inserts an entry as a submission does, and publishes the change.
    async fn entry(&self, edge: &Edge, page: Uuid, data: Value) {
        let entry = NewEntry {
            id: service::Rng::system().uuid_v7(now()),
            page_id: page,
            data,
            submission_id: Some(Uuid::nil()),
            created_at: now(),
        };
        let mut conn = store::acquire(&edge.database.db).await.unwrap();
        let shown = PageLocation { subdomain_id: self.subdomain_id, slug: "index".to_owned(), path: None };
        assert_eq!(
            insert_entry(&mut conn, self.id, &entry).await.unwrap(),
            EntryOutcome::Stored(shown.clone())
        );
        edge.bus.publish(&Signal::Changed(shown.into())).await.unwrap();
    }
}

#[tokio::test]
async fn entries_are_escaped_and_rendered_newest_first() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", "<ul><!-- service:entries --></ul>").await;
    let template = "<li title={{who}}>{{text}}".to_owned();
    let change = PageChange { entry_template: Some(Some(template)), ..PageChange::default() };
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    assert!(update_page(&mut conn, site.id, page, change, now()).await.unwrap());
    assert_eq!(edge.visitor.get(&site.host, "/").await.text(), "<ul><!-- service:entries --></ul>");

    let one = "<li title=\"a onclick=x\">&lt;script&gt;";
    site.entry(&edge, page, json!({"who": "a onclick=x", "text": "<script>"})).await;
    edge.get_until(&site.host, "/", |response| response.text() == format!("<ul>{one}</ul>")).await;
    site.entry(&edge, page, json!({"text": 2})).await;
    let both = format!("<ul><li title=\"\">2{one}</ul>");
    edge.get_until(&site.host, "/", |response| response.text() == both).await;
}
