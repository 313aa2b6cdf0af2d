//! Tests of sealing and opening under one and several keys.

use chacha20poly1305::aead::{Aead, Payload};
use proptest::prelude::*;

use super::*;

fn hex(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

/// Seals as releases without key ids did.
fn seal_without_id(key: &MasterKey, purpose: &str, nonce: [u8; NONCE_BYTES], text: &[u8]) -> Vec<u8> {
    let payload = Payload { msg: text, aad: purpose.as_bytes() };
    [nonce.as_slice(), &key.first.cipher().encrypt(&XNonce::from(nonce), payload).unwrap()].concat()
}

#[test]
fn only_the_same_key_and_purpose_open_unchanged_bytes() {
    let key = MasterKey::from_hex(&hex(0x0f)).unwrap();
    let sealed = key.seal("webhook.url", [9; NONCE_BYTES], b"https://x.test/");
    assert_eq!(key.open("webhook.url", &sealed).unwrap(), b"https://x.test/");
    assert!(key.open("webhook.secret", &sealed).is_err());
    assert!(MasterKey::from_hex(&hex(0x0e)).unwrap().open("webhook.url", &sealed).is_err());
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert!(key.open("webhook.url", &changed).is_err(), "byte {at}");
    }
    for length in 0..sealed.len() {
        assert!(key.open("webhook.url", &sealed[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn a_master_key_is_64_hexadecimal_digits() {
    for wrong in ["", "0f", &"zz".repeat(32), &"0f".repeat(33), &"é".repeat(32), &"+f".repeat(32)] {
        assert!(MasterKey::from_hex(wrong).is_none());
    }
}

#[test]
fn values_of_another_implementation_open_with_and_without_an_id() {
    // By libsodium: nonce 0909…, key 0f0f…, associated data `webhook.url`, for the second after the header of `2027`.
    let nonce = "09".repeat(NONCE_BYTES);
    let old = format!("{nonce}06cfd10ebf9c267cd8e55f98a21caa1fa9f261fcb8f9cfc0c07cc98146e6d2");
    let new = format!(
        "{}{nonce}06cfd10ebf9c267cd8e55f98a21caa735d6e41871fc5c19a528fabb4f7e1f0",
        "006d6b3132303237"
    );
    let bytes = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    let rotated = MasterKey::parse(&format!("2028:{},2027:{},{}", hex(1), hex(0x0f), hex(0x0e))).unwrap();
    for sealed in [bytes(&old), bytes(&new)] {
        assert_eq!(rotated.open("webhook.url", &sealed).unwrap(), b"https://x.test/");
    }
    let other = MasterKey::from_hex(&hex(1)).unwrap();
    assert_eq!(other.open("webhook.url", &bytes(&old)), Err(DecryptError::WithoutId));
    let own = MasterKey::parse(&format!("2027:{}", hex(0x0f))).unwrap();
    assert_eq!(own.seal("webhook.url", [9; NONCE_BYTES], b"https://x.test/"), bytes(&new));
}

#[test]
fn an_old_value_with_a_nonce_like_a_header_still_opens() {
    let key = MasterKey::from_hex(&hex(0x0f)).unwrap();
    for id in ["0", "2027"] {
        let mut nonce = [9; NONCE_BYTES];
        nonce[..HEADER_BYTES].copy_from_slice(&KeyId::parse(id).unwrap().header());
        let old = seal_without_id(&key, "webhook.url", nonce, b"text");
        assert_eq!(key.open("webhook.url", &old).unwrap(), b"text", "{id}");
    }
}

#[test]
fn the_error_names_the_missing_key() {
    let keys = |text: String| MasterKey::parse(&text).unwrap();
    let sealed = keys(format!("2025:{}", hex(1))).seal("automation.env", [9; NONCE_BYTES], b"{}");
    let missing = keys(format!("2027:{},{}", hex(3), hex(1))).open("automation.env", &sealed).unwrap_err();
    assert!(
        missing.to_string().starts_with("sealed with master key `2025`, which is not configured"),
        "{missing}"
    );
    let other = keys(format!("2025:{}", hex(2))).open("automation.env", &sealed).unwrap_err();
    assert!(other.to_string().contains("another key is configured under this id"), "{other}");
}

#[test]
fn digests_are_by_the_first_key_and_remain_known_while_their_key_is_configured() {
    let old = MasterKey::from_hex(&hex(1)).unwrap();
    let rotated = MasterKey::parse(&format!("2027:{},{}", hex(2), hex(1))).unwrap();
    let digest = old.digest("purpose", &["part"]);
    assert_ne!(rotated.digest("purpose", &["part"]), digest);
    assert_eq!(rotated.digests("purpose", &["part"]).next(), Some(rotated.digest("purpose", &["part"])));
    assert!(rotated.digests("purpose", &["part"]).any(|known| known == digest));
    assert_eq!(rotated.further().map(|key| key.digest("purpose", &["part"])).collect::<Vec<_>>(), [digest]);
}

proptest! {
    /// Whatever the keys and their order: a value opens while its key is configured, with its purpose, unchanged.
    #[test]
    fn a_value_opens_exactly_while_its_key_is_configured(
        text in proptest::collection::vec(any::<u8>(), 0..200),
        nonce in any::<[u8; NONCE_BYTES]>(),
        sealing in 0_u8..4,
        configured in proptest::sample::subsequence(vec![0_u8, 1, 2, 3], 1..=4).prop_shuffle(),
        has_id in any::<bool>(),
        changed in any::<(prop::sample::Index, u8)>(),
    ) {
        let keys = |bytes: &[u8]| {
            let entries: Vec<String> = bytes.iter().map(|byte| format!("k{byte}:{}", hex(*byte))).collect();
            MasterKey::parse(&entries.join(",")).unwrap()
        };
        let (own, ring) = (keys(&[sealing]), keys(&configured));
        let seal = |text| if has_id { own.seal("a", nonce, text) } else { seal_without_id(&own, "a", nonce, text) };
        let mut sealed = seal(&text);
        if configured.contains(&sealing) {
            prop_assert_eq!(ring.open("a", &sealed), Ok(text.clone()));
            prop_assert!(ring.open("b", &sealed).is_err());
            let resealed = ring.seal("a", nonce, &text);
            prop_assert_eq!(KeyId::of_sealed(&resealed), Some(ring.sealing_id()));
            prop_assert_eq!(ring.open("a", &resealed), Ok(text));
        } else if has_id {
            let id = KeyId::parse(&format!("k{sealing}")).unwrap();
            prop_assert_eq!(ring.open("a", &sealed), Err(DecryptError::MissingKey(id)));
        } else {
            prop_assert!(ring.open("a", &sealed).is_err());
        }
        let (at, mask) = (changed.0.index(sealed.len()), changed.1.max(1));
        sealed[at] ^= mask;
        prop_assert!(ring.open("a", &sealed).is_err(), "byte {}", at);
    }
}
