//! A line without an axis, beside a figure.

/// Returns the line as SVG, hidden from screen readers: the figure beside it says the last value.
pub(crate) fn sparkline(values: &[f64]) -> String {
    let max = values.iter().copied().fold(1.0, f64::max);
    let step = 100.0 / (values.len().max(2) - 1) as f64;
    let points = values.iter().enumerate().map(|(at, value)| {
        let command = if at == 0 { 'M' } else { 'L' };
        format!("{command}{:.1} {:.1}", at as f64 * step, 23.0 - 22.0 * value / max)
    });
    let path: String = points.collect();
    format!(
        r#"<svg viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true"><path d="{path}"/></svg>"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_at_the_last_value() {
        assert!(sparkline(&[0.0, 4.0]).contains(r#"d="M0.0 23.0L100.0 1.0""#));
        assert!(sparkline(&[]).contains(r#"d="""#));
        assert!(sparkline(&[0.0, 0.0]).contains("M0.0 23.0L100.0 23.0"));
    }
}
