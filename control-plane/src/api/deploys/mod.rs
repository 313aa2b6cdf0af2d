//! Deploys: a whole site from one zip.

mod announced;
mod create;
mod delete;
mod list;
mod process;
mod publish;
mod read;
mod rollback;

use crate::App;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("deploys")
        .get("/api/deploy", list::list, "List deploys, newest first")
        .get("/api/deploy/{id}", read::read, "Get a deploy's state and progress")
        // The URL of a preview opens it without a key.
        .uncompressed()
        .delete("/api/deploy/{id}", delete::delete, "Delete a preview or an unprocessed deploy")
        .post("/api/deploy/{id}/publish", publish::publish, "Make a preview live")
        .post("/api/deploy/{id}/rollback", rollback::rollback, "Roll a site back to before its latest deploy")
        .extension()
        .body_limit(web::MAX_BODY_BYTES)
        .post("/api/deploy", create::create, "Create a deploy and get a URL to upload its zip to")
        .body_limit(create::MAX_BODY_BYTES)
        .post(
            "/api/deploy/{id}/process",
            process::process,
            "Publish the site in an uploaded zip, or make a preview",
        )
}
