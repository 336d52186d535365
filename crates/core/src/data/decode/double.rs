//! Converts decimal numbers to the nearest double, correctly rounded and bit-equal to Python's
//! `json`.

use super::digits::{POWERS_OF_TEN, leading_sixteen};

/// The table contains the powers from `10^-40` to `10^40`, far more than sensors need.
const LARGEST_EXPONENT: i32 = 40;
const POWERS: [Power; 81] = {
    let mut powers = [Power::from_exponent(0); 81];
    let mut exponent = -LARGEST_EXPONENT;
    while exponent <= LARGEST_EXPONENT {
        powers[exponent.abs_diff(-LARGEST_EXPONENT) as usize] = Power::from_exponent(exponent);
        exponent += 1;
    }
    powers
};
/// The bias of a double's exponent, for a significand that is an integer.
const BIAS: i32 = 1_075;

/// A power of ten: its 128 leading bits as an integer, rounded down, times a power of two.
#[derive(Clone, Copy)]
struct Power {
    high: u64,
    low: u64,
    /// The exponent bits of the product with a mantissa, if the mantissa has no leading zero bit and
    /// the product has one.
    exponent: u64,
}

impl Power {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "halves, bits")]
    const fn from_exponent(exponent: i32) -> Self {
        let five = 5_u128.pow(exponent.unsigned_abs());
        let zeros = five.leading_zeros();
        let (bits, binary) = if exponent >= 0 {
            (five << zeros, exponent - zeros.cast_signed())
        } else {
            // Long division of a power of two, bit by bit: 5^40 has 93 bits.
            let length = 128 - zeros;
            let (mut quotient, mut rest, mut bit) = (0_u128, 1_u128 << (length - 1), 0);
            while bit < 128 {
                rest <<= 1;
                quotient <<= 1;
                if rest >= five {
                    rest -= five;
                    quotient |= 1;
                }
                bit += 1;
            }
            (quotient, exponent - 127 - length.cast_signed())
        };
        // The product loses its low 64 bits, and 74 more for a significand of 53. Adding the
        // significand adds its leading one to the exponent.
        let biased = binary + 64 + 74 + BIAS - 1;
        Self { high: (bits >> 64) as u64, low: bits as u64, exponent: (biased as u64) << 52 }
    }
}

/// The double nearest to `mantissa * 10^exponent`. `None` if the exponent is not in the table, or
/// the number is too close to the middle between two doubles.
pub(super) fn nearest(mantissa: u64, exponent: i32) -> Option<f64> {
    let index = exponent.checked_add(LARGEST_EXPONENT)?;
    rounded(mantissa, POWERS.get(usize::try_from(index).ok()?)?)
}

#[expect(clippy::inline_always, reason = "measured: a call costs a tenth of the decoder's time")]
#[inline(always)]
fn rounded(mantissa: u64, power: &Power) -> Option<f64> {
    if mantissa == 0 {
        return Some(0.0);
    }
    let zeros = mantissa.leading_zeros();
    let scaled = u128::from(mantissa << zeros);
    // The product's 128 leading bits. The power was truncated to 128 bits, and the product loses
    // its low 64 bits. Each loss is less than one, so the exact product is in product..product + 2.
    let product = scaled * u128::from(power.high) + ((scaled * u128::from(power.low)) >> 64);
    let high = (product >> 64) as u64;
    let large = high >> 63;
    let cut = 10 + large;
    // Unless these bits are all zeros or all ones, the product is clearly above or below half.
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    let low = product as u64;
    if low.wrapping_add(1) <= 1 && is_near_half(product, cut) {
        return None;
    }
    let significand = ((high >> (cut - 1)) + 1) >> 1;
    let exponent = power.exponent + (large << 52) - (u64::from(zeros) << 52);
    // A significand that is rounded up to 2^53 correctly carries into the exponent.
    Some(f64::from_bits(exponent + significand))
}

/// Whether the bits to round off are half, or one below. The exact value may then be above, below
/// or equal to half. Otherwise it is on the same side as these bits.
#[cold]
fn is_near_half(product: u128, cut: u64) -> bool {
    let half = 1_u128 << (63 + cut);
    let rest = product & (half + half - 1);
    rest == half || rest == half - 1
}

/// Parses the most frequent form of a number at the start of `bytes`: few digits, no exponent.
/// Returns the nearest double and the number's length; `None` for any other form, valid or not.
#[inline]
pub(super) fn take_double(bytes: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(*bytes.first()? == b'-');
    let window = bytes.get(sign..)?.first_chunk::<32>()?;
    // Successive numbers usually have the same number of integer digits, so this branch is
    // predicted well.
    let (mut whole, mut count) = (0, 0);
    while let digit @ 0..=9 = window[count].wrapping_sub(b'0') {
        whole = whole * 10 + u64::from(digit);
        count += 1;
        if count == 10 {
            return None;
        }
    }
    if count == 0 || (count > 1 && window[0] == b'0') {
        return None;
    }
    let (mantissa, places) = if window[count] == b'.' {
        let (fraction, places) = leading_sixteen(*window[count + 1..].first_chunk()?);
        if places == 0 || count + places > 19 {
            return None;
        }
        (whole * POWERS_OF_TEN[places] + fraction, places)
    } else {
        (whole, 0)
    };
    let length = count + if places == 0 { 0 } else { places + 1 };
    if matches!(window[length], b'0'..=b'9' | b'e' | b'E') {
        return None;
    }
    let value = rounded(mantissa, &POWERS[POWERS.len() / 2 - places])?;
    // `-0` is an integer, which has no sign.
    let signed = sign == 1 && (mantissa != 0 || places != 0);
    Some((if signed { -value } else { value }, sign + length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_kit::trials;

    const RANDOM_NUMBERS: u32 = 300_000;

    fn expected(mantissa: u64, exponent: i32) -> u64 {
        format!("{mantissa}e{exponent}").parse::<f64>().unwrap().to_bits()
    }

    /// The result of `take_double` for a number in a body, as bits and length.
    fn taken(text: &str) -> Option<(u64, usize)> {
        let body = format!("{text},\"minimum\":1.25,\"maximum\":1.25,\"sampleCount\":60}}");
        take_double(body.as_bytes()).map(|(value, length)| (value.to_bits(), length))
    }

    #[test]
    fn j7_numbers_near_the_middle_are_bit_equal() {
        let mut random = fastrand::Rng::with_seed(12);
        for _ in 0..trials(RANDOM_NUMBERS / 4) {
            // A significand of 54 bits that ends in one is in the middle between two of 53.
            let half = (1 << 53) | (random.u64(..) >> 11) | 1;
            let power = random.u32(0..=10);
            for mantissa in [half - 1, half, half + 1].map(|half| half << power) {
                for exponent in -30..=30 {
                    if let Some(value) = nearest(mantissa, exponent) {
                        assert_eq!(value.to_bits(), expected(mantissa, exponent));
                    }
                }
            }
        }
        for (mantissa, exponent) in [(9_007_199_254_740_993, 0), (90_071_992_547_409_930, -1)] {
            assert_eq!(nearest(mantissa, exponent), None, "{mantissa}e{exponent}");
        }
        for exponent in -41..=41 {
            for mantissa in [0, 1, 2, 5, u64::MAX, 1 << 63, (1 << 53) - 1, 10_u64.pow(19)] {
                if let Some(value) = nearest(mantissa, exponent) {
                    assert_eq!(value.to_bits(), expected(mantissa, exponent));
                }
            }
        }
        assert!(nearest(1, i32::MAX).is_none() && nearest(1, i32::MIN).is_none());
    }

    proptest! {
        #[test]
        fn j7_accepted_numbers_are_bit_equal(
            text in "-?(0|[1-9][0-9]{0,12})(\\.[0-9]{1,20})?"
        ) {
            if let Some((bits, length)) = taken(&text) {
                // `-0` is an integer, which has no sign.
                let expected = if text == "-0" { "0" } else { &text }.parse::<f64>().unwrap();
                prop_assert_eq!(bits, expected.to_bits());
                prop_assert_eq!(length, text.len());
            } else {
                prop_assert!(text.len() >= 10, "{}", text);
            }
        }
    }
}
