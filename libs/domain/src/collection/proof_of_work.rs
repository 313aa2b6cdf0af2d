//! Proof of work: a submission costs the sender's CPU about half a second. That is little for a visitor, and much for
//! a bot that sends ten thousand.
//!
//! A challenge is signed for one form and expires, so issuing one stores nothing. The caller must ensure that each is
//! used only once.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use crate::encryption::MasterKey;

/// Puzzles of a challenge. The total time of many small ones varies little; with one large puzzle, some visitors
/// would finish at once and others wait long.
pub const PUZZLES: usize = 16;
/// Leading zero bits of a solved puzzle's digest: some 4,096 attempts each.
pub const BITS: u32 = 12;

/// Returns the signature of a challenge.
fn signature(key: &MasterKey, form_id: Uuid, expires: &str, random: &str) -> String {
    URL_SAFE_NO_PAD.encode(&key.digest("form.challenge", &[&form_id.to_string(), expires, random])[..16])
}

/// Creates a challenge for one submission to this form, valid until `expires_at`.
pub fn challenge(key: &MasterKey, form_id: Uuid, expires_at: DateTime<Utc>, random: [u8; 12]) -> String {
    let (expires, random) = (expires_at.timestamp().to_string(), URL_SAFE_NO_PAD.encode(random));
    format!("{expires}.{random}.{}", signature(key, form_id, &expires, &random))
}

/// Verifies a proof and returns its challenge, which must be used only once; `None` if the proof is not valid for
/// this form and time. A proof is the challenge, `:`, and the solution of each puzzle separated by `,`: `n` solves
/// puzzle `i` if SHA-256 of `challenge:i:n` begins with [`BITS`] zeros.
pub fn verify<'a>(key: &MasterKey, form_id: Uuid, proof: &'a str, now: DateTime<Utc>) -> Option<&'a str> {
    let (challenge, solutions) = proof.split_once(':')?;
    let mut parts = challenge.split('.');
    let (expires, random, signed) = (parts.next()?, parts.next()?, parts.next()?);
    let signature = signature(key, form_id, expires, random);
    let is_ours = parts.next().is_none() && bool::from(signature.as_bytes().ct_eq(signed.as_bytes()));
    if !is_ours || expires.parse::<i64>().ok()? <= now.timestamp() {
        return None;
    }
    let mut solutions = solutions.split(',');
    let solves = |(at, solution): (usize, &str)| {
        let digest = Sha256::digest(format!("{challenge}:{at}:{solution}"));
        let (head, _) = digest.split_first_chunk().unwrap_or((&[0xff; 4], &[]));
        solution.len() <= 20 && u32::from_be_bytes(*head).leading_zeros() >= BITS
    };
    let all = solutions.by_ref().take(PUZZLES).enumerate().filter(|one| solves(*one)).count() == PUZZLES;
    (all && solutions.next().is_none()).then_some(challenge)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Uuid = Uuid::from_u128(7);

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    /// Solves a challenge like a browser.
    fn solve(challenge: &str) -> Vec<String> {
        let is_solved = |at: usize, number: u32| {
            let digest = Sha256::digest(format!("{challenge}:{at}:{number}"));
            digest[0] == 0 && digest[1] < 16
        };
        (0..PUZZLES).map(|at| (0..).find(|number| is_solved(at, *number)).unwrap().to_string()).collect()
    }

    #[test]
    fn a_proof_is_valid_for_its_form_until_it_expires() {
        let key = MasterKey::of_secret(b"a secret");
        let challenge = challenge(&key, FORM, at(1_000), [7; 12]);
        let solutions = solve(&challenge);
        let proof = format!("{challenge}:{}", solutions.join(","));
        assert_eq!(verify(&key, FORM, &proof, at(999)), Some(&*challenge));
        assert_eq!(verify(&key, FORM, &proof, at(1_000)), None);
        assert_eq!(verify(&key, Uuid::from_u128(8), &proof, at(999)), None);
        assert_eq!(verify(&MasterKey::of_secret(b"another"), FORM, &proof, at(999)), None);
        let prolonged = proof.replacen("1000", "9000", 1);
        let fewer = format!("{challenge}:{}", solutions[1..].join(","));
        let same = format!("{challenge}:{}", vec![solutions[0].clone(); PUZZLES].join(","));
        for wrong in ["", ":", "x:1", &challenge, &prolonged, &fewer, &same, &format!("{proof},1")] {
            assert_eq!(verify(&key, FORM, wrong, at(999)), None, "{wrong}");
        }
    }
}
