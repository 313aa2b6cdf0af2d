//! Generates minimal location files in both formats, with one network each, and looks up addresses in them.

use tempfile::TempDir;

use super::*;

/// A value in MaxMind's format.
enum Value<'a> {
    Text(&'a str),
    Short(u16),
    Number(u32),
    Long(u64),
    Map(Vec<(&'a str, Value<'a>)>),
    List(Vec<Value<'a>>),
}
use Value::{List, Long, Map, Number, Short, Text};

fn control(kind: u8, size: usize, into: &mut Vec<u8>) {
    let size = u8::try_from(size).unwrap();
    assert!(size < 29, "longer values have another encoding");
    // Types from 8 on are encoded in a second byte.
    if kind > 7 { into.extend([size, kind - 7]) } else { into.push(kind << 5 | size) }
}

fn write(value: &Value<'_>, into: &mut Vec<u8>) {
    match value {
        Text(text) => {
            control(2, text.len(), into);
            into.extend(text.as_bytes());
        }
        Number(number) => {
            control(6, 4, into);
            into.extend(number.to_be_bytes());
        }
        Short(number) => {
            control(5, 2, into);
            into.extend(number.to_be_bytes());
        }
        Long(number) => {
            control(9, 8, into);
            into.extend(number.to_be_bytes());
        }
        Map(entries) => {
            control(7, entries.len(), into);
            for (key, value) in entries {
                write(&Text(key), into);
                write(value, into);
            }
        }
        List(values) => {
            control(11, values.len(), into);
            values.iter().for_each(|value| write(value, into));
        }
    }
}

/// Writes a file with this record for the lower half of all addresses and none for the upper half.
fn file(folder: &TempDir, name: &str, ip_version: u16, record: &Value<'_>) -> PathBuf {
    let path = folder.path().join(name);
    // One node. Its left record points to the data, 16 bytes behind the tree; its right record equals the node count,
    // which means "not found".
    let mut bytes = vec![0, 0, 17, 0, 0, 1];
    bytes.extend([0; 16]);
    write(record, &mut bytes);
    bytes.extend(b"\xab\xcd\xefMaxMind.com");
    let metadata = Map(vec![
        ("binary_format_major_version", Short(2)),
        ("binary_format_minor_version", Short(0)),
        ("build_epoch", Long(0)),
        ("database_type", Text("test")),
        ("description", Map(vec![])),
        ("ip_version", Short(ip_version)),
        ("languages", List(vec![])),
        ("node_count", Number(1)),
        ("record_size", Short(24)),
    ]);
    write(&metadata, &mut bytes);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn location(locate: &Locate, ip: &str) -> [String; 3] {
    let event = IncomingEvent { ip: ip.parse().unwrap(), ..IncomingEvent::default() };
    let Location { country, region, city } = locate.step(&event);
    [country, region, city]
}

#[test]
fn reads_both_formats_and_uses_the_file_of_the_address_family() {
    let folder = TempDir::new().unwrap();
    let english = |name| Map(vec![("names", Map(vec![("de", Text("Nein")), ("en", Text(name))]))]);
    let nested = Map(vec![
        ("city", english("Kathmandu")),
        ("country", Map(vec![("iso_code", Text("NP"))])),
        ("subdivisions", List(vec![Map(vec![("iso_code", Text("BA"))])])),
    ]);
    let flat =
        Map(vec![("city", Text("Berlin")), ("country_code", Text("DE")), ("state1", Text("Land Berlin"))]);
    let files = [file(&folder, "v4", 4, &nested), file(&folder, "v6", 6, &flat)];
    let locate = Locate::new(&files).unwrap();
    assert_eq!(location(&locate, "81.2.69.142"), ["NP", "NP-BA", "Kathmandu"]);
    assert_eq!(location(&locate, "::ffff:81.2.69.142"), ["NP", "NP-BA", "Kathmandu"]);
    assert_eq!(location(&locate, "2001:db8::1"), ["DE", "Land Berlin", "Berlin"]);
    assert_eq!(location(&locate, "fe80::1"), ["", "", ""]);
}

#[test]
fn an_unknown_location_is_empty_and_a_broken_file_is_named_at_start() {
    assert_eq!(location(&Locate::new(&[]).unwrap(), "81.2.69.142"), ["", "", ""]);
    let folder = TempDir::new().unwrap();
    let country = Map(vec![("country_code", Text("FR"))]);
    let locate = Locate::new(&[file(&folder, "v4", 4, &country)]).unwrap();
    assert_eq!(location(&locate, "81.2.69.142"), ["FR", "", ""]);
    assert_eq!(location(&locate, "200.1.1.1"), ["", "", ""]);
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "not a location file").unwrap();
    let error =
        Locate::new(std::slice::from_ref(&broken)).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains(&broken.display().to_string()), "{error}");
}
