//! The languages a hosted form speaks, and which of them a visitor is spoken to in.

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

    /// As it is written in `lang` attributes and `?lang=`.
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
            Self::English => include_str!("../../locales/en.toml"),
            Self::German => include_str!("../../locales/de.toml"),
            Self::French => include_str!("../../locales/fr.toml"),
            Self::Spanish => include_str!("../../locales/es.toml"),
            Self::Japanese => include_str!("../../locales/ja.toml"),
            Self::Arabic => include_str!("../../locales/ar.toml"),
        }
    }

    /// The language with that tag, its region aside: `de-AT` is German.
    pub(crate) fn tagged(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', '_']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| language.code().eq_ignore_ascii_case(primary))
    }

    /// The one a browser likes best of those we speak (RFC 9110, 12.5.4); English if it likes none.
    pub(crate) fn liked(headers: &HeaderMap) -> Self {
        Self::liked_by(headers.get_all(header::ACCEPT_LANGUAGE).iter().map(HeaderValue::as_bytes))
    }

    /// The same of the values of `Accept-Language`.
    pub(crate) fn liked_by<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let texts = values.filter_map(|value| std::str::from_utf8(value).ok());
        let mut best = (0.0, Self::default());
        for item in texts.flat_map(|value| value.split(',')) {
            let (tag, parameter) = item.split_once(';').unwrap_or((item, "q=1"));
            let weight = parameter.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
            // Of equals the first counts.
            if let (Some(language), Some(weight)) = (Self::tagged(tag.trim()), weight)
                && weight > best.0
            {
                best = (weight, language);
            }
        }
        best.1
    }
}

/// What a form says in one language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Messages {
    /// `ltr` or `rtl`.
    pub(crate) direction: String,
    pub(crate) page: PageWords,
    wrong: WrongWords,
}

/// What stands on pages.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageWords {
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
    pub(crate) away_title: String,
    pub(crate) away: String,
    pub(crate) refused_title: String,
    pub(crate) too_large: String,
    pub(crate) refused: String,
    pub(crate) file_size: String,
    pub(crate) file_kept: String,
    pub(crate) leave_empty: String,
    pub(crate) proving: String,
    pub(crate) needs_script: String,
}

/// What can be wrong with an answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrongWords {
    required: String,
    ticked: String,
    too_short: String,
    too_long: String,
    pattern: String,
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
    /// What a language's file says.
    ///
    /// # Errors
    /// Something is missing there, or too much.
    pub(crate) fn read(language: Language) -> anyhow::Result<Self> {
        toml::from_str(language.source()).with_context(|| format!("reading the words of {}", language.code()))
    }

    /// What is wrong with the answer to a field, by the code of the error; none for a code of no answer.
    pub(crate) fn about(&self, field: &Field, code: &str) -> Option<String> {
        let wrong = &self.wrong;
        let limited = |text: &str, limit: Option<String>| text.replace("{limit}", &limit.unwrap_or_default());
        let text = match code {
            "required" if field.kind == FieldType::Checkbox => wrong.ticked.clone(),
            "required" => wrong.required.clone(),
            "too_short" => limited(&wrong.too_short, field.min_length.map(|limit| limit.to_string())),
            "too_long" => {
                let limit = field.max_length.map_or(domain::fields::MAX_TEXT, |limit| limit as usize);
                limited(&wrong.too_long, Some(limit.min(domain::fields::MAX_TEXT).to_string()))
            }
            "pattern" => wrong.pattern.clone(),
            "email" => wrong.email.clone(),
            "url" => wrong.url.clone(),
            "date" => wrong.date.clone(),
            "tel" => wrong.tel.clone(),
            "type" if field.kind == FieldType::Number => wrong.number.clone(),
            "min" => limited(&wrong.min, field.min.map(|limit| limit.to_string())),
            "max" => limited(&wrong.max, field.max.map(|limit| limit.to_string())),
            "option" => wrong.option.clone(),
            "nul" => wrong.letters.clone(),
            "file" => wrong.file.clone(),
            "file_kind" => wrong.file_kind.clone(),
            "file_size" => wrong.file_size.replace("{size}", &size(field.max_file_size.unwrap_or_default())),
            "type" => wrong.pattern.clone(),
            _ => return None,
        };
        Some(text)
    }
}

/// Bytes as people write them.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    let written = |amount: f64, unit: &str| {
        let decimals = usize::from(amount < 10.0 && amount.fract() > 0.05);
        format!("{amount:.decimals$} {unit}")
    };
    UNITS
        .into_iter()
        .find(|(one, _)| bytes >= *one)
        .map_or_else(|| format!("{bytes} B"), |(one, unit)| written(bytes as f64 / one as f64, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_every_word_with_what_is_filled_in() {
        let placeholders = |text: &str| text.matches(['{', '}']).count();
        let counts = |language| {
            let text = toml::from_str::<toml::Table>(Language::source(language)).unwrap();
            let page = text["page"].as_table().unwrap().iter();
            let wrong = text["wrong"].as_table().unwrap().iter();
            let words = page.chain(wrong).map(|(key, text)| (key.clone(), text.as_str().unwrap().to_owned()));
            words.collect::<std::collections::BTreeMap<_, _>>()
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
    fn a_browser_is_spoken_to_in_the_language_it_likes_best() {
        let liked = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, value.parse().unwrap());
            Language::liked(&headers).code()
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
            assert_eq!(liked(value), code, "{value}");
        }
        assert_eq!(Language::liked(&HeaderMap::new()), Language::English);
    }

    #[test]
    fn sizes_are_written_as_people_do() {
        for (bytes, written) in
            [(900, "900 B"), (2 << 20, "2 MB"), (1_572_864, "1.5 MB"), (20 << 20, "20 MB")]
        {
            assert_eq!(size(bytes), written);
        }
    }
}
