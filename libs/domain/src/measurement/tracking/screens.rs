//! Screen size classes. The exact width is not stored, because it would help to identify visitors.

/// Size class of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// Below 576 CSS pixels.
    Mobile,
    /// Below 992 CSS pixels.
    Tablet,
    /// Below 1440 CSS pixels.
    Laptop,
    /// 1440 CSS pixels or more.
    Desktop,
}

impl Screen {
    /// Returns the class of a width in CSS pixels; `None` for an impossible width.
    pub fn from_width(pixels: f64) -> Option<Self> {
        match pixels {
            width if !(1.0..=100_000.0).contains(&width) => None,
            width if width < 576.0 => Some(Self::Mobile),
            width if width < 992.0 => Some(Self::Tablet),
            width if width < 1440.0 => Some(Self::Laptop),
            _ => Some(Self::Desktop),
        }
    }

    /// Returns the class's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mobile => "mobile",
            Self::Tablet => "tablet",
            Self::Laptop => "laptop",
            Self::Desktop => "desktop",
        }
    }
}
