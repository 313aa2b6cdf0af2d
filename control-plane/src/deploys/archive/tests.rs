//! Each way to attack with a zip, by its name. What the `zip` crate won't write is made by hand.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

/// A zip with these files.
fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn open(bytes: &[u8]) -> Result<Archive, Wrong> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Archive::open(file)
}

fn refusal(bytes: &[u8]) -> String {
    match open(bytes) {
        Ok(archive) => panic!("it was taken: {:?}", archive.paths().collect::<Vec<_>>()),
        Err(wrong) => wrong.to_string(),
    }
}

/// The same zip with every `from` in it written as `to`, which has the same length.
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

/// Changes two bytes of each central entry, of which there is one.
fn with_central(bytes: &[u8], offset: usize, change: impl Fn(u16) -> u16) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = bytes.windows(4).position(|word| word == b"PK\x01\x02").unwrap() + offset;
    let new = change(u16::from_le_bytes([bytes[at], bytes[at + 1]])).to_le_bytes();
    bytes[at..at + 2].copy_from_slice(&new);
    bytes
}

#[test]
fn an_honest_zip_is_read() {
    let mut archive =
        open(&zip_of(&[("b/c.txt", b"C"), ("a.html", b"A"), (".DS_Store", b"x"), ("__MACOSX/._a", b"x")]))
            .unwrap();
    assert_eq!(archive.paths().collect::<Vec<_>>(), ["a.html", "b/c.txt"]);
    assert_eq!(archive.read("b/c.txt", 10).unwrap().unwrap(), b"C");
    assert_eq!(archive.read("a.html", 0).unwrap(), None, "more than was to be read");
}

#[test]
fn zip_slip_is_refused_by_name() {
    let honest = zip_of(&[("aa/index.html", b"x")]);
    for (name, why) in [
        (b"../index.html", "`..`"),
        (b"/a/index.html", "absolute"),
        (b"a\\/index.html", "backslash"),
        (b"C:/index.html", "absolute"),
    ] {
        let said = refusal(&replaced(&honest, b"aa/index.html", name));
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn names_that_are_no_text_are_refused() {
    let honest = zip_of(&[("ab.html", b"x")]);
    for (name, why) in [(b"a\0.html", "control"), (b"a\xff.html", "UTF-8"), (b"a\n.html", "control")] {
        let said = refusal(&replaced(&honest, b"ab.html", name));
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_symbolic_link_is_refused() {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.add_symlink("index.html", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    let said = refusal(&zip.finish().unwrap().into_inner());
    assert!(said.contains("symbolic link") && said.contains("index.html"), "{said}");
}

#[test]
fn an_encrypted_entry_is_refused() {
    let said = refusal(&with_central(&zip_of(&[("index.html", b"x")]), 8, |flags| flags | 1));
    assert!(said.contains("encrypted"), "{said}");
}

#[test]
fn an_unknown_compression_is_refused() {
    let said = refusal(&with_central(&zip_of(&[("index.html", b"x")]), 10, |_| 14));
    assert!(said.contains("deflate"), "{said}");
}

#[test]
fn two_entries_with_one_name_are_refused() {
    let two = zip_of(&[("aa.html", b"x"), ("ab.html", b"y")]);
    let said = refusal(&replaced(&two, b"ab.html", b"aa.html"));
    assert!(said.contains("same name"), "{said}");
}

#[test]
fn two_names_for_one_path_are_refused() {
    let said = refusal(&zip_of(&[("a/b.html", b"x"), ("a//b.html", b"y")]));
    assert!(said.contains("same path"), "{said}");
    let said = refusal(&zip_of(&[("a/b.html", b"x"), ("./a/b.html", b"y")]));
    assert!(said.contains("same path"), "{said}");
}

#[test]
fn a_file_too_many_is_refused() {
    let names: Vec<String> = (0..=FILES_MAX).map(|n| format!("{n}.txt")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
    assert!(open(&zip_of(&files[1..])).is_ok(), "{FILES_MAX} are taken");
    assert_eq!(refusal(&zip_of(&files)), "the zip has more than 2000 files");
}

#[test]
fn a_zip_of_countless_entries_is_refused_before_they_are_read() {
    let mut bytes = zip_of(&[("index.html", b"x")]);
    let end = bytes.len() - 22;
    for at in [8, 10] {
        bytes[end + at..end + at + 2].copy_from_slice(&u16::MAX.to_le_bytes());
    }
    assert_eq!(refusal(&bytes), "the zip has more than 2000 files");
}

#[test]
fn a_zip_that_counts_its_entries_elsewhere_is_refused_before_they_are_read() {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for n in 0..20_000 {
        zip.start_file(format!("{n}"), SimpleFileOptions::default()).unwrap();
    }
    let mut bytes = zip.finish().unwrap().into_inner();
    let end = bytes.split_off(bytes.len() - 22);
    let number = |at: usize| u64::from(u32::from_le_bytes(end[at..at + 4].try_into().unwrap()));
    let (size, from, to) = (number(12), number(16), bytes.len() as u64);
    // APPNOTE 4.3.14 and 4.3.15: the count of a zip64, and where it stands.
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
    // Also where it isn't the last end, which may turn out to be none.
    for tail in [&few[..], &[&few[..], &end[..]].concat()] {
        let said = refusal(&[&bytes, tail].concat());
        assert!(said.contains("zip64"), "{said}");
    }
}

/// Nine files of a megabyte that nearly vanish when they are packed.
fn bomb() -> Vec<u8> {
    let zeros = vec![0; 1 << 20];
    let names: Vec<String> = (0..9).map(|n| format!("{n}.bin")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), zeros.as_slice())).collect();
    let bytes = zip_of(&files);
    assert!(bytes.len() < 20_000, "it is small: {}", bytes.len());
    bytes
}

/// Reads all of it with so many bytes left, instead of the many that an honest site may have.
fn read_all(bytes: &[u8], left: u64) -> Result<(), Wrong> {
    let mut archive = open(bytes)?;
    assert_eq!(archive.left, 500 << 20);
    archive.left = left;
    let paths: Vec<String> = archive.paths().map(str::to_owned).collect();
    paths.iter().try_for_each(|path| archive.read(path, u64::MAX - 1).map(drop))
}

#[test]
fn a_bomb_ends_at_the_bound() {
    assert!(matches!(read_all(&bomb(), 8 << 20), Err(Wrong::TooLarge)));
    assert!(read_all(&bomb(), 9 << 20).is_ok());
}

#[test]
fn a_bomb_whose_headers_say_that_it_is_small_ends_at_the_bound_too() {
    let lying = replaced(&bomb(), &(1_u32 << 20).to_le_bytes(), &1_u32.to_le_bytes());
    let read = read_all(&lying, 4 << 20);
    assert!(read.is_err(), "it was read");
    let most = open(&lying).unwrap().read("0.bin", 1_000);
    assert!(!matches!(most, Ok(Some(_))), "no file is larger than was to be read");
}

#[test]
fn wrong_bytes_are_named() {
    let honest = zip_of(&[("index.html", b"some words that are stored or not")]);
    let data = honest.windows(10).position(|word| word == b"index.html").unwrap() + 12;
    let mut broken = honest.clone();
    broken[data] ^= 0x55;
    let said =
        open(&broken).and_then(|mut archive| archive.read("index.html", 1_000)).unwrap_err().to_string();
    assert!(said.contains("index.html"), "{said}");
}

#[test]
fn what_is_no_zip_is_refused() {
    for bytes in [b"".as_slice(), b"hello", b"PK\x05\x06", &[0; 100]] {
        assert!(refusal(bytes).contains("not a zip"));
    }
    let honest = zip_of(&[("index.html", b"x")]);
    for cut in [1, 10, 30, honest.len() - 5] {
        open(&honest[..honest.len() - cut]).map(drop).unwrap_err();
        open(&honest[cut..]).map(drop).err();
    }
}
