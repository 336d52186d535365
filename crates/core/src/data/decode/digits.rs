//! Parses decimal digits, eight at a time.

use std::hint::select_unpredictable;

/// Powers of ten that fit into a `u64`.
pub(super) const POWERS_OF_TEN: [u64; 20] = {
    let mut powers = [1; 20];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

const ZEROS: u64 = 0x3030_3030_3030_3030;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The value and the number of the digits at the start of eight bytes.
#[inline]
pub(super) fn leading_digits(bytes: [u8; 8]) -> (u64, usize) {
    let digits = u64::from_le_bytes(bytes) ^ ZEROS;
    let bits = digit_bits(digits);
    (value(digits, bits), bits as usize / 8)
}

/// Like [`leading_digits`], for sixteen bytes. Fractions vary in length, so a branch on the half in
/// which a fraction ends would be mispredicted. The code has no such branch.
#[inline]
pub(super) fn leading_sixteen(bytes: [u8; 16]) -> (u64, usize) {
    let word = u128::from_le_bytes(bytes);
    #[expect(clippy::cast_possible_truncation, reason = "the lower half and the upper one")]
    let (first, second) = (word as u64 ^ ZEROS, (word >> 64) as u64 ^ ZEROS);
    let bits = digit_bits(first);
    let more = select_unpredictable(bits == 64, digit_bits(second), 0);
    let value = value(first, bits) * POWERS_OF_TEN[more as usize / 8] + value(second, more);
    (value, (bits + more) as usize / 8)
}

/// The number of low bits that belong to leading digits (bytes `0..=9`).
#[inline]
fn digit_bits(digits: u64) -> u32 {
    // A carry sets only bits above the first non-digit, so the lowest set bit is correct.
    let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGHS;
    others.trailing_zeros() & !7
}

/// The value of the digits in the `bits` lowest bits.
#[inline]
fn value(digits: u64, bits: u32) -> u64 {
    // The shift removes the bytes after the digits and adds leading zeros.
    let word = digits.checked_shl(64 - bits).unwrap_or(0);
    // Combines digits into pairs, pairs into groups of four, and these into eight.
    let word = (word.wrapping_mul(2_561) >> 8) & 0x00FF_00FF_00FF_00FF;
    let word = (word.wrapping_mul(6_553_601) >> 16) & 0x0000_FFFF_0000_FFFF;
    word.wrapping_mul(42_949_672_960_001) >> 32
}
