//! The double nearest to a decimal number, correctly rounded (bit-equal to Python's `json`).

use super::digits::{POWERS_OF_TEN, leading_sixteen};

/// Powers of ten from `10^-40` to `10^40` are tabled: far more than sensors have.
const LARGEST_EXPONENT: i32 = 40;
const POWERS: [Power; 81] = {
    let mut powers = [Power::of_ten(0); 81];
    let mut exponent = -LARGEST_EXPONENT;
    while exponent <= LARGEST_EXPONENT {
        powers[exponent.abs_diff(-LARGEST_EXPONENT) as usize] = Power::of_ten(exponent);
        exponent += 1;
    }
    powers
};
/// What the exponent of a double is biased by where its significand is taken as a whole number.
const BIAS: i32 = 1_075;

/// A power of ten: its 128 leading bits as a whole number, rounded down, times a power of two.
#[derive(Clone, Copy)]
struct Power {
    high: u64,
    low: u64,
    /// The exponent's bits of a double, for a mantissa and a product without a leading zero but one.
    exponent: u64,
}

impl Power {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "halves, bits")]
    const fn of_ten(exponent: i32) -> Self {
        let five = 5_u128.pow(exponent.unsigned_abs());
        let zeros = five.leading_zeros();
        let (bits, binary) = if exponent >= 0 {
            (five << zeros, exponent - zeros as i32)
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
            (quotient, exponent - 127 - length as i32)
        };
        // 64 bits of the product are cut off, and 74 more for a significand of 53; the significand's
        // leading bit adds one to the exponent where it is added.
        let biased = binary + 64 + 74 + BIAS - 1;
        Self { high: (bits >> 64) as u64, low: bits as u64, exponent: (biased as u64) << 52 }
    }
}

/// The double nearest to `mantissa * 10^exponent`; `None` where that is not certain here: exponents
/// that are not tabled, and numbers as good as halfway between two doubles.
#[expect(clippy::inline_always, reason = "measured: a call costs a tenth of the whole decoder")]
#[inline(always)]
pub(super) fn nearest(mantissa: u64, exponent: i32) -> Option<f64> {
    if mantissa == 0 {
        return Some(0.0);
    }
    let power = POWERS.get(usize::try_from(exponent.checked_add(LARGEST_EXPONENT)?).ok()?)?;
    let zeros = mantissa.leading_zeros();
    let scaled = u128::from(mantissa << zeros);
    // The product's 128 leading bits. Two things were cut off, each worth less than one: the power
    // beyond its 128 bits and the product's last 64. So the true product lies in p..p + 2.
    let product = scaled * u128::from(power.high) + ((scaled * u128::from(power.low)) >> 64);
    #[expect(clippy::cast_possible_truncation, reason = "the upper half")]
    let high = (product >> 64) as u64;
    let large = high >> 63;
    let cut = 10 + large;
    // Anything else than a row of zeros or ones lies clearly above or below half.
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    let low = product as u64;
    if low.wrapping_add(1) <= 1 && is_near_half(product, cut) {
        return None;
    }
    let rounded = ((high >> (cut - 1)) + 1) >> 1;
    let exponent = power.exponent + (large << 52) - (u64::from(zeros) << 52);
    // A significand that was rounded up to 2^53 carries into the exponent, as it should.
    Some(f64::from_bits(exponent + rounded))
}

/// True where the bits to be cut off are half, or one below: then the true ones may be above, below
/// or exactly half. Anywhere else they are on the same side as these.
#[cold]
fn is_near_half(product: u128, cut: u64) -> bool {
    let half = 1_u128 << (63 + cut);
    let rest = product & (half + half - 1);
    rest == half || rest == half - 1
}

/// The number at the start of `bytes` in the form that most have: not many digits, no exponent.
/// Gives the nearest double and the number's length; `None` for any other form, right or wrong.
#[inline]
pub(super) fn take_double(bytes: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(*bytes.first()? == b'-');
    let window = bytes.get(sign..)?.first_chunk::<32>()?;
    // Neighbours have mostly as many digits here: a branch that is foretold costs nothing.
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
    #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "at most 16")]
    let value = nearest(mantissa, -(places as i32))?;
    Some((if sign == 1 { -value } else { value }, sign + length))
}
