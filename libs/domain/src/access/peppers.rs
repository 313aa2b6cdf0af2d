//! The setting `secrets.key_pepper`: one pepper, or several during a rotation.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use super::keys::Pepper;

/// Bytes of the digest from which an id is made. An id needs to differ from those of a few other peppers only.
const ID_BYTES: usize = 4;
/// What is digested for an id. It is not a well-formed key, so no fingerprint begins like an id by design.
const ID_TEXT: &str = "pepper id v1";
/// Digits of a pepper by which a list is told from a single pepper that contains a comma.
const MIN_HEX_DIGITS: usize = 32;

/// The setting is not valid. The message names the position of a wrong entry, never its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PepperSettingError {
    /// The only pepper is too short.
    #[error("secrets.key_pepper must have at least 16 characters; make one with `openssl rand -hex 32`")]
    Short,
    /// One of several peppers is too short.
    #[error(
        "entry {0} of secrets.key_pepper has fewer than 16 characters; entries are separated by commas, the first is for new keys; a comma within a pepper is written `\\,`"
    )]
    ShortEntry(usize),
    /// Two entries are the same pepper.
    #[error("entries {0} and {1} of secrets.key_pepper are the same; a new pepper must be a different one")]
    Duplicate(usize, usize),
    /// Several entries may be parts of one pepper that contains a comma, as releases that knew no lists allowed.
    #[error(
        "secrets.key_pepper contains a comma, and entries {0} and {1} are not of at least 32 hexadecimal digits: if it is one pepper, write the comma within it as `\\,`; if it is a list, all entries but one must be made by `openssl rand -hex 32`"
    )]
    Ambiguous(usize, usize),
}

/// The peppers of this installation, at least one. New fingerprints are made with the first; keys of all of them are valid.
/// Cheap to clone; the `Debug` output is redacted.
#[derive(Clone)]
pub struct Peppers {
    first: Pepper,
    further: Arc<[Pepper]>,
    first_id: Arc<str>,
}

impl std::fmt::Debug for Peppers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Peppers(***)")
    }
}

impl Peppers {
    /// Parses the setting: `NEW`, or `NEW, OLD` during a rotation. The spaces around the entries of a list don't count. A
    /// comma within an entry is written `\,`.
    ///
    /// # Errors
    /// An entry has fewer than 16 bytes or occurs twice, or the list may be one pepper that contains a comma.
    pub fn parse(text: &str) -> Result<Self, PepperSettingError> {
        let entries = entries(text);
        let is_list = entries.len() > 1;
        let mut peppers = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let position = index + 1;
            if let Some(same) = entries.iter().take(index).position(|other| other == entry) {
                return Err(PepperSettingError::Duplicate(same + 1, position));
            }
            let short =
                if is_list { PepperSettingError::ShortEntry(position) } else { PepperSettingError::Short };
            peppers.push(Pepper::new(entry.as_bytes()).ok_or(short)?);
        }
        let mut others =
            (1..).zip(&entries).filter(|(_, entry)| !is_hex(entry)).map(|(position, _)| position);
        if is_list && let (Some(one), Some(other)) = (others.next(), others.next()) {
            return Err(PepperSettingError::Ambiguous(one, other));
        }
        let mut peppers = peppers.into_iter();
        let first = peppers.next().ok_or(PepperSettingError::Short)?;
        let first_id = id_of(&first).into();
        Ok(Self { first, further: peppers.collect(), first_id })
    }

    /// Returns the id of the first pepper. The pepper determines it, so it is the same on every replica; it is not secret.
    pub fn first_id(&self) -> &str {
        &self.first_id
    }

    /// Returns the ids of all peppers, that of the first one first.
    pub fn ids(&self) -> Vec<String> {
        self.all().map(id_of).collect()
    }

    /// Returns whether a key may be stored under more than one fingerprint.
    pub fn is_rotating(&self) -> bool {
        !self.further.is_empty()
    }

    /// Returns the fingerprint under which a new key is stored.
    pub fn fingerprint(&self, key: &str) -> [u8; 32] {
        self.first.fingerprint(key)
    }

    /// Returns every fingerprint under which the key may be stored, that of the first pepper first.
    pub fn fingerprints(&self, key: &str) -> Vec<[u8; 32]> {
        self.all().map(|pepper| pepper.fingerprint(key)).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Pepper> {
        [&self.first].into_iter().chain(self.further.iter())
    }
}

/// Returns the first entry of the setting, which also keys the hashes of rate limits.
pub fn first_entry(text: &str) -> Cow<'_, str> {
    entries(text).into_iter().next().unwrap_or_default()
}

/// A text without a comma is one pepper as it is, as in releases that knew no lists.
fn entries(text: &str) -> Vec<Cow<'_, str>> {
    if !text.contains(',') {
        return vec![Cow::Borrowed(text)];
    }
    let (mut entries, mut entry) = (Vec::new(), String::new());
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\\' if rest.next_if_eq(&',').is_some() => entry.push(','),
            ',' => entries.push(std::mem::take(&mut entry)),
            _ => entry.push(letter),
        }
    }
    entries.push(entry);
    let is_list = entries.len() > 1;
    let trimmed = |entry: String| if is_list { entry.trim().to_owned() } else { entry };
    entries.into_iter().map(|entry| Cow::Owned(trimmed(entry))).collect()
}

fn is_hex(entry: &str) -> bool {
    entry.len() >= MIN_HEX_DIGITS && entry.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn id_of(pepper: &Pepper) -> String {
    let mut id = String::with_capacity(2 * ID_BYTES);
    for byte in pepper.fingerprint(ID_TEXT).iter().take(ID_BYTES) {
        // Writing to a string never fails.
        let _written = write!(id, "{byte:02x}");
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "a pepper of 2025";
    const NEW: &str = "57d1c9ce5a2f8f3e6b0f4a1b2c3d4e5f";

    fn parse(text: &str) -> Peppers {
        Peppers::parse(text).unwrap()
    }

    #[test]
    fn a_single_text_is_one_pepper_as_in_releases_without_lists() {
        for text in [OLD, "ab:with a colon and spaces ", " leading and trailing "] {
            let before = Pepper::new(text.as_bytes()).unwrap();
            assert_eq!(parse(text).fingerprints("key"), [before.fingerprint("key")], "{text}");
            assert!(!parse(text).is_rotating());
            assert_eq!(first_entry(text), text);
        }
    }

    #[test]
    fn the_first_pepper_is_for_new_keys_and_all_find_theirs() {
        let (old, new, both) = (parse(OLD), parse(NEW), parse(&format!(" {NEW} , {OLD}")));
        assert!(both.is_rotating());
        assert_eq!(both.fingerprint("key"), new.fingerprint("key"));
        assert_eq!(both.fingerprints("key"), [new.fingerprint("key"), old.fingerprint("key")]);
        assert_eq!(first_entry(&format!(" {NEW} ,{OLD}")), NEW);
    }

    #[test]
    fn an_id_belongs_to_the_pepper_and_not_to_its_position() {
        let (old, new) = (parse(OLD), parse(NEW));
        assert_ne!(old.first_id(), new.first_id());
        assert_eq!(parse(&format!("{OLD},{NEW}")).ids(), [old.first_id(), new.first_id()]);
        assert_eq!(parse(&format!("{NEW},{OLD}")).first_id(), new.first_id());
        assert_eq!(old.first_id().len(), 8);
        assert_eq!(format!("{old:?}"), "Peppers(***)");
    }

    #[test]
    fn a_wrong_setting_is_refused_with_the_position_and_without_the_text() {
        let refused = |text: &str| Peppers::parse(text).unwrap_err();
        assert_eq!(refused(""), PepperSettingError::Short);
        assert_eq!(refused("fifteen letters"), PepperSettingError::Short);
        assert_eq!(refused(&format!("{NEW},")), PepperSettingError::ShortEntry(2));
        assert_eq!(refused(&format!("fifteen letters,{OLD}")), PepperSettingError::ShortEntry(1));
        assert_eq!(refused(&format!("{NEW},{OLD}, {NEW}")), PepperSettingError::Duplicate(1, 3));
        assert!(!refused(&format!("fifteen letters,{OLD}")).to_string().contains("letters,"));
    }
    /// Releases without lists took such a text as it is. Two peppers instead would make all of their keys invalid.
    #[test]
    fn a_single_pepper_that_contains_a_comma_is_refused_until_the_comma_is_marked() {
        let refused = |text: &str| Peppers::parse(text).unwrap_err();
        let before = "the first half of it, and the second half";
        assert_eq!(refused(before), PepperSettingError::Ambiguous(1, 2));
        assert_eq!(refused(&format!("{NEW},{before}")), PepperSettingError::Ambiguous(2, 3));
        assert_eq!(refused("short, and a longer part"), PepperSettingError::ShortEntry(1));
        assert!(refused(before).to_string().contains(r"write the comma within it as `\,`"));
        assert!(
            refused("short, and a longer part")
                .to_string()
                .contains(r"a comma within a pepper is written `\,`")
        );

        let fingerprint = Pepper::new(before.as_bytes()).unwrap().fingerprint("key");
        let marked = before.replace(',', r"\,");
        assert_eq!(parse(&marked).fingerprints("key"), [fingerprint]);
        assert_eq!(first_entry(&marked), before);
        let rotating = parse(&format!("{NEW}, {marked}"));
        assert_eq!(rotating.fingerprints("key"), [parse(NEW).fingerprint("key"), fingerprint]);
        assert_eq!(parse(&format!("{marked},{NEW}")).fingerprint("key"), fingerprint);
    }
}
