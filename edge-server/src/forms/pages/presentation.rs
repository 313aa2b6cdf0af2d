//! How a form's page is presented to one visitor: language, frame, theme, and what an embedding page overrides.
//!
//! The names of all but `lang` and `embed` contain a dot, so that they collide with no field of a form.

use std::borrow::Cow;

use domain::appearance::{Color, RADIUS_MAX};
use domain::honeypot::fields;
use http::HeaderMap;

use super::languages::Language;

/// The parameters that a cached page may have, beside those that are rendered for one request.
const CACHED: [&str; 5] = ["lang=", "embed=", "form.popup=", "form.theme=", "form.background="];

/// The language, frame and look of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Presentation {
    pub(crate) language: Language,
    /// Whether the URL names the language; it is then retained after submitting.
    pub(crate) is_language_explicit: bool,
    pub(crate) frame: Frame,
    /// Of a framed page; `None` follows the system.
    pub(crate) theme: Option<Theme>,
    /// Whether a framed page has its own background, because the one behind it does not fit the theme.
    pub(crate) is_solid: bool,
    /// Overrides the owner's accent colour.
    pub(crate) accent: Option<Color>,
    /// Overrides the owner's corner radius, in pixels.
    pub(crate) radius: Option<i32>,
}

/// Where a page is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Frame {
    #[default]
    Window,
    /// In a frame among the contents of another page, as high as the form.
    Inline,
    /// In a frame of limited height, which scrolls.
    Popup,
}

/// A theme that does not follow the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Theme {
    Light,
    Dark,
}

impl Theme {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Light, Self::Dark].into_iter().find(|theme| theme.as_str() == text)
    }
}

impl Presentation {
    /// Reads the query, and the headers for the language if the query has none.
    pub(crate) fn from_request(query: &str, headers: &HeaderMap) -> Self {
        Self::from_query(query, || Language::preferred(headers))
    }

    /// Reads the query; `preferred` returns the language if the query has none.
    pub(crate) fn from_query(query: &str, preferred: impl FnOnce() -> Language) -> Self {
        let value = |name: &str| {
            form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value)
        };
        let explicit = value("lang").as_deref().and_then(Language::from_tag);
        let is_embedded = value("embed").as_deref() == Some("1");
        let is_popup = value("form.popup").as_deref() == Some("1");
        let radius = value("form.radius").and_then(|radius| radius.parse().ok());
        let theme = || value("form.theme").and_then(|theme| Theme::parse(&theme));
        Self {
            language: explicit.unwrap_or_else(preferred),
            is_language_explicit: explicit.is_some(),
            frame: match (is_embedded, is_popup) {
                (false, _) => Frame::Window,
                (true, false) => Frame::Inline,
                (true, true) => Frame::Popup,
            },
            // They fit a page around this one.
            theme: if is_embedded { theme() } else { None },
            is_solid: is_embedded && value("form.background").as_deref() == Some("solid"),
            accent: value("form.accent").and_then(|accent| Color::parse(&accent)),
            radius: radius.filter(|radius| (0..=RADIUS_MAX).contains(radius)),
        }
    }

    /// Takes the presentation of a posted form by its control fields, or the language of its headers.
    pub(crate) fn from_form<'a>(control: impl Fn(&str) -> Option<&'a str>, headers: &HeaderMap) -> Self {
        let look = control(fields::LOOK).unwrap_or_default();
        let preferred = || {
            let explicit = control(fields::LANGUAGE).and_then(Language::from_tag);
            explicit.unwrap_or_else(|| Language::preferred(headers))
        };
        let mut presentation = Self::from_query(look, preferred);
        presentation.is_language_explicit =
            control(fields::LANGUAGE).is_some_and(|tag| Language::from_tag(tag).is_some());
        if presentation.frame == Frame::Window && control(fields::EMBEDDED) == Some("1") {
            presentation.frame = Frame::Inline;
        }
        presentation
    }

    /// Returns whether the page is shown in a frame on another page.
    pub(crate) fn is_embedded(self) -> bool {
        self.frame != Frame::Window
    }

    /// Returns this presentation without what is rendered for one request. Only such pages are cached: there are few of them,
    /// [`Self::variants`], while the overrides of visitors could fill the cache.
    pub(crate) fn cached(self) -> Self {
        Self { accent: None, radius: None, ..self }
    }

    /// Returns the presentations of all pages of a form that are cached, the usual ones first.
    pub(crate) fn variants() -> impl Iterator<Item = Self> {
        let frames = [Frame::Window, Frame::Inline, Frame::Popup].into_iter();
        let looks = frames.flat_map(|frame| {
            let themes = [None, Some(Theme::Light), Some(Theme::Dark)].into_iter();
            themes.flat_map(move |theme| [false, true].map(|is_solid| (frame, theme, is_solid)))
        });
        let looks = looks
            .filter(|(frame, theme, is_solid)| *frame != Frame::Window || (theme.is_none() && !is_solid));
        looks.flat_map(|(frame, theme, is_solid)| {
            let languages = Language::ALL.into_iter().flat_map(|one| [(one, false), (one, true)]);
            languages.map(move |(language, is_language_explicit)| Self {
                language,
                is_language_explicit,
                frame,
                theme,
                is_solid,
                accent: None,
                radius: None,
            })
        })
    }

    /// Returns the query that leads to the same presentation.
    pub(crate) fn query(self) -> String {
        let language = self.is_language_explicit.then(|| format!("lang={}", self.language.code()));
        let look = Some(self.look()).filter(|look| !look.is_empty());
        let parts: Vec<_> = language.into_iter().chain(look).collect();
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }

    /// Returns the part of the query that is not the language, for [`fields::LOOK`].
    pub(crate) fn look(self) -> String {
        let parts: [Option<Cow<'static, str>>; 6] = [
            self.is_embedded().then_some("embed=1".into()),
            (self.frame == Frame::Popup).then_some("form.popup=1".into()),
            self.theme.map(|theme| format!("form.theme={}", theme.as_str()).into()),
            self.is_solid.then_some("form.background=solid".into()),
            self.accent.map(|accent| format!("form.accent={}", accent.digits()).into()),
            self.radius.map(|radius| format!("form.radius={radius}").into()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("&")
    }
}

/// Returns whether a query has neither answers nor overrides, only what cached pages have.
pub(crate) fn is_bare(query: &str) -> bool {
    query.split('&').all(|pair| pair.is_empty() || CACHED.iter().any(|name| pair.starts_with(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(query: &str) -> Presentation {
        Presentation::from_request(query, &HeaderMap::new())
    }

    #[test]
    fn the_presentation_of_a_query_round_trips() {
        assert_eq!(shown("").query(), "");
        assert_eq!(shown("embed=1&lang=de-CH&x=y").query(), "?lang=de&embed=1");
        assert_eq!(shown("lang=xx&embed=yes&form.popup=1").query(), "");
        let all =
            "embed=1&form.popup=1&form.theme=dark&form.background=solid&form.accent=0f766e&form.radius=4";
        assert_eq!(shown(all).look(), all);
        assert_eq!(shown(shown(all).query().trim_start_matches('?')), shown(all));
        assert_eq!(shown(all).cached().look(), "embed=1&form.popup=1&form.theme=dark&form.background=solid");
    }

    #[test]
    fn theme_and_background_count_in_frames_only_and_the_cached_pages_of_a_form_are_known() {
        assert_eq!(shown("form.theme=dark&form.background=solid&form.popup=1"), shown(""));
        let mut seen = std::collections::HashSet::new();
        for language in ["", "lang=de&", "lang=ar&"] {
            for frame in ["", "embed=1&", "embed=1&form.popup=1&", "form.popup=1&", "embed=yes&"] {
                for look in ["", "form.theme=dark", "form.theme=light&form.background=solid", "form.radius=4"]
                {
                    seen.insert(shown(&format!("{language}{frame}{look}")).cached());
                }
            }
        }
        let variants: Vec<_> = Presentation::variants().collect();
        assert!(seen.iter().all(|one| variants.contains(one)), "{seen:?}");
        assert_eq!(variants.len(), 13 * 2 * Language::ALL.len());
        assert_eq!(variants[0], shown(""));
    }

    #[test]
    fn css_injection_through_the_address_of_a_page_is_ignored() {
        for attack in [
            "form.accent=red;}body{background:url(//evil.test)}",
            "form.accent=%23fff}*{display:none",
            "form.radius=4px;}*{x:y",
            "form.radius=-1",
            "form.radius=1000",
            "form.theme=dark\"><script>",
            "form.background=url(x)",
        ] {
            assert_eq!(shown(attack).look(), "", "{attack}");
        }
    }

    #[test]
    fn a_posted_form_keeps_its_presentation() {
        let page = shown("lang=de&embed=1&form.theme=dark&form.accent=abc");
        let look = page.look();
        let control = |name: &str| match name {
            "form.lang" => Some("de"),
            "form.look" => Some(look.as_str()),
            _ => None,
        };
        assert_eq!(Presentation::from_form(control, &HeaderMap::new()), page);
        // Pages of the former release have no look.
        let former = |name: &str| (name == "form.embed").then_some("1");
        assert_eq!(Presentation::from_form(former, &HeaderMap::new()).query(), "?embed=1");
    }

    #[test]
    fn overrides_and_answers_are_not_bare() {
        assert!(
            is_bare("")
                && is_bare("lang=de&embed=1")
                && is_bare("embed=1&form.theme=dark&form.background=solid")
        );
        assert!(!is_bare("name=x") && !is_bare("form.accent=abc") && !is_bare("theme=x"));
    }
}
