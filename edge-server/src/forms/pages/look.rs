//! The look of a form's pages: the owner's appearance with the overrides of the embedding page, as style rules.
//!
//! Rules are written from parsed colours and numbers only, so no text of an owner or of a URL gets into them.

use domain::addresses::Addresses;
use domain::appearance::{Appearance, Color};

use super::presentation::Presentation;

/// Name of the logo in its URL, which the id alone identifies.
const LOGO_NAME: &str = "logo";

/// The background of pages of the dark theme: `--paper` in `static/form.dark.css`.
const DARK_PAPER: &str = "181e2a";

/// Style rules and logo of a page.
#[derive(Debug, Default)]
pub(crate) struct Look {
    pub(crate) css: String,
    /// URL of the owner's logo, on this installation's host of assets.
    pub(crate) logo_url: Option<String>,
}

impl Look {
    /// Returns the look of a page of a form with this appearance.
    pub(crate) fn new(appearance: &Appearance, presentation: Presentation, addresses: &Addresses) -> Self {
        let own = || appearance.accent.as_deref().and_then(Color::parse);
        let accent = presentation.accent.or_else(own);
        let radius = presentation.radius.or(appearance.radius);
        Self {
            css: rules(accent, radius),
            logo_url: appearance.logo_asset_id.map(|id| addresses.asset(id, LOGO_NAME)),
        }
    }
}

/// The selectors outweigh those of the themes.
fn rules(accent: Option<Color>, radius: Option<i32>) -> String {
    let mut css = String::new();
    if let Some(radius) = radius {
        css += &format!(":root{{--radius:{radius}px}}");
    }
    if let Some(accent) = accent {
        let (color, text) = (accent.digits(), accent.text().digits());
        let link = accent.readable_on(Color::WHITE, Color::INK).digits();
        let paper = Color::parse(DARK_PAPER).unwrap_or(Color::INK);
        let dark_link = accent.readable_on(paper, Color::WHITE).digits();
        css += &format!(
            ":root,:root[data-theme]{{--accent:#{color};--on-accent:#{text};--glow:#{color}40;--link:#{link}}}\
             @media(prefers-color-scheme:dark){{:root:not([data-theme]){{--link:#{dark_link}}}}}\
             :root[data-theme=dark]{{--link:#{dark_link}}}"
        );
    }
    css
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn look(appearance: &Appearance, query: &str) -> Look {
        let addresses = Addresses::new("https://runtime.test", "sites.test").unwrap();
        Look::new(appearance, Presentation::from_request(query, &http::HeaderMap::new()), &addresses)
    }

    #[test]
    fn the_embedding_page_overrides_the_owners_colour_and_corners() {
        let appearance =
            Appearance { accent: Some("#0f766e".to_owned()), radius: Some(4), logo_asset_id: None };
        let own = look(&appearance, "").css;
        assert!(
            own.contains("--accent:#0f766e;--on-accent:#ffffff") && own.contains("--radius:4px"),
            "{own}"
        );
        let overridden = look(&appearance, "form.accent=ffeb3b&form.radius=0").css;
        assert!(
            overridden.contains("--accent:#ffeb3b;--on-accent:#0f1525")
                && overridden.contains("--radius:0px")
        );
        assert_eq!(look(&Appearance::default(), "").css, "");
    }

    #[test]
    fn css_injection_through_a_stored_colour_writes_no_rule() {
        let accent = Some("#fff}body{background:url(https://evil.test)}".to_owned());
        assert_eq!(look(&Appearance { accent, ..Appearance::default() }, "").css, "");
    }

    #[test]
    fn the_dark_paper_is_that_of_the_style() {
        assert!(include_str!("../../../static/form.dark.css").contains(&format!("--paper: #{DARK_PAPER}")));
    }

    #[test]
    fn a_logo_is_an_asset_of_this_installation() {
        let id = Uuid::from_u128(7);
        let appearance = Appearance { logo_asset_id: Some(id), ..Appearance::default() };
        assert_eq!(look(&appearance, "").logo_url.unwrap(), format!("https://assets.sites.test/{id}/logo"));
    }
}
