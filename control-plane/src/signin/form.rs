//! Reads posted forms.

/// Returns all values of the field `name`.
pub(super) fn form_values(form: &[u8], name: &str) -> Vec<String> {
    let pairs = form_urlencoded::parse(form).filter(|(key, _)| key == name);
    pairs.map(|(_, value)| value.into_owned()).collect()
}
