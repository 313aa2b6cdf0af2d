//! The memory that one deploy takes. These tests have a process of their own, because they measure all of it.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

#[path = "../api/harness.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod harness;
#[path = "../api/served.rs"]
#[expect(dead_code, reason = "the other tests use it")]
mod served;

use std::io::{Cursor, Write};

use domain::plans::Plan;
use harness::Api;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// What any allowed zip may take above the service before it.
const MAX_PEAK_BYTES: u64 = 128 << 20;

/// The tests of this process run one after the other.
static ALONE: Mutex<()> = Mutex::const_new(());

fn resident_bytes(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The result of a deploy, and how much memory it took.
struct Deployed {
    result: Value,
    peak_bytes: u64,
    _alone: MutexGuard<'static, ()>,
}

impl Deployed {
    fn check_peak(&self) {
        let peak = self.peak_bytes;
        assert!(peak <= MAX_PEAK_BYTES, "{} MB above idle", peak >> 20);
    }

    fn errors(&self) -> String {
        self.result["errors"].to_string()
    }

    /// Why a file of the site is not a page.
    fn reason(&self, path: &str) -> Option<&str> {
        let files = self.result["files"].as_array().unwrap();
        files.iter().find(|file| file["path"] == path).and_then(|file| file["reason"].as_str())
    }
}

async fn deploy(plan: Plan, zip: &[u8]) -> Deployed {
    let alone = ALONE.lock().await;
    let api = Api::start(&[]).await;
    let (key, account_id) = api.trial_on(plan).await;
    let size = json!({"sizeBytes": zip.len()});
    let (status, started) = api.send(Method::POST, "/api/deploy", Some(&key), &size).await;
    assert_eq!(status, StatusCode::CREATED, "{started}");
    let id = started["deployId"].as_str().unwrap().to_owned();
    api.upload(account_id, id.parse().unwrap(), zip).await;
    let idle = resident_bytes("VmRSS");
    // Resets the high-water mark (proc_pid_clear_refs(5)).
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let path = format!("/api/deploy/{id}/process");
    let (status, result) = api.send(Method::POST, &path, Some(&key), &Value::Null).await;
    let peak_bytes = resident_bytes("VmHWM").saturating_sub(idle);
    assert_eq!(status, StatusCode::OK, "{result}");
    Deployed { result, peak_bytes, _alone: alone }
}

/// A page with as many references as fit.
fn page_with(beginning: &str, reference: &str) -> Vec<u8> {
    let references = reference.repeat(((512 << 10) - beginning.len()) / reference.len());
    format!("{beginning}{references}").into_bytes()
}

/// A folder of which the slug is short: characters that a slug can't have become one hyphen.
fn long_name(start: &str) -> String {
    format!("{start}{}", "_".repeat(950))
}

#[tokio::test]
async fn a_zip_with_a_very_long_base_href_stays_small() {
    let page = page_with(&format!("<base href=\"{}/\">", "a".repeat(100_000)), "<img src=x>");
    let zip = zip_of(&[("index.html", &page)]);
    assert!(zip.len() < 4_000, "the zip is small: {}", zip.len());
    let done = deploy(Plan::Free, &zip).await;
    done.check_peak();
    assert_eq!(done.errors(), "[]", "the references stay as they are");
}

#[tokio::test]
async fn a_page_of_images_is_no_page_before_its_references_are_written_out() {
    let page = page_with("", "<img src=x.png>");
    let zip = zip_of(&[("index.html", b"x"), ("x.png", b"x"), ("large.html", &page)]);
    let done = deploy(Plan::Free, &zip).await;
    done.check_peak();
    assert_eq!((done.errors().as_str(), done.reason("large.html")), ("[]", Some("too_large")));
}

#[tokio::test]
async fn pages_that_lack_many_files_deep_in_folders_stay_small() {
    let mut references = String::new();
    for n in 0.. {
        references.push_str(&format!("<img src={n}.png>"));
        if references.len() > 500 << 10 {
            break;
        }
    }
    let deep = format!("{}/index.html", long_name("a"));
    let zip = zip_of(&[("index.html", b"x"), (&deep, references.as_bytes())]);
    let done = deploy(Plan::Free, &zip).await;
    done.check_peak();
    assert_eq!(done.result["missingAssets"].as_array().map(Vec::len), Some(1_000));
}

#[tokio::test]
async fn a_style_sheet_deep_in_folders_stays_small() {
    let folder = "a/".repeat(490);
    let sheet = format!("a{{b:{}}}", "url(x.png),".repeat(180_000));
    let (sheet_path, image) = (format!("{folder}deep.css"), format!("{folder}x.png"));
    let zip = zip_of(&[("index.html", b"x"), (&sheet_path, sheet.as_bytes()), (&image, b"x")]);
    let done = deploy(Plan::Free, &zip).await;
    done.check_peak();
    assert_eq!(
        (done.errors().as_str(), &done.result["missingAssets"]),
        ("[]", &json!([])),
        "it is unchanged"
    );
}

#[tokio::test]
async fn a_page_of_one_element_or_one_attribute_stays_small() {
    let [doc, set, styles] = ["b", "c", "d"].map(|name| format!("{}/index.html", long_name(name)));
    let repeated = page_with("<img ", "src=/x.png ");
    let many = page_with("<img ", "a ");
    let candidates = format!("<img srcset=\"{}\">", "/x.png, ".repeat(60_000));
    let style = format!("<p style=\"a:{}\">", "url(/x.png),".repeat(40_000));
    let nested = page_with("", "<a>");
    let zip = zip_of(&[
        ("index.html", b"x"),
        ("x.png", b"x"),
        ("many.html", &many),
        ("nested.html", &nested),
        (&doc, &repeated),
        (&set, candidates.as_bytes()),
        (&styles, style.as_bytes()),
    ]);
    let done = deploy(Plan::Free, &zip).await;
    done.check_peak();
    assert_eq!(done.errors(), "[]");
    assert_eq!(done.reason("nested.html"), Some("unsupported"));
    assert_eq!([&set, &styles].map(|path| done.reason(path)), [Some("too_large"); 2]);
}

#[tokio::test]
async fn a_zip_of_as_many_entries_as_allowed_stays_small() {
    let name = "n".repeat(100);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for n in 0..39_990 {
        let folder = if n % 2 == 0 { "node_modules" } else { ".git" };
        zip.start_file(format!("{folder}/{name}{n}"), SimpleFileOptions::default()).unwrap();
    }
    for name in ["package.json", "dist/index.html"] {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(b"x").unwrap();
    }
    let zip = zip.finish().unwrap().into_inner();
    let done = deploy(Plan::Pro, &zip).await;
    done.check_peak();
    assert_eq!(
        (&done.result["stats"]["filesServed"], &done.result["stats"]["filesLeftOut"]),
        (&json!(1), &json!(39_991))
    );
}

#[tokio::test]
async fn files_of_the_largest_allowed_size_are_never_whole_in_memory() {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("index.html", SimpleFileOptions::default()).unwrap();
    zip.write_all(b"x").unwrap();
    // Of the largest size of any plan, of one that is uploaded in parts too, and of one that is uploaded from memory.
    for mib in [50_u8, 9, 8] {
        zip.start_file(format!("{mib}.bin"), SimpleFileOptions::default()).unwrap();
        // In small parts: memory that this test has freed would hide what the deploy takes.
        for _ in 0..u16::from(mib) << 4 {
            zip.write_all(&[mib; 64 << 10]).unwrap();
        }
    }
    let zip = zip.finish().unwrap().into_inner();
    let done = deploy(Plan::Scale, &zip).await;
    done.check_peak();
    assert_eq!(done.errors(), "[]");
}
