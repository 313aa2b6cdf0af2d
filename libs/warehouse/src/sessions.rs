//! Visits (table `sessions`), recomputed from the stored events whenever a batch adds some.
//!
//! The rules are in `domain::visits`. This module applies them to tables that several collectors write to at any time,
//! repeatedly and out of order:
//!
//! - Only *stored* events are read, so no state of a collector matters.
//! - The row of a visit has a `version`: the number of the visitor's events it was computed from, and at least that of
//!   earlier rows. The row with the highest version wins; among equals, the last.
//! - A visit that no longer exists, because a late event preceded it, is overwritten with a deleted row.
//! - Most batches only continue the last visits (`extend`). A visit's row has a tally of the events it consists of. If the
//!   tallies and the batch add up to all events of a visitor, nothing else is read; the others are recomputed from all
//!   their events (`recompute`).
//! - After writing, the events are counted again. If the count changed, another collector may have read before our events
//!   were stored and written after us, so the work is repeated. The last writer leaves the correct result.
//!
//! A visitor's id is valid for one day (UTC). On events soon after midnight, `previous` is the id of the day before, which
//! links the ids of one visitor. A batch affects its own ids, those before and those after. To read these completely, one
//! more id is read at either end; older ones are represented by their stored visit.

mod extend;
mod link_expiry;
mod queries;
mod recompute;
mod rows;
mod visitor_links;
