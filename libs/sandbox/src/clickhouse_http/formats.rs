//! Output formats: their media types, and whether they can be streamed.
//!
//! libchdb returns a SELECT's output in pieces, each a complete document of its format. Joined pieces are one document only
//! if a document consists of its rows, or of a header and its rows. Output in other formats is buffered.

/// The header of a piece, before its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// No header.
    None,
    /// This number of lines.
    Lines(usize),
    /// This number of lines, which may contain quoted line breaks.
    QuotedLines(usize),
    /// The number of columns, then this number of lists with a string per column. Lengths are LEB128.
    Binary(usize),
}

/// Returns the header of a format's pieces, or `None` if the pieces can't be joined.
pub(crate) fn header_of_pieces(format: &str) -> Option<Header> {
    Some(match format {
        "TabSeparated"
        | "TSV"
        | "TabSeparatedRaw"
        | "TSVRaw"
        | "CSV"
        | "JSONEachRow"
        | "JSONLines"
        | "NDJSON"
        | "JSONStringsEachRow"
        | "JSONCompactEachRow"
        | "JSONCompactStringsEachRow"
        | "RowBinary"
        | "Native" => Header::None,
        "TabSeparatedWithNames" | "TSVWithNames" | "JSONCompactEachRowWithNames" => Header::Lines(1),
        "TabSeparatedWithNamesAndTypes" | "TSVWithNamesAndTypes" | "JSONCompactEachRowWithNamesAndTypes" => {
            Header::Lines(2)
        }
        "CSVWithNames" => Header::QuotedLines(1),
        "CSVWithNamesAndTypes" => Header::QuotedLines(2),
        "RowBinaryWithNames" => Header::Binary(1),
        "RowBinaryWithNamesAndTypes" => Header::Binary(2),
        _ => return None,
    })
}

impl Header {
    /// Returns the size in bytes of the header of a piece.
    pub(crate) fn length(self, piece: &[u8]) -> usize {
        match self {
            Self::None => 0,
            Self::Lines(lines) => lines_length(piece, lines, false),
            Self::QuotedLines(lines) => lines_length(piece, lines, true),
            Self::Binary(lists) => lists_length(piece, lists).unwrap_or(piece.len()),
        }
    }
}

fn lines_length(piece: &[u8], lines: usize, quotes: bool) -> usize {
    let mut quoted = false;
    let ends = piece.iter().enumerate().filter_map(|(at, &byte)| {
        quoted ^= quotes && byte == b'"';
        (byte == b'\n' && !quoted).then_some(at + 1)
    });
    ends.take(lines).last().unwrap_or(piece.len())
}

fn lists_length(piece: &[u8], lists: usize) -> Option<usize> {
    let mut rest = piece;
    let columns = take_length(&mut rest)?;
    for _ in 0..columns.checked_mul(lists)? {
        let length = take_length(&mut rest)?;
        rest = rest.get(length..)?;
    }
    Some(piece.len() - rest.len())
}

fn take_length(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Returns the Content-Type that ClickHouse sends for a format.
pub(crate) fn media_type(format: &str) -> &'static str {
    match format {
        "JSON" | "JSONCompact" | "JSONStrings" | "JSONColumns" | "JSONCompactColumns" => {
            "application/json; charset=UTF-8"
        }
        "XML" => "application/xml; charset=UTF-8",
        "Parquet" | "ORC" | "Arrow" | "ArrowStream" | "Avro" => "application/octet-stream",
        _ if format.starts_with("JSON") => "application/x-ndjson; charset=UTF-8",
        _ if format.starts_with("RowBinary") || format == "Native" => "application/octet-stream",
        _ if format.starts_with("CSV") => "text/csv; charset=UTF-8; header=absent",
        _ if format.starts_with("TSV") || format.starts_with("TabSeparated") => {
            "text/tab-separated-values; charset=UTF-8"
        }
        _ => "text/plain; charset=UTF-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_the_header_of_each_kind() {
        assert_eq!(Header::QuotedLines(1).length(b"\"a\nb\",c\n1,2\n"), 8);
        assert_eq!(Header::Lines(2).length(b"a\t\"\nUInt8\tUInt8\n1\t2\n"), 16);
        assert_eq!(Header::Binary(2).length(b"\x01\x01a\x05UInt8\x07rest"), 9);
        assert_eq!(Header::None.length(b"1\n"), 0);
    }
}
