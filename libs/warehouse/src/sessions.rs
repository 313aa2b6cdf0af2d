//! Visits (the table is called `sessions`): brought up to date with the stored events whenever a batch touches them.
//!
//! The rule is `domain::visits`; here stands what it takes to apply it to a store that several collectors write to,
//! at any time and more than once:
//!
//! - Only *stored* events are looked at, so what one collector knows doesn't matter, nor what it forgot.
//! - A visit's row carries a `version`: how many events of its visitor it was made from, and no less than any row before.
//!   The fuller row wins, of two as full the later one.
//! - A row whose visit is no more (a late event came before it) is written again as deleted.
//! - What nearly every batch does is go on with visits where they stopped (`extend`). A visit says what it was made
//!   of; where that and what came now is all there is of a visitor, nothing else is read, and the rest (`recompute`) is
//!   for whom it isn't.
//! - After writing, the events are counted once more. If there are others now, another collector may have looked
//!   before ours were there and written after us: the work is done again. So whoever comes last leaves it right.
//!
//! A visitor's id holds for one day (UTC). `previous`, on events soon after midnight, is the id of the day before:
//! ids chain so into persons. What a batch touches are its own ids, those before and those after; to know these
//! fully, one more is read at either end, and what began even before that is taken from the stored row.

mod extend;
mod link_expiry;
mod queries;
mod recompute;
mod rows;
mod visitor_links;
