//! What is reported of a deploy besides its pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::static_sites::deploy_notes::Note;
use crate::static_sites::page_slugs::PagePlan;
use crate::static_sites::reasons::{CONFIGURATION, Reason};
use crate::static_sites::site_plan::ListedFile;

/// Totals of a deploy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeployStats {
    /// Number of new pages; 0 for a preview.
    pub pages_created: usize,
    /// Number of changed pages; 0 for a preview.
    pub pages_updated: usize,
    /// Number of assets with URLs of their own.
    pub assets_uploaded: usize,
    /// Number of files of the zip that are served, pages included.
    pub files_served: usize,
    /// Number of files of the zip that are not served.
    pub files_left_out: usize,
}

/// What a preview reports, as it is stored until the preview is published.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeployReport {
    /// Files that are not served, and HTML without a page.
    pub listed: Vec<ListedFile>,
    /// What was ignored or renamed.
    pub notes: Vec<Note>,
    /// One message for each file that was left out because of an error.
    pub errors: Vec<String>,
    /// Paths that pages and style sheets reference and the zip lacks.
    pub missing: Vec<String>,
}

impl DeployReport {
    /// Returns the report with other pages: the site may have changed since they were planned.
    #[must_use]
    pub fn with_pages(mut self, plan: &PagePlan) -> Self {
        self.listed.retain(|file| file.reason != Reason::ProjectLimit);
        let without_page = plan.without_page.iter();
        self.listed
            .extend(without_page.map(|(path, reason)| ListedFile { path: path.clone(), reason: *reason }));
        // All other notes are about slugs.
        self.notes.retain(|note| CONFIGURATION.contains(&note.file.as_str()));
        self.notes.splice(0..0, plan.notes.iter().cloned());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_with_other_pages_names_their_slugs_and_what_exceeds_the_plan_now() {
        let listed = |path: &str, reason| ListedFile { path: path.to_owned(), reason };
        let note =
            |file: &str, line, reason: &str| Note { file: file.to_owned(), line, reason: reason.to_owned() };
        let before = DeployReport {
            listed: vec![
                listed(".env", Reason::NeverServed),
                listed("a.html", Reason::ProjectLimit),
                listed("large.html", Reason::TooLarge),
            ],
            notes: vec![
                note("a b.html", None, "its page has the slug `a-b-2`"),
                note("_redirects", Some(3), "?"),
            ],
            errors: vec!["error".to_owned()],
            missing: vec!["x.png".to_owned()],
        };
        let plan = PagePlan {
            without_page: vec![("b.html".to_owned(), Reason::ProjectLimit)],
            notes: vec![note("a b.html", None, "its page has the slug `a-b-3`")],
            ..PagePlan::default()
        };
        let after = before.clone().with_pages(&plan);
        let reasons: Vec<_> = after.listed.iter().map(|file| (file.path.as_str(), file.reason)).collect();
        assert_eq!(
            reasons,
            [
                (".env", Reason::NeverServed),
                ("large.html", Reason::TooLarge),
                ("b.html", Reason::ProjectLimit)
            ]
        );
        let notes: Vec<String> = after.notes.iter().map(ToString::to_string).collect();
        assert_eq!(notes, ["a b.html: its page has the slug `a-b-3`", "_redirects line 3: ?"]);
        assert_eq!((after.errors, after.missing), (before.errors, before.missing));
    }
}
