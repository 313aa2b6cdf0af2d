//! How a form's pages look: the owner's logo, accent colour and corner radius, and what an embedding page overrides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::FieldError;

/// Pattern of an accent colour.
pub const ACCENT_PATTERN: &str = "^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$";
/// Upper bound of the corner radius, in pixels.
pub const RADIUS_MAX: i32 = 24;

/// The contrast of text that WCAG 2.2 requires (1.4.3).
const TEXT_CONTRAST: f64 = 4.5;

/// The appearance of a form's pages. Null means the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Appearance {
    /// The asset that is shown above the form.
    pub logo_asset_id: Option<Uuid>,
    /// Colour of buttons, links and focus, such as `#0f766e`.
    #[schemars(regex(pattern = ACCENT_PATTERN))]
    pub accent: Option<String>,
    /// Radius of the corners of inputs and buttons, in pixels.
    #[schemars(range(min = 0, max = RADIUS_MAX))]
    pub radius: Option<i32>,
}

impl Appearance {
    /// Validates the appearance.
    pub fn check(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if self.accent.as_deref().is_some_and(|accent| Color::parse(accent).is_none()) {
            let message = "appearance.accent must be a colour like #0f766e";
            errors.push(FieldError::new("appearance.accent", "color", message));
        }
        if self.radius.is_some_and(|radius| !(0..=RADIUS_MAX).contains(&radius)) {
            let message = format!("appearance.radius must be 0 to {RADIUS_MAX}");
            errors.push(FieldError::new("appearance.radius", "range", message));
        }
        errors
    }
}

/// A colour: red, green and blue. Parsing is the only way to make one from text, so no text of an owner or of an address gets
/// into a style sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Color([u8; 3]);

impl Color {
    /// White.
    pub const WHITE: Self = Self([255; 3]);
    /// The text on bright buttons.
    pub const INK: Self = Self([0x0f, 0x15, 0x25]);

    /// Parses three or six hexadecimal digits, with or without `#`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#').unwrap_or(text);
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let number = u32::from_str_radix(digits, 16).ok()?;
        let [_, red, green, blue] = number.to_be_bytes();
        match digits.len() {
            6 => Some(Self([red, green, blue])),
            // `abc` is `aabbcc`.
            3 => Some(Self([green & 15, blue >> 4, blue & 15].map(|digit| digit * 17))),
            _ => None,
        }
    }

    /// Returns six hexadecimal digits.
    pub fn digits(self) -> String {
        self.0.map(|part| format!("{part:02x}")).concat()
    }

    /// Returns the text colour with the better contrast to this background.
    pub fn text(self) -> Self {
        if self.contrast(Self::WHITE) >= self.contrast(Self::INK) { Self::WHITE } else { Self::INK }
    }

    /// Returns this colour, moved toward `target` until it can be read on `background`.
    #[must_use]
    pub fn readable_on(self, background: Self, target: Self) -> Self {
        let steps = (0..=20_u16).map(|step| self.mixed(target, step));
        steps.into_iter().find(|color| color.contrast(background) >= TEXT_CONTRAST).unwrap_or(target)
    }

    /// Mixes in as many twentieths of another colour.
    fn mixed(self, other: Self, twentieths: u16) -> Self {
        let mix = |at: usize| {
            let sum = u16::from(self.0[at]) * (20 - twentieths) + u16::from(other.0[at]) * twentieths;
            u8::try_from(sum / 20).unwrap_or(u8::MAX)
        };
        Self([mix(0), mix(1), mix(2)])
    }

    /// The contrast ratio of WCAG 2.2, 1 to 21.
    fn contrast(self, other: Self) -> f64 {
        let (one, other) = (self.luminance(), other.luminance());
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    fn luminance(self) -> f64 {
        let linear = self.0.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn css_injection_through_a_colour_is_refused() {
        for attack in [
            "red;}body{background:url(https://evil.test)}",
            "#fff}*{display:none",
            "#12345",
            "#ggg",
            "url(javascript:alert(1))",
            "var(--x)",
            "+123",
            "+12345",
            "",
            "#",
            "＃fff",
        ] {
            assert_eq!(Color::parse(attack), None, "{attack}");
            let appearance = Appearance { accent: Some(attack.to_owned()), ..Appearance::default() };
            assert_eq!(appearance.check()[0].field, "appearance.accent");
        }
    }

    #[test]
    fn colours_have_three_or_six_digits() {
        for (text, digits) in
            [("#0F766e", "0f766e"), ("0f766e", "0f766e"), ("#abc", "aabbcc"), ("000", "000000")]
        {
            assert_eq!(Color::parse(text).unwrap().digits(), digits, "{text}");
        }
    }

    #[test]
    fn text_on_any_accent_and_the_accent_as_text_can_be_read() {
        let dark = Color::parse("181e2a").unwrap();
        for accent in ["000", "fff", "ffeb3b", "0f766e", "2f4fdb", "777", "f00", "0f0", "00f"] {
            let accent = Color::parse(accent).unwrap();
            assert!(accent.contrast(accent.text()) >= 4.2, "{accent:?}");
            assert!(accent.readable_on(Color::WHITE, Color::INK).contrast(Color::WHITE) >= 4.5, "{accent:?}");
            assert!(accent.readable_on(dark, Color::WHITE).contrast(dark) >= 4.5, "{accent:?}");
        }
    }

    #[test]
    fn a_radius_has_bounds() {
        let wrong = |radius| !Appearance { radius: Some(radius), ..Appearance::default() }.check().is_empty();
        assert_eq!(
            [wrong(-1), wrong(0), wrong(RADIUS_MAX), wrong(RADIUS_MAX + 1)],
            [true, false, false, true]
        );
    }
}
