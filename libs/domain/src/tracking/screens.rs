//! Screens by class: the width itself would help to tell visitors apart.

/// What a screen's width says about the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// Below 576 CSS pixels.
    Mobile,
    /// Below 992.
    Tablet,
    /// Below 1440.
    Laptop,
    /// Anything wider.
    Desktop,
}

impl Screen {
    /// The class of a width in CSS pixels; none for a width no screen has.
    pub fn from_width(pixels: f64) -> Option<Self> {
        match pixels {
            width if !(1.0..=100_000.0).contains(&width) => None,
            width if width < 576.0 => Some(Self::Mobile),
            width if width < 992.0 => Some(Self::Tablet),
            width if width < 1440.0 => Some(Self::Laptop),
            _ => Some(Self::Desktop),
        }
    }

    /// The class's stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mobile => "mobile",
            Self::Tablet => "tablet",
            Self::Laptop => "laptop",
            Self::Desktop => "desktop",
        }
    }
}
