//! The languages of hosted forms, their messages, and the choice for a visitor.

use anyhow::Context;
use domain::fields::{Field, FieldType};
use http::{HeaderMap, HeaderValue, header};
use serde::{Deserialize, Serialize};

/// A language of hosted forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Language {
    #[default]
    English,
    German,
    French,
    Spanish,
    Japanese,
    Arabic,
}

impl Language {
    pub(crate) const ALL: [Self; 6] =
        [Self::English, Self::German, Self::French, Self::Spanish, Self::Japanese, Self::Arabic];

    /// Returns the code in `lang` attributes and `?lang=`.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::French => "fr",
            Self::Spanish => "es",
            Self::Japanese => "ja",
            Self::Arabic => "ar",
        }
    }

    fn source(self) -> &'static str {
        match self {
            Self::English => include_str!("../../../locales/en.toml"),
            Self::German => include_str!("../../../locales/de.toml"),
            Self::French => include_str!("../../../locales/fr.toml"),
            Self::Spanish => include_str!("../../../locales/es.toml"),
            Self::Japanese => include_str!("../../../locales/ja.toml"),
            Self::Arabic => include_str!("../../../locales/ar.toml"),
        }
    }

    /// Returns the language of a tag, ignoring the region: `de-AT` is German.
    pub(crate) fn from_tag(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', '_']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| language.code().eq_ignore_ascii_case(primary))
    }

    /// Returns the supported language that a browser prefers (RFC 9110, 12.5.4); English if it lists none.
    pub(crate) fn preferred(headers: &HeaderMap) -> Self {
        Self::preferred_in(headers.get_all(header::ACCEPT_LANGUAGE).iter().map(HeaderValue::as_bytes))
    }

    /// The same for the values of `Accept-Language`.
    pub(crate) fn preferred_in<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let texts = values.filter_map(|value| std::str::from_utf8(value).ok());
        let mut best = (0.0, Self::default());
        for item in texts.flat_map(|value| value.split(',')) {
            let (tag, parameter) = item.split_once(';').unwrap_or((item, "q=1"));
            let weight = parameter.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
            // Among equal weights the first one wins.
            if let (Some(language), Some(weight)) = (Self::from_tag(tag.trim()), weight)
                && weight > best.0
            {
                best = (weight, language);
            }
        }
        best.1
    }
}

/// The messages of hosted forms in one language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Messages {
    /// `ltr` or `rtl`.
    pub(crate) direction: String,
    pub(crate) page: PageMessages,
    errors: ErrorMessages,
}

/// Texts on pages.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageMessages {
    pub(crate) starred: String,
    pub(crate) choose: String,
    pub(crate) send: String,
    pub(crate) check_title: String,
    pub(crate) check: String,
    pub(crate) thanks_title: String,
    pub(crate) thanks: String,
    pub(crate) go_on: String,
    pub(crate) closed: String,
    pub(crate) full: String,
    pub(crate) duplicate: String,
    pub(crate) missing_title: String,
    pub(crate) missing: String,
    pub(crate) suspended_title: String,
    pub(crate) suspended: String,
    pub(crate) unavailable_title: String,
    pub(crate) unavailable: String,
    pub(crate) refused_title: String,
    pub(crate) too_large: String,
    pub(crate) refused: String,
    pub(crate) file_size: String,
    pub(crate) file_stored: String,
    pub(crate) leave_empty: String,
    pub(crate) proving: String,
    pub(crate) needs_script: String,
    pub(crate) no_answer: String,
    pub(crate) confirm_title: String,
    pub(crate) confirm: String,
    pub(crate) confirm_send: String,
}

/// Errors in answers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorMessages {
    required: String,
    ticked: String,
    too_short: String,
    too_long: String,
    pattern: String,
    expected: String,
    email: String,
    url: String,
    date: String,
    tel: String,
    number: String,
    min: String,
    max: String,
    option: String,
    letters: String,
    file: String,
    file_kind: String,
    file_size: String,
}

impl Messages {
    /// Reads a language's file.
    ///
    /// # Errors
    /// A message is missing or unknown.
    pub(crate) fn read(language: Language) -> anyhow::Result<Self> {
        toml::from_str(language.source())
            .with_context(|| format!("reading the messages of {}", language.code()))
    }

    /// Returns the message for an error in the answer to a field, by its code; `None` for other codes.
    pub(crate) fn error(&self, field: &Field, code: &str) -> Option<String> {
        let errors = &self.errors;
        let limited = |text: &str, limit: Option<String>| text.replace("{limit}", &limit.unwrap_or_default());
        let text = match code {
            "required" if field.kind == FieldType::Checkbox => errors.ticked.clone(),
            "required" => errors.required.clone(),
            "too_short" => limited(&errors.too_short, field.min_length.map(|limit| limit.to_string())),
            "too_long" => {
                let limit = field.max_length.map_or(domain::fields::MAX_TEXT, |limit| limit as usize);
                limited(&errors.too_long, Some(limit.min(domain::fields::MAX_TEXT).to_string()))
            }
            "pattern" => match field.pattern_hint.as_deref().filter(|hint| !hint.trim().is_empty()) {
                Some(hint) => errors.expected.replace("{hint}", hint),
                None => errors.pattern.clone(),
            },
            "email" => errors.email.clone(),
            "url" => errors.url.clone(),
            "date" => errors.date.clone(),
            "tel" => errors.tel.clone(),
            "type" if field.kind == FieldType::Number => errors.number.clone(),
            "min" => limited(&errors.min, field.min.map(|limit| limit.to_string())),
            "max" => limited(&errors.max, field.max.map(|limit| limit.to_string())),
            "option" => errors.option.clone(),
            "nul" => errors.letters.clone(),
            "file" => errors.file.clone(),
            "file_kind" => errors.file_kind.clone(),
            "file_size" => errors.file_size.replace("{size}", &size(field.max_file_size.unwrap_or_default())),
            "type" => errors.pattern.clone(),
            _ => return None,
        };
        Some(text)
    }
}

/// Formats a size for people.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    let format = |amount: f64, unit: &str| {
        let decimals = usize::from(amount < 10.0 && amount.fract() > 0.05);
        format!("{amount:.decimals$} {unit}")
    };
    UNITS
        .into_iter()
        .find(|(one, _)| bytes >= *one)
        .map_or_else(|| format!("{bytes} B"), |(one, unit)| format(bytes as f64 / one as f64, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_all_messages_with_the_same_placeholders() {
        let placeholders = |text: &str| text.matches(['{', '}']).count();
        let counts = |language| {
            let text = toml::from_str::<toml::Table>(Language::source(language)).unwrap();
            let page = text["page"].as_table().unwrap().iter();
            let errors = text["errors"].as_table().unwrap().iter();
            let messages =
                page.chain(errors).map(|(key, text)| (key.clone(), text.as_str().unwrap().to_owned()));
            messages.collect::<std::collections::BTreeMap<_, _>>()
        };
        let english = counts(Language::English);
        for language in Language::ALL {
            Messages::read(language).unwrap();
            for (key, text) in counts(language) {
                assert!(!text.is_empty(), "{language:?} {key}");
                assert_eq!(placeholders(&text), placeholders(&english[&key]), "{language:?} {key}");
            }
        }
    }

    #[test]
    fn selects_the_language_that_the_browser_prefers() {
        let preferred = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, value.parse().unwrap());
            Language::preferred(&headers).code()
        };
        for (value, code) in [
            ("de-AT,de;q=0.9,en;q=0.8", "de"),
            ("nl, fr-CA;q=0.8, en;q=0.5", "fr"),
            ("en;q=0.2, ja ;q=0.7", "ja"),
            ("ar", "ar"),
            ("de;q=0, es", "es"),
            ("", "en"),
            ("nl", "en"),
            ("de;q=x,,;;", "en"),
            ("*", "en"),
        ] {
            assert_eq!(preferred(value), code, "{value}");
        }
        assert_eq!(Language::preferred(&HeaderMap::new()), Language::English);
    }

    #[test]
    fn formats_sizes_with_units() {
        for (bytes, written) in
            [(900, "900 B"), (2 << 20, "2 MB"), (1_572_864, "1.5 MB"), (20 << 20, "20 MB")]
        {
            assert_eq!(size(bytes), written);
        }
    }
}
