//! Pages: creation, updates, batches, versions, entries and archives.

mod archives;
mod batch;
mod create;
mod entries;
mod update;
mod versions;
