//! The style sheet, the script and the icon, under addresses with the hash of their content.

use crate::content_hash::content_hash;

/// One style sheet for all screens: a file for what they share, and one for each group of screens.
const STYLE: &str = concat!(
    include_str!("../static/console.css"),
    include_str!("../static/analytics.css"),
    include_str!("../static/automations.css"),
    include_str!("../static/forms.css"),
    include_str!("../static/sites.css"),
);

/// A file of the console.
#[derive(Debug)]
pub(crate) struct StaticFile {
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) content: &'static str,
}

impl StaticFile {
    fn new(extension: &str, content_type: &'static str, content: &'static str) -> Self {
        let hash = content_hash(content);
        Self { path: format!("/console/console-{hash}.{extension}"), content_type, content }
    }
}

/// All files.
#[derive(Debug)]
pub(crate) struct StaticFiles {
    pub(crate) style: StaticFile,
    pub(crate) script: StaticFile,
    pub(crate) icon: StaticFile,
}

impl StaticFiles {
    pub(crate) fn new() -> Self {
        Self {
            style: StaticFile::new("css", "text/css; charset=utf-8", STYLE),
            script: StaticFile::new(
                "js",
                "text/javascript; charset=utf-8",
                include_str!("../static/console.js"),
            ),
            icon: StaticFile::new("svg", "image/svg+xml", include_str!("../static/icon.svg")),
        }
    }

    pub(crate) fn find(&self, path: &str) -> Option<&StaticFile> {
        [&self.style, &self.script, &self.icon].into_iter().find(|file| file.path == path)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn compressed_bytes(file: &StaticFile) -> usize {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(file.content.as_bytes()).unwrap();
        encoder.finish().unwrap().len()
    }

    #[test]
    fn style_sheet_and_script_stay_within_their_budgets() {
        let files = StaticFiles::new();
        for (file, budget) in [(&files.style, 9 << 10), (&files.script, 3 << 10)] {
            let bytes = compressed_bytes(file);
            assert!(bytes <= budget, "{}: {bytes} of {budget} bytes", file.path);
        }
    }
}
