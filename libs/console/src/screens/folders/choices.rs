//! The folders from which a list's filter chooses.

use serde_json::Value;

use crate::api_client::Call;
use crate::api_client::operations::FOLDERS_LIST;
use crate::state::Console;
use crate::viewer::Viewer;

/// Returns the account's folders; null if they can't be read. Then a list has no filter.
pub(crate) async fn choices(console: &Console, viewer: &Viewer) -> Value {
    let list = console.call(viewer, Call::of(&FOLDERS_LIST).query("limit", "100")).await;
    list.map(|mut list| list["folders"].take()).unwrap_or_default()
}
