//! A gzip body with a gap that is filled in without compressing the rest again.
//!
//! The text before and after the gap is compressed once, into parts that end at byte boundaries. The text in the gap is
//! inserted as a stored block between them (RFC 1951, 3.2.4), and the checksums are combined.

use std::io;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// Method deflate, no flags, no time, unknown system (RFC 1952, 2.3).
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// Bytes added to a full output buffer.
const STEP_BYTES: usize = 4 * 1024;

/// The compressed parts.
pub(super) struct GzipWithGap {
    before: Vec<u8>,
    before_crc: Crc,
    after: Vec<u8>,
    after_crc: Crc,
}

impl GzipWithGap {
    /// # Errors
    /// The compressor failed, which it does only without memory.
    pub(super) fn new(before: &str, after: &str) -> io::Result<Self> {
        let crc_of = |text: &str| {
            let mut crc = Crc::new();
            crc.update(text.as_bytes());
            crc
        };
        Ok(Self {
            before: deflate(before.as_bytes(), FlushCompress::Sync)?,
            before_crc: crc_of(before),
            after: deflate(after.as_bytes(), FlushCompress::Finish)?,
            after_crc: crc_of(after),
        })
    }

    /// Returns the body with `gap` in the gap; `None` if the gap is too long for one block.
    pub(super) fn fill(&self, gap: &str) -> Option<Bytes> {
        let length = u16::try_from(gap.len()).ok()?;
        let mut crc = Crc::new();
        crc.combine(&self.before_crc);
        let mut gap_crc = Crc::new();
        gap_crc.update(gap.as_bytes());
        crc.combine(&gap_crc);
        crc.combine(&self.after_crc);
        let parts: [&[u8]; 9] = [
            &HEADER,
            &self.before,
            // A stored block that is not the last.
            &[0],
            &length.to_le_bytes(),
            &(!length).to_le_bytes(),
            gap.as_bytes(),
            &self.after,
            &crc.sum().to_le_bytes(),
            &crc.amount().to_le_bytes(),
        ];
        Some(parts.concat().into())
    }

    /// Returns the memory of the parts.
    pub(super) fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }
}

/// Returns the raw deflate blocks of `text`, ended by `flush`.
fn deflate(text: &[u8], flush: FlushCompress) -> io::Result<Vec<u8>> {
    let mut encoder = Compress::new(Compression::default(), false);
    let mut blocks = Vec::with_capacity(text.len() / 4 + STEP_BYTES);
    loop {
        let read = usize::try_from(encoder.total_in()).unwrap_or(text.len());
        let status = encoder.compress_vec(&text[read..], &mut blocks, flush).map_err(io::Error::other)?;
        let is_read = usize::try_from(encoder.total_in()).is_ok_and(|read| read == text.len());
        // A flush is complete once it leaves free space.
        let is_flushed = flush != FlushCompress::Finish && is_read && blocks.len() < blocks.capacity();
        if status == Status::StreamEnd || is_flushed {
            return Ok(blocks);
        }
        blocks.reserve(STEP_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unzipped(body: &Bytes) -> String {
        io::read_to_string(flate2::read::GzDecoder::new(&body[..])).unwrap()
    }

    #[test]
    fn a_filled_body_is_the_whole_text_for_every_gap() {
        let long = "<option value=\"a\">a</option>".repeat(40_000);
        // Incompressible text fills the output buffer exactly or not.
        let noise: String = (0..60_000_u32)
            .map(|n| char::from(33 + (n.wrapping_mul(2_654_435_761) >> 25) as u8 % 90))
            .collect();
        for (before, after) in
            [("", ""), ("a", ""), ("", "b"), (&*long, "</html>"), ("<html>", &long), (&noise, &noise)]
        {
            let gzip = GzipWithGap::new(before, after).unwrap();
            for gap in ["", "token", &"t".repeat(65_535)] {
                assert_eq!(unzipped(&gzip.fill(gap).unwrap()), [before, gap, after].concat());
            }
            assert!(gzip.fill(&"t".repeat(65_536)).is_none());
        }
        let gzip = GzipWithGap::new(&long, &long).unwrap();
        assert!(gzip.len() < long.len() / 20);
    }
}
