//! Deploys: a whole site from one zip.

mod announced;
mod create;
mod process;
mod read;
mod rollback;

use crate::App;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("deploys")
        .get("/api/deploy/{id}", read::read, "Get a deploy's progress")
        .post("/api/deploy/{id}/rollback", rollback::rollback, "Roll a site back to before its latest deploy")
        .extension()
        .post("/api/deploy", create::create, "Create a deploy and get a URL to upload its zip to")
        // The operations before it take no body.
        .body_limit(create::MAX_BODY_BYTES)
        .post("/api/deploy/{id}/process", process::process, "Publish the site in an uploaded zip")
}
