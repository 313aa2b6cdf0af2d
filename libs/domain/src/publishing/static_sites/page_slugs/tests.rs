//! Tests of planned pages: order, collisions, limits, and stability over deploys.

use proptest::prelude::*;

use super::*;

const NONE: &BTreeMap<String, String> = &BTreeMap::new();
const NO_SLUGS: &BTreeSet<String> = &BTreeSet::new();

fn plan(files: &[&str], existing: ExistingPages<'_>, projects_left: Option<u64>) -> PagePlan {
    let html: Vec<HtmlFile<'_>> =
        files.iter().filter(|path| is_html(path)).map(|path| HtmlFile { path, size_bytes: 10 }).collect();
    plan_pages(&html, &files.iter().copied().collect(), existing, projects_left)
}

fn first_plan(files: &[&str]) -> PagePlan {
    plan(files, ExistingPages { by_path: NONE, slugs: NO_SLUGS }, None)
}

fn slugs(plan: &PagePlan) -> Vec<(&str, &str)> {
    plan.pages.iter().map(|page| (page.path.as_str(), page.slug.as_str())).collect()
}

#[test]
fn pages_are_ordered_by_index_depth_and_path() {
    let plan = first_plan(&["b/a.html", "z.html", "a.css", "index.html", "b/c/index.html", "Ab.htm"]);
    assert_eq!(
        slugs(&plan),
        [
            ("index.html", "index"),
            ("Ab.htm", "ab"),
            ("z.html", "z-2"),
            ("b/a.html", "b/a"),
            ("b/c/index.html", "b/c")
        ]
    );
}

#[test]
fn colliding_slugs_get_a_suffix_and_a_note() {
    for (files, expected) in [
        // Case.
        (["About.html", "about.html"].as_slice(), ["about-2", "about"].as_slice()),
        (&["ABOUT.html", "About.html"], &["about", "about-2"]),
        // Characters that a slug lacks.
        (&["foo bar.html", "foo-bar.html", "foo_bar.html"], &["foo-bar-2", "foo-bar", "foo-bar-3"]),
        (&["a b.html", "a_b.html"], &["a-b", "a-b-2"]),
        // A file and a folder.
        (&["docs.html", "docs/index.html"], &["docs", "docs-2"]),
        (&["docs.htm", "docs/index.html"], &["docs-2", "docs"]),
        (&["docs", "docs.html"], &["docs-2"]),
        (&["A/index.html", "a/index.html"], &["a-2", "a-3"]),
        (&["DOCS/index.html", "docs/index.html"], &["docs-2", "docs"]),
        (&["v1.2.html", "v1-2.html"], &["v1-2", "v1-2-2"]),
        // A slug that is taken by a suffix.
        (&["x y.html", "x-y-2.html", "x_y.html"], &["x-y", "x-y-2", "x-y-3"]),
        // Names without a slug.
        (&["日本語.html"], &["page"]),
        (&["日本語.html", "中文.html", "page.html"], &["page", "page-2", "page-3"]),
        (&["docs/日本語/index.html"], &["docs/page"]),
        (&["a/.html"], &["a/page"]),
        (&["a.html"], &["a-2"]),
        // The first page.
        (&["index/index.html"], &["index-2"]),
        (&["index.html", "index/index.html"], &["index", "index-2"]),
        (&["INDEX.html", "index.html"], &["index", "index-2"]),
    ] {
        let plan = first_plan(files);
        let mut found: Vec<&str> = plan.pages.iter().map(|page| page.slug.as_str()).collect();
        let mut expected = expected.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{files:?}: {plan:?}");
        for page in &plan.pages {
            let has_note =
                plan.notes.iter().any(|note| note.file == page.path && note.reason.contains(&page.slug));
            assert_eq!(has_note, page.slug != slug_of(&page.path), "{page:?}: {:?}", plan.notes);
        }
    }
}

#[test]
fn a_slug_never_shadows_another_file() {
    let plan = first_plan(&["About.html", "about.html"]);
    assert_eq!(slugs(&plan), [("About.html", "about-2"), ("about.html", "about")]);
    assert_eq!(
        plan.notes[0].to_string(),
        "About.html: its page has the slug `about-2`: `/about` is the address of `about.html`"
    );
}

#[test]
fn a_long_path_gets_a_short_slug() {
    let (long, other) = (format!("{}.html", "x/".repeat(150)), format!("{}y.html", "x/".repeat(150)));
    let plan = first_plan(&[&long, &other]);
    assert_eq!(plan.pages.len(), 2);
    for page in &plan.pages {
        assert_eq!(pages::check_slug(&page.slug), vec![], "{}", page.slug);
    }
}

#[test]
fn files_beyond_the_plan_and_large_ones_are_served_without_a_page() {
    let files = ["a/b.html", "one.html", "index.html", "two.html", "big.html"];
    let html: Vec<HtmlFile<'_>> = files
        .iter()
        .map(|path| HtmlFile {
            path,
            size_bytes: if *path == "big.html" { 512 * 1_024 + 1 } else { 512 * 1_024 },
        })
        .collect();
    let existing = ExistingPages { by_path: NONE, slugs: NO_SLUGS };
    let plan = plan_pages(&html, &files.into_iter().collect(), existing, Some(2));
    assert_eq!(slugs(&plan), [("index.html", "index"), ("one.html", "one")]);
    let limited = |path: &str| (path.to_owned(), Reason::ProjectLimit);
    let large = ("big.html".to_owned(), Reason::TooLarge);
    assert_eq!(plan.without_page, [large, limited("two.html"), limited("a/b.html")]);
}

#[test]
fn pages_that_exist_are_no_new_projects() {
    let slugs_in_use = BTreeSet::from(["two".to_owned(), "aa-2".to_owned()]);
    let existing = ExistingPages { by_path: NONE, slugs: &slugs_in_use };
    let files = ["index.html", "one.html", "two.html"];
    let planned = plan(&files, existing, Some(1));
    assert_eq!(slugs(&planned), [("index.html", "index"), ("two.html", "two")]);
    assert_eq!(planned.without_page, [("one.html".to_owned(), Reason::ProjectLimit)]);
    // A suffix takes no page of the API.
    let planned = plan(&["aa", "aa.html"], existing, None);
    assert_eq!(slugs(&planned), [("aa.html", "aa-3")]);
}

#[test]
fn slugs_stay_over_deploys_unless_a_file_needs_the_address() {
    let by_path = BTreeMap::from([
        ("docs/index.html".to_owned(), "docs".to_owned()),
        ("a_b.html".to_owned(), "a-b-2".to_owned()),
        ("gone.html".to_owned(), "gone".to_owned()),
    ]);
    let slugs_in_use = by_path.values().cloned().collect();
    let existing = ExistingPages { by_path: &by_path, slugs: &slugs_in_use };
    let files = ["docs.html", "docs/index.html", "a_b.html", "A-b.html"];
    let planned = plan(&files, existing, None);
    let by_path: BTreeMap<&str, &str> = slugs(&planned).into_iter().collect();
    assert_eq!(by_path["a_b.html"], "a-b-2");
    assert_eq!(by_path["A-b.html"], "a-b");
    assert_eq!((by_path["docs.html"], by_path["docs/index.html"]), ("docs", "docs-2"));
}

#[test]
fn twenty_thousand_equal_names_take_linear_time() {
    let name = |n: usize| format!("x{}{}.html", "_".repeat(n % 200), "é".repeat(n / 200));
    let files: Vec<String> = (0..20_000).map(name).collect();
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let planned = first_plan(&names);
    let found: BTreeSet<&String> = planned.pages.iter().map(|page| &page.slug).collect();
    assert_eq!(found.len(), 20_000);
    assert!(found.contains(&"x--19999".to_owned()), "one stem is numbered through");
    assert!(planned.notes.len() <= super::super::deploy_notes::NOTES_MAX + 1);
}

proptest! {
    #[test]
    fn every_file_is_found_by_its_slug_alone(
        files in prop::collection::btree_set("([aAb]|-|_|ä|index|x\\.y)(/([aAb]|index|é)){0,2}(\\.html|\\.htm|\\.HTML|)", 1..16),
        more in prop::collection::btree_set("([aAb]|index)(/([aAb]|index)){0,1}\\.html", 0..4),
        left in 0u64..12,
    ) {
        let names: Vec<&str> = files.iter().map(String::as_str).collect();
        let planned = plan(&names, ExistingPages { by_path: NONE, slugs: NO_SLUGS }, Some(left));
        let html = names.iter().filter(|path| is_html(path)).count();
        prop_assert_eq!(planned.pages.len() + planned.without_page.len(), html);
        prop_assert_eq!(planned.pages.len() as u64, left.min(html as u64));
        let taken: BTreeSet<String> = planned.pages.iter().map(|page| page.slug.clone()).collect();
        prop_assert_eq!(taken.len(), planned.pages.len());
        let all: BTreeSet<&str> = names.iter().copied().collect();
        for page in &planned.pages {
            prop_assert!(pages::check_slug(&page.slug).is_empty(), "{}", page.slug);
            let at = file_at_slug(&page.slug, &all);
            prop_assert!(at.is_none() || at.as_deref() == Some(page.path.as_str()), "{:?} {:?}", page, at);
        }
        // In another order, and deployed again.
        let reversed: Vec<&str> = names.iter().rev().copied().collect();
        prop_assert_eq!(&plan(&reversed, ExistingPages { by_path: NONE, slugs: NO_SLUGS }, Some(left)), &planned);
        let by_path: BTreeMap<String, String> =
            planned.pages.iter().map(|page| (page.path.clone(), page.slug.clone())).collect();
        let existing = ExistingPages { by_path: &by_path, slugs: &taken };
        let again = plan(&names, existing, Some(0));
        prop_assert_eq!(&again.pages, &planned.pages);
        // With more files, a slug changes only where a file has its address.
        let grown: BTreeSet<&str> = names.iter().copied().chain(more.iter().map(String::as_str)).collect();
        let larger = plan(&grown.iter().copied().collect::<Vec<_>>(), existing, None);
        for (path, slug) in slugs(&larger) {
            if let Some(before) = by_path.get(path).filter(|before| *before != slug) {
                prop_assert!(file_at_slug(before, &grown).is_some_and(|file| file != path), "{} {}", path, slug);
            }
        }
    }
}
