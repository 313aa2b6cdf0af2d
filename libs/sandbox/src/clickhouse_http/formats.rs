//! Output formats: their media types, and which can be sent piece by piece.
//!
//! libchdb hands out a SELECT in pieces, each a whole document of its format. Joined they are one document
//! only where a document is its rows, or a header and its rows; every other format is collected whole.

/// What a piece begins with before its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// Nothing.
    None,
    /// So many lines.
    Lines(usize),
    /// So many lines, in which a line's end may stand in quotes.
    QuotedLines(usize),
    /// A count of columns and so many lists of that many strings, in LEB128 lengths.
    Binary(usize),
}

/// What the pieces of a format begin with; `None` where pieces can't be joined.
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
    /// How many bytes of a piece its header takes.
    pub(crate) fn length(self, piece: &[u8]) -> usize {
        match self {
            Self::None => 0,
            Self::Lines(lines) => past_lines(piece, lines, false),
            Self::QuotedLines(lines) => past_lines(piece, lines, true),
            Self::Binary(lists) => past_lists(piece, lists).unwrap_or(piece.len()),
        }
    }
}

fn past_lines(piece: &[u8], lines: usize, quotes: bool) -> usize {
    let mut quoted = false;
    let ends = piece.iter().enumerate().filter_map(|(at, &byte)| {
        quoted ^= quotes && byte == b'"';
        (byte == b'\n' && !quoted).then_some(at + 1)
    });
    ends.take(lines).last().unwrap_or(piece.len())
}

fn past_lists(piece: &[u8], lists: usize) -> Option<usize> {
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

/// The Content-Type ClickHouse sends for a format.
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
    fn headers_are_measured_by_their_own_rules() {
        assert_eq!(Header::QuotedLines(1).length(b"\"a\nb\",c\n1,2\n"), 8);
        assert_eq!(Header::Lines(2).length(b"a\t\"\nUInt8\tUInt8\n1\t2\n"), 16);
        assert_eq!(Header::Binary(2).length(b"\x01\x01a\x05UInt8\x07rest"), 9);
        assert_eq!(Header::None.length(b"1\n"), 0);
    }
}
