//! One event as one line: eight hexadecimal digits of CRC-32, a space, the event as JSON, a newline.
//!
//! Text, because what is stuck on a disk gets read by people; a checksum, because a disk that loses power keeps
//! what it likes.

use contract::events::Event;

/// A segment's lines, read.
#[derive(Debug)]
pub(super) struct Records {
    /// What is intact, in order.
    pub(super) events: Vec<Event>,
    /// Records that are not: torn, or damaged.
    pub(super) skipped: u64,
}

/// An intact line that is not an event: written by a version this one can't read.
#[derive(Debug, thiserror::Error)]
#[error("line {line} is intact but not an event this version knows: {reason}")]
pub(super) struct UnknownRecord {
    line: usize,
    reason: serde_json::Error,
}

pub(super) fn encode(event: &Event) -> serde_json::Result<Vec<u8>> {
    let mut line = b"........ ".to_vec();
    serde_json::to_writer(&mut line, event)?;
    let checksum = format!("{:08x}", crc32fast::hash(&line[9..]));
    line[..8].copy_from_slice(checksum.as_bytes());
    line.push(b'\n');
    Ok(line)
}

/// Reads a segment. The same bytes always give the same events: the deduplication token relies on it.
pub(super) fn decode(segment: &[u8]) -> Result<Records, UnknownRecord> {
    let mut lines = Records { events: Vec::new(), skipped: 0 };
    for (index, line) in segment.split_inclusive(|byte| *byte == b'\n').enumerate() {
        match intact(line) {
            Some(json) => {
                let event = serde_json::from_slice(json);
                lines.events.push(event.map_err(|reason| UnknownRecord { line: index + 1, reason })?);
            }
            None => lines.skipped += 1,
        }
    }
    Ok(lines)
}

/// The JSON of a whole line whose checksum holds.
fn intact(line: &[u8]) -> Option<&[u8]> {
    let (checksum, rest) = line.split_at_checked(8)?;
    let json = rest.strip_prefix(b" ")?.strip_suffix(b"\n")?;
    let checksum = u32::from_str_radix(std::str::from_utf8(checksum).ok()?, 16).ok()?;
    (crc32fast::hash(json) == checksum).then_some(json)
}
