//! Cursors of paginated lists: the position after a row and the order of the list, as an opaque string.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::timestamps;

/// The last row of a page of a list: its creation time, to the microsecond, and its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub created_at: DateTime<Utc>,
    pub id: Uuid,
}

/// The order of the list that a cursor belongs to. A row's position in one order is none in the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorOrder {
    /// The order of a request without `sort`. Cursors of releases without `sort` have it.
    Usual,
    /// The newest rows first, as the request asked.
    NewestFirst,
}

/// The last byte of a cursor with [`CursorOrder::NewestFirst`].
const NEWEST_FIRST: u8 = 1;

/// A row of a paginated list.
pub trait Listed {
    /// Returns the row's position in the list.
    fn cursor(&self) -> Cursor;
}

impl Cursor {
    /// Encodes the cursor for callers, in the list's usual order or with the newest rows first.
    pub fn encode(&self, order: CursorOrder) -> String {
        let time = self.created_at.timestamp_micros().to_be_bytes();
        let mark: &[u8] = match order {
            CursorOrder::Usual => &[],
            CursorOrder::NewestFirst => &[NEWEST_FIRST],
        };
        URL_SAFE_NO_PAD.encode([time.as_slice(), self.id.as_bytes(), mark].concat())
    }

    /// Decodes a cursor and its order; `None` if [`Self::encode`] can't have produced the text.
    pub fn parse(text: &str) -> Option<(Self, CursorOrder)> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (time, rest) = bytes.split_at_checked(8)?;
        let (id, mark) = rest.split_at_checked(16)?;
        let order = match mark {
            [] => CursorOrder::Usual,
            [NEWEST_FIRST] => CursorOrder::NewestFirst,
            _ => return None,
        };
        let created_at = DateTime::from_timestamp_micros(i64::from_be_bytes(time.try_into().ok()?))?;
        timestamps::is_known(created_at).then_some(())?;
        Some((Self { created_at, id: Uuid::from_slice(id).ok()? }, order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_round_trips_and_a_changed_one_is_rejected() {
        let created_at = DateTime::from_timestamp_micros(1_763_694_704_123_456).unwrap();
        let cursor = Cursor { created_at, id: Uuid::from_u128(7) };
        for order in [CursorOrder::Usual, CursorOrder::NewestFirst] {
            assert_eq!(Cursor::parse(&cursor.encode(order)), Some((cursor, order)));
        }
        // A cursor that a client has kept from before cursors had an order.
        assert_eq!(Cursor::parse("AAZEEixU3kAAAAAAAAAAAAAAAAAAAAAH"), Some((cursor, CursorOrder::Usual)));
        let usual = cursor.encode(CursorOrder::Usual);
        // Forged cursors with times that Postgres can't store.
        let eons = [-1, i64::MIN / 2, i64::MAX / 2]
            .map(|micros| URL_SAFE_NO_PAD.encode([micros.to_be_bytes().as_slice(), &[0; 16]].concat()));
        for wrong in eons {
            assert_eq!(Cursor::parse(&wrong), None, "{wrong}");
        }
        for wrong in ["", "abc", "!!!!", &usual[1..], &format!("{usual}A"), &format!("{usual}Ag")] {
            assert_eq!(Cursor::parse(wrong), None, "{wrong}");
        }
    }
}
