//! Commits the changes of a call, with a row in the log of changes in the same transaction.

use contract::{Change, Signal};
use domain::scopes::Resource;
use store::Tx;
use store::activity::{Actor, ChangedResource, NewActivity, insert_activity};
use store::credentials::Credential;
use uuid::Uuid;
use web::Problem;

use super::Call;
use super::activity::Changed;
use crate::App;

impl<S> Call<S> {
    /// Names the resource that the call creates, or the one of several that the next commit changes.
    pub(crate) fn set_changed(&self, kind: Resource, id: Uuid, name: &str) {
        self.activity.set(Changed { kind, id, name: name.to_owned() });
    }

    /// As [`App::commit`], with the call in the log of changes.
    pub(crate) async fn commit(&self, app: &App, mut tx: Tx, changes: Vec<Change>) -> Result<(), Problem> {
        self.record(&mut tx).await?;
        app.commit(tx, changes).await
    }

    /// Commits a transaction that found nothing to change. The log of changes has no row of it.
    pub(crate) async fn commit_unchanged(&self, app: &App, tx: Tx) -> Result<(), Problem> {
        app.commit(tx, Vec::new()).await
    }

    /// As [`App::commit_and_send`], with the call in the log of changes.
    pub(crate) async fn commit_and_send(
        &self,
        app: &App,
        mut tx: Tx,
        signals: Vec<Signal>,
    ) -> Result<(), Problem> {
        self.record(&mut tx).await?;
        app.commit_and_send(tx, signals).await
    }

    async fn record(&self, tx: &mut Tx) -> Result<(), store::Error> {
        let Some(operation) = self.activity.operation else { return Ok(()) };
        let resource = self.activity.resource();
        let activity = NewActivity {
            at: self.now,
            actor: match self.caller.credential {
                Credential::Key { id, .. } => Actor::Key(id),
                Credential::Session { id, .. } => Actor::Session(id),
            },
            operation,
            resource: resource.as_ref().map(|changed| ChangedResource {
                kind: changed.kind.as_str(),
                id: changed.id,
                name: &changed.name,
            }),
            request_id: Some(&self.request_id),
        };
        insert_activity(tx, self.account_id, &activity).await
    }
}
