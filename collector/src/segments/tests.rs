//! The protocol of segments on a real disk. The tests take the place of the shipper.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use contract::events::Event;
use domain::tracking::Dropped;
use service::{Clock, Readiness, Rng, Shutdown};
use tempfile::TempDir;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::backlog::Backlog;
use super::folder::{Folder, SealedSegment};
use super::journal::{Journal, Limits};
use super::record;

const LIMITS: Limits =
    Limits { seal_after: Duration::from_millis(300), max_segment_bytes: 1 << 20, max_unsent_bytes: 1 << 30 };

struct Fixture {
    journal: Journal,
    sealed: mpsc::Receiver<SealedSegment>,
    backlog: Backlog,
    readiness: Readiness,
    writer: tokio::task::JoinHandle<anyhow::Result<()>>,
}

fn fixture(folder: &Path, limits: Limits) -> Fixture {
    let readiness = Readiness::new(&Shutdown::new());
    let (path, (folder, leftovers)) = (folder, Folder::open(folder).unwrap());
    let bytes = leftovers.iter().map(|segment| segment.bytes).sum();
    let backlog = Backlog::new(path, bytes, limits.max_unsent_bytes, readiness.register("backlog"));
    let base = (Clock::system(), Rng::system());
    let (journal, writer, sealed) =
        Journal::new((folder, leftovers), backlog.clone(), limits, base, readiness.register("writable"))
            .unwrap();
    Fixture { journal, sealed, backlog, readiness, writer: tokio::spawn(writer.run()) }
}

impl Fixture {
    async fn append(&self, number: u128) -> Result<(), Dropped> {
        append(&self.journal, number).await
    }
}

async fn append(journal: &Journal, number: u128) -> Result<(), Dropped> {
    journal.append(&event(number)).await?.written().await
}

fn event(number: u128) -> Event {
    Event {
        id: Uuid::from_u128(number),
        account_id: Uuid::nil(),
        site_id: Uuid::nil(),
        received_at: Default::default(),
        name: "page_view".into(),
        host: "shop.example".into(),
        path: "/line\nbreak".into(),
        visitor: u64::MAX,
        title: "ü".into(),
        ..Event::default()
    }
}

fn numbers(segment: &SealedSegment) -> BTreeSet<u128> {
    let records = record::decode(&fs::read(&segment.path).unwrap()).unwrap();
    records.events.iter().map(|event| event.id.as_u128()).collect()
}

fn files(folder: &TempDir, state: &str) -> usize {
    let entries = fs::read_dir(folder.path()).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == state)).count()
}

#[tokio::test]
async fn every_answered_event_is_sent_once_and_unchanged() {
    let folder = TempDir::new().unwrap();
    let small = Limits { max_segment_bytes: 20_000, ..LIMITS };
    let Fixture { journal, mut sealed, writer, .. } = fixture(folder.path(), small);
    let appends = (0..1_000).map(|number| {
        let journal = journal.clone();
        async move { append(&journal, number).await }
    });
    let results = tokio::spawn(futures::future::join_all(appends.collect::<Vec<_>>()));

    let mut seen = BTreeSet::new();
    drop(journal);
    while let Some(segment) = sealed.recv().await {
        for number in numbers(&segment) {
            assert!(seen.insert(number), "{number} came twice");
        }
        segment.delete().unwrap();
    }
    assert!(results.await.unwrap().iter().all(Result::is_ok));
    assert_eq!(seen, (0..1_000).collect());
    writer.await.unwrap().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the lock file is left");
}

#[tokio::test]
async fn an_answered_event_is_on_disk() {
    let folder = TempDir::new().unwrap();
    let fixture = fixture(folder.path(), LIMITS);
    fixture.append(1).await.unwrap();
    let open = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let open = open.filter(|path| path.extension().is_some_and(|state| state == "open" || state == "sealed"));
    let bytes: Vec<u8> = open.flat_map(|path| fs::read(path).unwrap()).collect();
    assert_eq!(record::decode(&bytes).unwrap().events, [event(1)]);
}

#[tokio::test]
async fn segments_of_a_killed_process_are_sealed_under_their_ids_without_the_torn_record() {
    let folder = TempDir::new().unwrap();
    let (older, newer) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let mut torn = [record::encode(&event(10)).unwrap(), record::encode(&event(11)).unwrap()].concat();
    torn.truncate(torn.len() - 5);
    fs::write(folder.path().join(format!("{newer}.open")), torn).unwrap();
    fs::write(folder.path().join(format!("{older}.sealed")), record::encode(&event(12)).unwrap()).unwrap();
    fs::write(folder.path().join("notes.txt"), "not a segment").unwrap();

    let mut fixture = fixture(folder.path(), LIMITS);
    let first = fixture.sealed.recv().await.unwrap();
    let second = fixture.sealed.recv().await.unwrap();
    assert_eq!((first.id, numbers(&first)), (older, BTreeSet::from([12])));
    assert_eq!((second.id, numbers(&second)), (newer, BTreeSet::from([10])));
    // Another start finds the same content under the same id: the deduplication token relies on it.
    drop(fixture.journal);
    fixture.writer.await.unwrap().unwrap();
    assert_eq!(Folder::open(folder.path()).unwrap().1, [first, second]);
}

#[tokio::test]
async fn a_refused_segment_is_retried_at_the_next_start() {
    let folder = TempDir::new().unwrap();
    let id = Uuid::from_u128(1);
    fs::write(folder.path().join(format!("{id}.sealed")), record::encode(&event(1)).unwrap()).unwrap();
    let (first, segments) = Folder::open(folder.path()).unwrap();
    segments[0].refuse().unwrap();
    assert_eq!((files(&folder, "sealed"), files(&folder, "refused")), (0, 1));
    drop(first);
    assert_eq!(Folder::open(folder.path()).unwrap().1, segments);
}

#[tokio::test]
async fn an_empty_segment_leaves_no_file_behind() {
    let folder = TempDir::new().unwrap();
    // As an earlier process leaves them on a full disk.
    for name in [format!("{}.open", Uuid::from_u128(1)), format!("{}.sealed", Uuid::from_u128(2))] {
        fs::write(folder.path().join(name), b"").unwrap();
    }
    let (locked_folder, leftovers) = Folder::open(folder.path()).unwrap();
    assert_eq!(leftovers, []);
    let empty = locked_folder.create(Uuid::from_u128(1)).unwrap();
    assert_eq!(files(&folder, "open"), 1);
    assert_eq!(locked_folder.seal(&empty).unwrap(), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the lock file is left");
}

#[tokio::test]
async fn under_load_segments_are_preallocated() {
    let folder = TempDir::new().unwrap();
    let limits = Limits { max_segment_bytes: 70_000, seal_after: Duration::from_secs(3_600), ..LIMITS };
    let Fixture { journal, mut sealed, writer, .. } = fixture(folder.path(), limits);
    let (mut number, mut seen) = (0, BTreeSet::new());
    let mut take = |segment: &SealedSegment| {
        assert_eq!(fs::metadata(&segment.path).unwrap().len(), segment.bytes, "no zeros follow the records");
        seen.append(&mut numbers(segment));
        segment.delete().unwrap();
    };
    // One segment is being written, and one is ready.
    let lengths = || {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().metadata().map_or(0, |of| of.len())).collect::<Vec<_>>()
    };
    while lengths().iter().filter(|length| **length == 70_000).count() < 2 {
        append(&journal, number).await.unwrap();
        number += 1;
        if let Ok(segment) = sealed.try_recv() {
            take(&segment);
        }
    }
    drop(journal);
    while let Some(segment) = sealed.recv().await {
        take(&segment);
    }
    assert_eq!(seen, (0..number).collect());
    writer.await.unwrap().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the lock file is left");
}

#[tokio::test]
async fn the_zeros_of_a_preallocated_segment_are_truncated_at_start() {
    let folder = TempDir::new().unwrap();
    let (written, unused) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let mut content = record::encode(&event(10)).unwrap();
    content.extend(b"0123abcd {\"torn");
    let bytes = content.len() as u64;
    content.resize(10_000, 0);
    fs::write(folder.path().join(format!("{written}.open")), content).unwrap();
    fs::write(folder.path().join(format!("{unused}.open")), [0; 10_000]).unwrap();
    let (_folder, leftovers) = Folder::open(folder.path()).unwrap();
    assert_eq!(leftovers.iter().map(|one| (one.id, one.bytes)).collect::<Vec<_>>(), [(written, bytes)]);
    assert_eq!(numbers(&leftovers[0]), BTreeSet::from([10]));
    assert_eq!(fs::metadata(&leftovers[0].path).unwrap().len(), bytes);
}

#[tokio::test]
async fn a_second_collector_cannot_open_the_folder() {
    let folder = TempDir::new().unwrap();
    let _first = Folder::open(folder.path()).unwrap();
    let error = Folder::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("another collector"), "{error}");
}

#[tokio::test]
async fn segments_grow_while_the_shipper_is_behind() {
    let folder = TempDir::new().unwrap();
    let eager = Limits { seal_after: Duration::ZERO, ..LIMITS };
    let mut fixture = fixture(folder.path(), eager);
    for number in 0..50 {
        fixture.append(number).await.unwrap();
    }
    // The first waits for the shipper; all later events share the second.
    let first = fixture.sealed.recv().await.unwrap();
    let second = fixture.sealed.recv().await.unwrap();
    assert_eq!(numbers(&first).len() + numbers(&second).len(), 50);
    assert_eq!(files(&folder, "sealed") + files(&folder, "open"), 2);
}

#[tokio::test]
async fn a_full_backlog_drops_events_and_fails_readiness_until_some_are_sent() {
    let folder = TempDir::new().unwrap();
    let tiny = Limits { max_unsent_bytes: 1, ..LIMITS };
    let fixture = fixture(folder.path(), tiny);
    assert!(fixture.readiness.report().ready);
    fixture.append(1).await.unwrap();
    assert_eq!(fixture.append(2).await, Err(Dropped::Full));
    assert!(!fixture.readiness.report().ready);

    fixture.backlog.remove(record::encode(&event(1)).unwrap().len() as u64);
    assert!(fixture.readiness.report().ready);
    fixture.append(3).await.unwrap();
}

#[tokio::test]
async fn a_write_error_fails_readiness_and_the_next_event_retries() {
    let parent = TempDir::new().unwrap();
    let path = parent.path().join("segments");
    let fixture = fixture(&path, LIMITS);
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(fixture.append(1).await, Err(Dropped::Unwritable));
    assert!(!fixture.readiness.report().ready);

    fs::create_dir(&path).unwrap();
    fixture.append(2).await.unwrap();
    assert!(fixture.readiness.report().ready);
}

#[test]
fn damage_costs_only_the_damaged_record() {
    let mut segment: Vec<u8> = (0..3).flat_map(|number| record::encode(&event(number)).unwrap()).collect();
    let second = record::encode(&event(0)).unwrap().len() + 20;
    segment[second] ^= 1;
    let records = record::decode(&segment).unwrap();
    assert_eq!(records.events, [event(0), event(2)]);
    assert_eq!(records.skipped, 1);
}

#[test]
fn an_intact_record_of_an_unknown_kind_is_an_error() {
    let json = br#"{"another":"thing"}"#;
    let line = format!("{:08x} {}\n", crc32fast::hash(json), String::from_utf8_lossy(json));
    assert!(record::decode(line.as_bytes()).unwrap_err().to_string().starts_with("line 1 "));
}

#[tokio::test]
async fn a_segment_that_cannot_be_sealed_is_sealed_later_without_a_restart() {
    let folder = TempDir::new().unwrap();
    let mut fixture = fixture(folder.path(), LIMITS);
    fixture.append(1).await.unwrap();
    let open = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let open = open.into_iter().find(|path| path.extension().is_some_and(|e| e == "open")).unwrap();
    // A folder of the sealed segment's name makes the rename fail, also for root.
    let obstacle = open.with_extension("sealed");
    fs::create_dir(&obstacle).unwrap();
    sandbox::test::until(async || !fixture.readiness.report().ready).await;
    fixture.append(2).await.unwrap();
    assert!(!fixture.readiness.report().ready, "later events don't hide it");
    fs::remove_dir(&obstacle).unwrap();
    let mut sent = BTreeSet::new();
    while sent.len() < 2 {
        sent.extend(numbers(&sandbox::test::with_timeout(fixture.sealed.recv()).await.unwrap()));
    }
    assert_eq!(sent, BTreeSet::from([1, 2]));
    assert!(fixture.readiness.report().ready);
}
