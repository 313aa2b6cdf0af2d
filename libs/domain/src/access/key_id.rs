//! Ids of master keys, and the header by which a sealed value names the key that sealed it.

/// First bytes of the header. Values of earlier releases have none: they begin with a random nonce, which begins like this
/// once in 2^32 values.
pub const HEADER_MARK: [u8; 4] = *b"\0mk1";
/// Bytes of the header: the mark, then the key's id.
pub const HEADER_BYTES: usize = HEADER_MARK.len() + ID_BYTES;
const ID_BYTES: usize = 4;

/// The id of a master key: 1 to 4 letters or digits, such as `2027`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; ID_BYTES]);

impl KeyId {
    /// The id of a key that is configured without one.
    pub const DEFAULT: Self = Self(*b"0\0\0\0");

    /// Parses the id in a setting.
    pub fn parse(text: &str) -> Option<Self> {
        let mut id = [0; ID_BYTES];
        id.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Self::from_bytes(&id)
    }

    /// Reads the id in a header, where short ids are followed by zeros.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let id: [u8; ID_BYTES] = bytes.try_into().ok()?;
        let length = id.iter().position(|byte| *byte == 0).unwrap_or(ID_BYTES);
        let (text, rest) = id.split_at(length);
        let is_valid =
            length > 0 && text.iter().all(u8::is_ascii_alphanumeric) && rest.iter().all(|byte| *byte == 0);
        is_valid.then_some(Self(id))
    }

    /// Reads the header of a sealed value. `None` if the value was sealed without one.
    pub fn of_sealed(sealed: &[u8]) -> Option<Self> {
        Self::from_bytes(sealed.strip_prefix(&HEADER_MARK)?.get(..ID_BYTES)?)
    }

    /// Returns the header of the values that the key with this id seals.
    pub fn header(self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let (mark, id) = header.split_at_mut(HEADER_MARK.len());
        mark.copy_from_slice(&HEADER_MARK);
        id.copy_from_slice(&self.0);
        header
    }
}

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().filter(|byte| **byte != 0).try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}

impl std::fmt::Debug for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_1_to_4_letters_or_digits() {
        for right in ["0", "2027", "a", "Z9", "k1"] {
            let id = KeyId::parse(right).unwrap();
            assert_eq!(id.to_string(), right);
            assert_eq!(KeyId::of_sealed(&id.header()), Some(id));
        }
        for wrong in ["", "20271", "a b", "é", "a\0b", "-", "a\0"] {
            assert_eq!(KeyId::parse(wrong).filter(|id| id.to_string() == wrong), None, "{wrong:?}");
        }
        assert_eq!(KeyId::parse("0"), Some(KeyId::DEFAULT));
    }

    #[test]
    fn a_value_without_a_header_has_no_id() {
        for value in [&b""[..], b"\0mk", b"\0mk1", b"\0mk1a", b"\0mk1\0\0\0\0", b"\0mk1a\0b\0", b"0mk1aaaa"] {
            assert_eq!(KeyId::of_sealed(value), None, "{value:?}");
        }
    }
}
