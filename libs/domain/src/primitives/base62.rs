//! Base-62 encoding: tokens of digits and letters, which need no quoting in a shell or URL.

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Returns the last `length` base-62 digits of the big-endian number in `bytes`.
///
/// With 32 random bytes and 30 digits (178 bits) the bias is below 2⁻⁷⁷.
pub fn encode(bytes: &[u8], length: usize) -> String {
    let mut number = bytes.to_vec();
    let mut digits: Vec<u8> = (0..length).map(|_| DIGITS[divide_by_62(&mut number)]).collect();
    digits.reverse();
    String::from_utf8_lossy(&digits).into_owned()
}

/// Divides in place and returns the remainder.
fn divide_by_62(number: &mut [u8]) -> usize {
    number.iter_mut().fold(0usize, |remainder, byte| {
        let dividend = remainder * 256 + usize::from(*byte);
        *byte = u8::try_from(dividend / 62).unwrap_or(u8::MAX);
        dividend % 62
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_numbers_as_usual() {
        assert_eq!(encode(&[0], 3), "000");
        assert_eq!(encode(&[61], 1), "z");
        assert_eq!(encode(&62u32.to_be_bytes(), 2), "10");
        assert_eq!(encode(&u32::MAX.to_be_bytes(), 6), "4gfFC3");
    }
}
