//! Compression of bodies: ClickHouse's own framing in both directions, and LZ4 frames as a Content-Encoding of responses.
//!
//! A block of ClickHouse's framing consists of the CityHash 1.0.2 (128 bit) of the rest, a method byte, the size with this
//! header, the size of the raw bytes (both u32, little-endian), and the data.

use std::io::Write;

use bytes::{Buf, Bytes, BytesMut};

use super::exception::Exception;

const CHECKSUM: usize = 16;
const HEADER: usize = 9;
const LZ4: u8 = 0x82;
const NONE: u8 = 0x02;
/// ClickHouse's own limit of a block.
const MAX_BLOCK_BYTES: usize = 0x4000_0000;

fn checksum(block: &[u8]) -> [u8; CHECKSUM] {
    cityhash_rs::cityhash_102_128(block).rotate_right(64).to_le_bytes()
}

/// Decodes blocks that arrive in pieces cut anywhere.
#[derive(Default)]
pub(crate) struct Decoder {
    pending: BytesMut,
}

impl Decoder {
    /// Adds encoded bytes and returns the raw bytes of the blocks they complete.
    pub(crate) fn decode(&mut self, wire: &[u8]) -> Result<Vec<u8>, Exception> {
        self.pending.extend_from_slice(wire);
        let mut raw = Vec::new();
        while let Some(size) = self.complete_block()? {
            let block = self.pending.split_to(CHECKSUM + size).freeze();
            decode_block(&block, &mut raw)?;
        }
        Ok(raw)
    }

    /// Ends the input. An incomplete block is an error.
    pub(crate) fn finish(&self) -> Result<(), Exception> {
        if self.pending.is_empty() {
            return Ok(());
        }
        Err(Exception::new(33, "CANNOT_READ_ALL_DATA", "the last compressed block is incomplete"))
    }

    /// Returns the first block's size with its header, once the block is complete.
    fn complete_block(&self) -> Result<Option<usize>, Exception> {
        let Some(mut header) = self.pending.get(CHECKSUM..CHECKSUM + HEADER) else { return Ok(None) };
        header.advance(1);
        let (size, raw) = (header.get_u32_le() as usize, header.get_u32_le() as usize);
        if !(HEADER..=MAX_BLOCK_BYTES).contains(&size) || raw > MAX_BLOCK_BYTES {
            return Err(Exception::new(39, "TOO_LARGE_SIZE_COMPRESSED", "a compressed block is too large"));
        }
        Ok((self.pending.len() >= CHECKSUM + size).then_some(size))
    }
}

fn decode_block(block: &[u8], raw: &mut Vec<u8>) -> Result<(), Exception> {
    let (sum, body) = block.split_at(CHECKSUM);
    if checksum(body) != sum {
        let message = "Checksum doesn't match: corrupted data";
        return Err(Exception::new(40, "CHECKSUM_DOESNT_MATCH", message));
    }
    let (mut header, data) = body.split_at(HEADER);
    let method = header.get_u8();
    header.advance(4);
    let size = header.get_u32_le() as usize;
    match method {
        NONE => raw.extend_from_slice(data),
        LZ4 => {
            let start = raw.len();
            raw.resize(start + size, 0);
            let written = lz4_flex::block::decompress_into(data, raw.get_mut(start..).unwrap_or_default());
            if written.ok() != Some(size) {
                return Err(Exception::new(271, "CANNOT_DECOMPRESS", "Cannot decompress LZ4"));
            }
        }
        other => {
            let message =
                format!("Unknown compression method: {other:#x}; the sandbox supports LZ4 and none");
            return Err(Exception::new(89, "UNKNOWN_COMPRESSION_METHOD", message));
        }
    }
    Ok(())
}

/// The encoding of a response's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// No encoding.
    Plain,
    /// `compress=1`: ClickHouse's framing.
    Native,
    /// `Content-Encoding: lz4`: a sequence of LZ4 frames.
    Lz4Frames,
}

impl Encoding {
    /// Encodes a piece. It can be decoded without later pieces.
    pub(crate) fn encode(self, piece: Bytes) -> std::io::Result<Bytes> {
        match self {
            Self::Plain => Ok(piece),
            Self::Lz4Frames => {
                let mut frame = lz4_flex::frame::FrameEncoder::new(Vec::new());
                frame.write_all(&piece)?;
                Ok(Bytes::from(frame.finish().map_err(std::io::Error::other)?))
            }
            Self::Native => {
                let mut wire = Vec::new();
                piece.chunks(1 << 20).try_for_each(|raw| encode_block(raw, &mut wire))?;
                Ok(Bytes::from(wire))
            }
        }
    }
}

fn encode_block(raw: &[u8], wire: &mut Vec<u8>) -> std::io::Result<()> {
    let data = lz4_flex::block::compress(raw);
    let size = u32::try_from(HEADER + data.len()).map_err(std::io::Error::other)?;
    let raw_size = u32::try_from(raw.len()).map_err(std::io::Error::other)?;
    let mut block = Vec::with_capacity(HEADER + data.len());
    block.push(LZ4);
    block.extend_from_slice(&size.to_le_bytes());
    block.extend_from_slice(&raw_size.to_le_bytes());
    block.extend_from_slice(&data);
    wire.extend_from_slice(&checksum(&block));
    wire.extend_from_slice(&block);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(raw: &[u8]) -> Bytes {
        Encoding::Native.encode(Bytes::copy_from_slice(raw)).unwrap()
    }

    #[test]
    fn decodes_blocks_from_pieces_cut_anywhere() {
        let raw: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        let wire = encoded(&raw);
        for cut in [1, 7, 4096, wire.len()] {
            let mut decoder = Decoder::default();
            let mut out = Vec::new();
            for piece in wire.chunks(cut.max(wire.len() / 5000)) {
                out.extend(decoder.decode(piece).unwrap());
            }
            decoder.finish().unwrap();
            assert!(out == raw, "cut at {cut}");
        }
    }

    #[test]
    fn rejects_a_flipped_bit_and_an_incomplete_block() {
        let mut wire = encoded(b"some rows, some more rows").to_vec();
        let mut cut = Decoder::default();
        assert!(cut.decode(&wire[..wire.len() - 1]).unwrap().is_empty());
        assert_eq!(cut.finish().unwrap_err().code, 33);
        *wire.last_mut().unwrap() ^= 1;
        assert_eq!(Decoder::default().decode(&wire).unwrap_err().code, 40);
    }
}
