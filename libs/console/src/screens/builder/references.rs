//! What a form can refer to: folders, pages and images of its account, as the choices of the builder.

use futures::join;
use serde_json::{Value, json};

use crate::api_client::Call;
use crate::api_client::operations::{ASSETS_LIST, PAGES_LIST, WEBHOOKS_LIST};
use crate::api_client::{Answer, operations::Operation};
use crate::screens::folders;
use crate::state::Console;
use crate::viewer::Viewer;

/// The choices of the builder.
#[derive(Debug)]
pub(super) struct References {
    pub(super) webhooks: Answer,
    /// `[{"id", "name"}]` by the name of the setting. Null if the list can't be read: saving leaves that setting as it is.
    pub(super) choices: Value,
}

/// Reads the newest hundred of each kind.
pub(super) async fn references(console: &Console, viewer: &Viewer) -> References {
    let newest =
        |operation: &'static Operation| Call::of(operation).query("sort", "newest").query("limit", "100");
    let (webhooks, pages, assets, folders) = join!(
        console.call(viewer, newest(&WEBHOOKS_LIST)),
        console.call(viewer, newest(&PAGES_LIST)),
        console.call(viewer, newest(&ASSETS_LIST)),
        folders::choices(console, viewer),
    );
    let choices = json!({
        "folderId": folders,
        "autoEntryPageId": pages.map_or(Value::Null, |list| page_choices(&list)),
        "appearance.logoAssetId": assets.map_or(Value::Null, |list| image_choices(&list)),
    });
    References { webhooks, choices }
}

fn page_choices(list: &Value) -> Value {
    let pages = list["pages"].as_array().into_iter().flatten();
    pages.map(|page| json!({ "id": page["id"], "name": format!("{} (/{})", text(page, "title"), text(page, "slug")) })).collect()
}

/// Returns the assets that a form can show: images that are uploaded.
fn image_choices(list: &Value) -> Value {
    let assets = list["assets"].as_array().into_iter().flatten();
    let images = assets.filter(|asset| {
        text(asset, "contentType").starts_with("image/") && asset["isUploaded"] == Value::Bool(true)
    });
    images.map(|image| json!({ "id": image["id"], "name": image["filename"] })).collect()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploaded_images_and_all_pages_are_choices() {
        let asset = |id: &str, kind: &str, is_uploaded: bool| json!({ "id": id, "filename": "f", "contentType": kind, "isUploaded": is_uploaded });
        let list = json!({ "assets": [asset("a", "image/png", true), asset("b", "image/png", false), asset("c", "text/css", true)] });
        assert_eq!(image_choices(&list), json!([{ "id": "a", "name": "f" }]));
        let list = json!({ "pages": [{ "id": "p", "title": "News", "slug": "news" }] });
        assert_eq!(page_choices(&list), json!([{ "id": "p", "name": "News (/news)" }]));
    }
}
