//! The record of one event: eight hexadecimal digits of CRC-32, a space, the event as JSON, a newline.
//!
//! It is text so that operators can read a segment that is stuck on a disk. The checksum detects records that a disk
//! damaged or stored in part when it lost power.

use contract::events::Event;

/// The decoded records of a segment.
#[derive(Debug)]
pub(super) struct Records {
    /// The events of intact records, in order.
    pub(super) events: Vec<Event>,
    /// Number of torn or damaged records.
    pub(super) skipped: u64,
}

/// An intact record that this version cannot read, because another version wrote it.
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

/// Decodes a segment. The same bytes always return the same events: the deduplication token relies on it.
pub(super) fn decode(segment: &[u8]) -> Result<Records, UnknownRecord> {
    let mut records = Records { events: Vec::new(), skipped: 0 };
    for (index, line) in segment.split_inclusive(|byte| *byte == b'\n').enumerate() {
        match intact_json(line) {
            Some(json) => {
                let event = serde_json::from_slice(json);
                records.events.push(event.map_err(|reason| UnknownRecord { line: index + 1, reason })?);
            }
            None => records.skipped += 1,
        }
    }
    Ok(records)
}

/// Returns the lines of those intact records whose events `keep` accepts, byte for byte. Lines that this version cannot read
/// stay.
pub(super) fn retain(segment: &[u8], keep: impl Fn(&Event) -> bool) -> Vec<u8> {
    let lines = segment.split_inclusive(|byte| *byte == b'\n');
    let kept = lines.filter(|line| {
        intact_json(line).is_some_and(|json| serde_json::from_slice(json).map_or(true, |event| keep(&event)))
    });
    kept.collect::<Vec<_>>().concat()
}

/// Returns the JSON of a complete line with a matching checksum.
fn intact_json(line: &[u8]) -> Option<&[u8]> {
    let (checksum, rest) = line.split_at_checked(8)?;
    let json = rest.strip_prefix(b" ")?.strip_suffix(b"\n")?;
    let checksum = u32::from_str_radix(std::str::from_utf8(checksum).ok()?, 16).ok()?;
    (crc32fast::hash(json) == checksum).then_some(json)
}
