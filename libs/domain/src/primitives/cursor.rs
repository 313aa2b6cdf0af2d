//! Cursors of paginated lists: the position after a row, as an opaque string.

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

/// A row of a paginated list.
pub trait Listed {
    /// Returns the row's position in the list.
    fn cursor(&self) -> Cursor;
}

impl Cursor {
    /// Encodes the cursor for callers.
    pub fn encode(&self) -> String {
        let time = self.created_at.timestamp_micros().to_be_bytes();
        URL_SAFE_NO_PAD.encode([time.as_slice(), self.id.as_bytes()].concat())
    }

    /// Decodes a cursor; `None` if [`Self::encode`] can't have produced the text.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (time, id) = bytes.split_at_checked(8)?;
        let created_at = DateTime::from_timestamp_micros(i64::from_be_bytes(time.try_into().ok()?))?;
        timestamps::is_known(created_at).then_some(())?;
        Some(Self { created_at, id: Uuid::from_slice(id).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_round_trips_and_a_changed_one_is_rejected() {
        let created_at = DateTime::from_timestamp_micros(1_763_694_704_123_456).unwrap();
        let cursor = Cursor { created_at, id: Uuid::from_u128(7) };
        assert_eq!(Cursor::parse(&cursor.encode()), Some(cursor));
        // Forged cursors with times that Postgres can't store.
        let eons = [-1, i64::MIN / 2, i64::MAX / 2]
            .map(|micros| URL_SAFE_NO_PAD.encode([micros.to_be_bytes().as_slice(), &[0; 16]].concat()));
        for wrong in eons {
            assert_eq!(Cursor::parse(&wrong), None, "{wrong}");
        }
        for wrong in ["", "abc", "!!!!", &cursor.encode()[1..], &format!("{}A", cursor.encode())] {
            assert_eq!(Cursor::parse(wrong), None, "{wrong}");
        }
    }
}
