//! The setting `secrets.master_key`: one key, or several with ids during a rotation.

use super::encryption::{Key, MasterKey};
use super::key_id::KeyId;

/// The setting is not valid. The message names the position of a wrong entry, never its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// No key is set.
    #[error("secrets.master_key is empty; make a key with `openssl rand -hex 32`")]
    Empty,
    /// An entry is neither a key nor an id and a key.
    #[error(
        "entry {0} of secrets.master_key is not valid: it must be 64 hexadecimal digits (`openssl rand -hex 32`), or ID:HEX with an id of 1 to 4 letters or digits, such as 2027:HEX; entries are separated by commas"
    )]
    Entry(usize),
    /// Two entries have the same id.
    #[error(
        "secrets.master_key has two keys with the id `{0}`; give each an id of its own (a key without an id has the id `0`)"
    )]
    DuplicateId(KeyId),
    /// Two entries have the same key.
    #[error(
        "secrets.master_key has the same key under the ids `{0}` and `{1}`; a new key must be a different one"
    )]
    DuplicateKey(KeyId, KeyId),
}

impl MasterKey {
    /// Parses the setting: `HEX`, or `ID:HEX, ID:HEX`. The first key seals, all open. A key without an id has the id `0`,
    /// so that an installation can prepend a key to its only one.
    ///
    /// # Errors
    /// The text is empty, an entry is not valid, or an id or key occurs twice.
    pub fn parse(text: &str) -> Result<Self, SettingError> {
        if text.trim().is_empty() {
            return Err(SettingError::Empty);
        }
        let mut keys: Vec<Key> = Vec::new();
        for (index, entry) in text.split(',').enumerate() {
            let key = entry_key(entry.trim()).ok_or(SettingError::Entry(index + 1))?;
            for other in &keys {
                if other.id == key.id {
                    return Err(SettingError::DuplicateId(key.id));
                }
                if other.secret == key.secret {
                    return Err(SettingError::DuplicateKey(other.id, key.id));
                }
            }
            keys.push(key);
        }
        let mut keys = keys.into_iter();
        let first = keys.next().ok_or(SettingError::Empty)?;
        Ok(Self::new(first, keys.collect()))
    }
}

fn entry_key(entry: &str) -> Option<Key> {
    match entry.split_once(':') {
        None => Key::from_hex(KeyId::DEFAULT, entry),
        Some((id, key)) => Key::from_hex(KeyId::parse(id.trim())?, key.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f";
    const B: &str = "0E0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e";

    fn ids(text: &str) -> Vec<String> {
        MasterKey::parse(text).unwrap().ids().map(|id| id.to_string()).collect()
    }

    #[test]
    fn one_key_or_several_with_ids_are_accepted() {
        assert_eq!(ids(A), ["0"]);
        assert_eq!(ids(&format!(" 2027 : {B} ,\n{A} ")), ["2027", "0"]);
        assert_eq!(ids(&format!("b:{B},a:{A}")), ["b", "a"]);
    }

    #[test]
    fn a_wrong_setting_is_refused_with_the_position_and_without_the_text() {
        let parse = |text: &str| MasterKey::parse(text).unwrap_err();
        let [zero, a] = ["0", "a"].map(|id| KeyId::parse(id).unwrap());
        assert_eq!(parse("  "), SettingError::Empty);
        for (text, position) in [
            (A[..63].to_owned(), 1),
            (format!("{A}{A}"), 1),
            (format!("a:{A},"), 2),
            (format!("a:{A},20271:{B}"), 2),
            (format!("a:{A};b:{B}"), 1),
            (format!("{A}:a"), 1),
            (format!(":{A}"), 1),
            (format!("a:{A}, b:+f{}", &B[2..]), 2),
        ] {
            let error = parse(&text);
            assert_eq!(error, SettingError::Entry(position), "{text}");
            assert!(!error.to_string().contains(&A[..8]), "{error}");
        }
        assert_eq!(parse(&format!("{A},{B}")), SettingError::DuplicateId(zero));
        assert_eq!(parse(&format!("{A},a:{A}")), SettingError::DuplicateKey(zero, a));
    }
}
