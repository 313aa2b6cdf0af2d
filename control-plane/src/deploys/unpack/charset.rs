//! The text of an HTML file.

/// Decodes HTML as UTF-8, or else in the charset it declares within its first kilobyte.
pub(super) fn decode(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.trim_start_matches('\u{feff}').to_owned();
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1_024)]).to_ascii_lowercase();
    let declared = head.split_once("charset=").map(|(_, rest)| rest.trim_start_matches(['"', '\'']));
    let label = declared
        .and_then(|rest| rest.split(|c: char| !(c.is_ascii_alphanumeric() || "-_:".contains(c))).next());
    let encoding = label.and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
    // The default of browsers for a page without a declared charset.
    encoding.unwrap_or(encoding_rs::WINDOWS_1252).decode(bytes).0.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_decoded_as_browsers_do() {
        for (bytes, text) in [
            (b"\xef\xbb\xbf<p>\xc3\xa4".as_slice(), "<p>ä"),
            (b"<p>\xe4", "<p>ä"),
            (b"<meta charset='iso-8859-2'>\xb9", "<meta charset='iso-8859-2'>š"),
        ] {
            assert_eq!(decode(bytes), text);
        }
    }
}
