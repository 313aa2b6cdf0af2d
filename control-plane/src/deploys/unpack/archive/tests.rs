//! One test for each attack with a zip. Bytes that the `zip` crate refuses to write are patched by hand.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

/// The maximum of these tests.
const MAX_FILES: usize = 2_000;

/// Returns a zip with these files.
fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn open(bytes: &[u8]) -> Result<Archive, ArchiveError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Archive::open(file, MAX_FILES)
}

fn rejection(bytes: &[u8]) -> String {
    match open(bytes) {
        Ok(archive) => panic!("it was accepted: {:?}", archive.files()),
        Err(error) => error.to_string(),
    }
}

/// Replaces every `from` in the bytes with `to`, which has the same length.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let found: Vec<usize> =
        (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

/// Changes two bytes of the only entry in the central directory.
fn with_central(bytes: &[u8], offset: usize, change: impl Fn(u16) -> u16) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = bytes.windows(4).position(|word| word == b"PK\x01\x02").unwrap() + offset;
    let new = change(u16::from_le_bytes([bytes[at], bytes[at + 1]])).to_le_bytes();
    bytes[at..at + 2].copy_from_slice(&new);
    bytes
}

#[test]
fn reads_a_valid_zip() {
    let mut archive =
        open(&zip_of(&[("b/c.txt", b"C"), ("a.html", b"A"), ("b/größe+1.html", b"x"), (".env", b"x")]))
            .unwrap();
    let paths: Vec<&str> = archive.files().iter().map(|file| file.path).collect();
    assert_eq!(paths, [".env", "a.html", "b/c.txt", "b/größe+1.html"]);
    assert_eq!(archive.read("b/c.txt", 10).unwrap().unwrap(), b"C");
    assert_eq!(archive.read("a.html", 0).unwrap(), None, "longer than the limit");
}

#[test]
fn rejects_zip_slip_and_names_the_entry() {
    let valid = zip_of(&[("aa/index.html", b"x")]);
    for (name, why) in [
        (b"../index.html", "`..`"),
        (b"/a/index.html", "absolute"),
        (b"a\\/index.html", "backslash"),
        (b"C:/index.html", "absolute"),
    ] {
        let message = rejection(&replaced(&valid, b"aa/index.html", name));
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn rejects_names_that_are_not_text() {
    let valid = zip_of(&[("ab.html", b"x")]);
    for (name, why) in [(b"a\0.html", "control"), (b"a\xff.html", "UTF-8"), (b"a\n.html", "control")] {
        let message = rejection(&replaced(&valid, b"ab.html", name));
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn rejects_a_symbolic_link() {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.add_symlink("index.html", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    let message = rejection(&zip.finish().unwrap().into_inner());
    assert!(message.contains("symbolic link") && message.contains("index.html"), "{message}");
}

#[test]
fn rejects_an_encrypted_entry() {
    let message = rejection(&with_central(&zip_of(&[("index.html", b"x")]), 8, |flags| flags | 1));
    assert!(message.contains("encrypted"), "{message}");
}

#[test]
fn rejects_an_unknown_compression() {
    let message = rejection(&with_central(&zip_of(&[("index.html", b"x")]), 10, |_| 14));
    assert!(message.contains("deflate"), "{message}");
}

#[test]
fn rejects_two_entries_with_the_same_name() {
    let two = zip_of(&[("aa.html", b"x"), ("ab.html", b"y")]);
    let message = rejection(&replaced(&two, b"ab.html", b"aa.html"));
    assert!(message.contains("same name"), "{message}");
}

#[test]
fn rejects_two_names_for_the_same_path() {
    let message = rejection(&zip_of(&[("a/b.html", b"x"), ("a//b.html", b"y")]));
    assert!(message.contains("same path"), "{message}");
    let message = rejection(&zip_of(&[("a/b.html", b"x"), ("./a/b.html", b"y")]));
    assert!(message.contains("same path"), "{message}");
}

#[test]
fn rejects_too_many_files() {
    let names: Vec<String> = (0..=MAX_FILES).map(|n| format!("{n}.txt")).collect();
    let mut files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
    files.push((".git/config", b""));
    assert!(open(&zip_of(&files[1..])).is_ok(), "{MAX_FILES} are accepted, besides those never served");
    assert_eq!(rejection(&zip_of(&files)), "the zip has more than 2000 files, the maximum of the plan");
}

#[test]
fn rejects_too_many_entries_before_reading_them() {
    let mut bytes = zip_of(&[("index.html", b"x")]);
    let end = bytes.len() - 22;
    for at in [8, 10] {
        bytes[end + at..end + at + 2].copy_from_slice(&u16::MAX.to_le_bytes());
    }
    assert_eq!(rejection(&bytes), "the zip has more than 40000 entries");
}

#[test]
fn rejects_a_zip64_count_before_reading_its_entries() {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for n in 0..20_000 {
        zip.start_file(format!("{n}"), SimpleFileOptions::default()).unwrap();
    }
    let mut bytes = zip.finish().unwrap().into_inner();
    let end = bytes.split_off(bytes.len() - 22);
    let number = |at: usize| u64::from(u32::from_le_bytes(end[at..at + 4].try_into().unwrap()));
    let (size, from, to) = (number(12), number(16), bytes.len() as u64);
    // APPNOTE 4.3.14 and 4.3.15: the end record of a zip64 and its locator.
    bytes.extend(b"PK\x06\x06");
    bytes.extend(44_u64.to_le_bytes());
    bytes.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    [20_000, 20_000, size, from].iter().for_each(|number: &u64| bytes.extend(number.to_le_bytes()));
    bytes.extend(b"PK\x06\x07");
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(to.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    let mut few = end.clone();
    few[8..12].copy_from_slice(&[1, 0, 1, 0]);
    few[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
    // Also if a later end record follows, which may turn out to be invalid.
    for tail in [&few[..], &[&few[..], &end[..]].concat()] {
        let message = rejection(&[&bytes, tail].concat());
        assert!(message.contains("zip64"), "{message}");
    }
}

/// A zip of nine files of 1 MiB each that compress to almost nothing.
fn bomb() -> Vec<u8> {
    let zeros = vec![0; 1 << 20];
    let names: Vec<String> = (0..9).map(|n| format!("{n}.bin")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), zeros.as_slice())).collect();
    let bytes = zip_of(&files);
    assert!(bytes.len() < 20_000, "the zip is small: {}", bytes.len());
    bytes
}

/// Reads all files with `remaining` as the bound instead of the production bound.
fn read_all(bytes: &[u8], remaining: u64) -> Result<(), ArchiveError> {
    let mut archive = open(bytes)?;
    assert_eq!(archive.remaining, 500 << 20);
    archive.remaining = remaining;
    let paths: Vec<String> = archive.files().iter().map(|file| file.path.to_owned()).collect();
    paths.iter().try_for_each(|path| archive.read(path, u64::MAX - 1).map(drop))
}

#[test]
fn a_zip_bomb_stops_at_the_bound() {
    assert!(matches!(read_all(&bomb(), 8 << 20), Err(ArchiveError::TooLarge)));
    assert!(read_all(&bomb(), 9 << 20).is_ok());
}

#[test]
fn a_zip_bomb_with_forged_sizes_stops_at_the_bound() {
    let forged = replaced(&bomb(), &(1_u32 << 20).to_le_bytes(), &1_u32.to_le_bytes());
    let read = read_all(&forged, 4 << 20);
    assert!(read.is_err(), "it was accepted");
    let message = open(&forged).unwrap().read("0.bin", 1_000).unwrap_err().to_string();
    assert!(message.contains("0.bin") && message.contains("larger than its declared"), "{message}");
    let forged = replaced(&bomb(), &(1_u32 << 20).to_le_bytes(), &(2_u32 << 20).to_le_bytes());
    let message = open(&forged).unwrap().read("0.bin", 3 << 20).unwrap_err().to_string();
    assert!(message.contains("its size differs"), "{message}");
    assert_eq!(open(&forged).unwrap().size_bytes("0.bin").unwrap(), 2 << 20);
}

#[test]
fn rejects_a_directory_that_would_take_much_memory() {
    let name = format!("{}.txt", "a".repeat(60_000));
    let names: Vec<String> = (0..160).map(|n| format!("{n}{name}")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
    let message = rejection(&zip_of(&files));
    assert!(message.contains("directory is too large"), "{message}");
}

#[test]
fn a_corrupt_file_is_named() {
    let valid = zip_of(&[("index.html", b"some words that are stored or not")]);
    let data = valid.windows(10).position(|word| word == b"index.html").unwrap() + 12;
    let mut broken = valid.clone();
    broken[data] ^= 0x55;
    let message =
        open(&broken).and_then(|mut archive| archive.read("index.html", 1_000)).unwrap_err().to_string();
    assert!(message.contains("index.html"), "{message}");
}

#[test]
fn rejects_bytes_that_are_not_a_zip() {
    for bytes in [b"".as_slice(), b"hello", b"PK\x05\x06", &[0; 100]] {
        assert!(rejection(bytes).contains("not a readable zip"));
    }
    let valid = zip_of(&[("index.html", b"x")]);
    for cut in [1, 10, 30, valid.len() - 5] {
        open(&valid[..valid.len() - cut]).map(drop).unwrap_err();
        open(&valid[cut..]).map(drop).err();
    }
}
