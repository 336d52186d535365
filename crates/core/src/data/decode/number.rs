//! Parses JSON numbers exactly. Doubles are correctly rounded and bit-equal to Python's `json`.
//! Integers are never converted through a double.

use super::digits::{POWERS_OF_TEN, leading_digits};
use super::double::nearest;

/// Longer numbers are rejected, because no measurement has this many digits.
pub(super) const LONGEST_NUMBER: usize = 4_096;

/// A fault in a number token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberFault {
    /// The text ends before a required digit.
    Truncated,
    /// Violates RFC 8259 at this offset.
    Syntax(usize),
    /// Longer than [`LONGEST_NUMBER`] bytes.
    TooLong,
}

/// A scanned number: `mantissa * 10^exponent`. If `exact`, the mantissa contains all digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number<'a> {
    bytes: &'a [u8],
    mantissa: u64,
    exponent: i32,
    negative: bool,
    exact: bool,
    integer: bool,
}

/// Any number with this many digits fits into a `u64`.
const MANTISSA_DIGITS: usize = 19;

impl<'a> Number<'a> {
    /// Scans the number at `start`. Returns it and the offset after it.
    #[inline]
    pub(super) fn scan(bytes: &'a [u8], start: usize) -> Result<(Self, usize), NumberFault> {
        let negative = bytes.get(start) == Some(&b'-');
        let first = start + usize::from(negative);
        let mut mantissa = 0;
        let mut at = digits(bytes, first, &mut mantissa);
        match at - first {
            0 => return Err(fault_at(bytes, at)),
            1 => {}
            _ if bytes[first] == b'0' => return Err(NumberFault::Syntax(first + 1)),
            _ => {}
        }
        let mut count = at - first;
        let mut exponent = 0;
        let mut integer = true;
        if bytes.get(at) == Some(&b'.') {
            integer = false;
            let fraction = at + 1;
            at = digits(bytes, fraction, &mut mantissa);
            if at == fraction {
                return Err(fault_at(bytes, at));
            }
            count += at - fraction;
            exponent = -i32::try_from(at - fraction).unwrap_or(i32::MAX);
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            integer = false;
            let (written, after) = scan_exponent(bytes, at + 1)?;
            exponent = exponent.saturating_add(written);
            at = after;
        }
        if at - start > LONGEST_NUMBER {
            return Err(NumberFault::TooLong);
        }
        let exact = count <= MANTISSA_DIGITS;
        let bytes = &bytes[start..at];
        Ok((Self { bytes, mantissa, exponent, negative, exact, integer }, at))
    }

    /// Parses a text that contains only a number.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        match Self::scan(text.as_bytes(), 0) {
            Ok((number, end)) if end == text.len() => Some(number),
            _ => None,
        }
    }

    pub(crate) fn text(self) -> &'a str {
        // Cannot fail, because a number is ASCII.
        std::str::from_utf8(self.bytes).unwrap_or_default()
    }

    /// The nearest double; `None` if it is out of range. `-0` is an integer without a sign; `-0.0`
    /// keeps it.
    #[inline]
    pub(super) fn to_f64(self) -> Option<f64> {
        if self.exact
            && let Some(value) = nearest(self.mantissa, self.exponent)
        {
            let signed = self.negative && !(self.integer && self.mantissa == 0);
            return Some(if signed { -value } else { value });
        }
        self.text().parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// The number as an integer (`3`, `3.0`, `3e0`); `None` if it has a fraction or does not fit.
    #[inline]
    pub(super) fn to_i64(self) -> Option<i64> {
        if self.exact && self.exponent == 0 && !self.negative {
            return i64::try_from(self.mantissa).ok();
        }
        self.scaled(0).and_then(|(whole, rest)| (!rest).then_some(whole))
    }

    /// Whether the token has neither fraction nor exponent.
    pub(super) fn is_integer(self) -> bool {
        self.integer
    }

    /// The number times `10^power`, rounded down to an integer, and whether digits were lost.
    /// `None` if it does not fit.
    pub(super) fn scaled(self, power: i32) -> Option<(i64, bool)> {
        let (mantissa, exponent) =
            if self.exact { (self.mantissa, self.exponent) } else { self.long_mantissa()? };
        let exponent = exponent.checked_add(power)?;
        let mantissa = i128::from(mantissa);
        let signed = if self.negative { -mantissa } else { mantissa };
        let places = exponent.unsigned_abs();
        let (whole, cut) = if mantissa == 0 {
            (0, false)
        } else if exponent >= 0 {
            let factor = if places <= 18 { 10_i128.pow(places) } else { return None };
            (signed.checked_mul(factor)?, false)
        } else if places <= 38 {
            let factor = 10_i128.pow(places);
            (signed.div_euclid(factor), signed.rem_euclid(factor) != 0)
        } else {
            (if self.negative { -1 } else { 0 }, true)
        };
        Some((i64::try_from(whole).ok()?, cut))
    }

    /// The mantissa without trailing zeros, for tokens such as `3.00000000000000000000`.
    fn long_mantissa(self) -> Option<(u64, i32)> {
        let body = self.text().split(['e', 'E']).next()?;
        let (whole, fraction) = body.split_once('.').unwrap_or((body, ""));
        let mut exponent = self.exponent.checked_add(i32::try_from(fraction.len()).ok()?)?;
        let fraction = fraction.trim_end_matches('0');
        exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let all = format!("{}{fraction}", whole.trim_start_matches('-'));
        let kept = all.trim_end_matches('0');
        exponent = exponent.checked_add(i32::try_from(all.len() - kept.len()).ok()?)?;
        if kept.is_empty() { Some((0, 0)) } else { Some((kept.parse().ok()?, exponent)) }
    }
}

/// Parses a count in the most frequent form, a few digits, at the start of `bytes`. Returns it and
/// its length; `None` for any other form, valid or not.
#[inline]
pub(super) fn take_count(bytes: &[u8]) -> Option<(i64, usize)> {
    let window = bytes.first_chunk::<8>()?;
    let (value, count) = leading_digits(*window);
    if count == 0 || (count > 1 && window[0] == b'0') {
        return None;
    }
    // More digits may follow eight digits, so they return `None`.
    let after = window.get(count)?;
    if matches!(after, b'.' | b'e' | b'E') {
        return None;
    }
    Some((value.cast_signed(), count))
}

fn fault_at(bytes: &[u8], at: usize) -> NumberFault {
    if at >= bytes.len() { NumberFault::Truncated } else { NumberFault::Syntax(at) }
}

/// Appends the digits at `at` to the mantissa, and returns the offset after them. The mantissa
/// wraps, because the caller counts the digits.
#[inline]
fn digits(bytes: &[u8], mut at: usize, mantissa: &mut u64) -> usize {
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let (value, count) = leading_digits(*eight);
        *mantissa = mantissa.wrapping_mul(POWERS_OF_TEN[count]).wrapping_add(value);
        at += count;
        if count < 8 {
            return at;
        }
    }
    while let Some(byte) = bytes.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        *mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    at
}

fn scan_exponent(bytes: &[u8], mut at: usize) -> Result<(i32, usize), NumberFault> {
    let negative = bytes.get(at) == Some(&b'-');
    if matches!(bytes.get(at), Some(b'-' | b'+')) {
        at += 1;
    }
    let start = at;
    let mut exponent: i32 = 0;
    while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
        exponent = exponent.saturating_mul(10).saturating_add(i32::from(digit - b'0'));
        at += 1;
    }
    if at == start {
        return Err(fault_at(bytes, at));
    }
    Ok((if negative { -exponent } else { exponent }, at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_kit::trials;

    /// The number of doubles for J7. The Python tests compare a million more with `json.loads`.
    const RANDOM_DOUBLES: u32 = 200_000;

    fn value(text: &str) -> Option<f64> {
        Number::parse(text).unwrap().to_f64()
    }

    #[test]
    fn j7_random_doubles_are_bit_equal_in_every_notation() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..trials(RANDOM_DOUBLES) {
            let double = f64::from_bits(random.u64(..));
            if !double.is_finite() {
                continue;
            }
            for text in [format!("{double:e}"), format!("{double:.16e}")] {
                assert_eq!(value(&text).unwrap().to_bits(), double.to_bits(), "{text}");
            }
            // Resembles a sensor's value: few digits and a moderate magnitude.
            let sensor = (random.f64() - 0.5) * 10_f64.powi(random.i32(-3..7));
            for text in [format!("{sensor}"), format!("{sensor:.4}"), format!("{sensor:.17}")] {
                assert_eq!(value(&text).unwrap().to_bits(), text.parse::<f64>().unwrap().to_bits());
            }
        }
    }

    #[test]
    fn j8_the_extremes_are_bit_equal() {
        for text in [
            "-0.0",
            "0.0",
            "5e-324",
            "1.7976931348623157e308",
            "0.1",
            "2.2250738585072011e-308",
            "9007199254740993",
            "9007199254740992e22",
            "123456789012345678",
            "1e23",
            "1e22",
            "1e-400",
            "0.000000000000000000000000000000000000000000000000000000000001",
        ] {
            let expected: f64 = text.parse().unwrap();
            assert_eq!(value(text).unwrap().to_bits(), expected.to_bits(), "{text}");
        }
    }

    #[test]
    fn j10_integers_are_parsed_in_every_notation() {
        for (text, whole) in [
            ("3", Some(3)),
            ("3.0", Some(3)),
            ("30e-1", Some(3)),
            ("3.00000000000000000000000", Some(3)),
            ("0.3e1", Some(3)),
            ("-1", Some(-1)),
            ("-0", Some(0)),
            ("0e99999999999", Some(0)),
            ("3.5", None),
            ("1e-50", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("1e19", None),
            ("0.00000000000000000000000000000", Some(0)),
        ] {
            assert_eq!(Number::parse(text).unwrap().to_i64(), whole, "{text}");
        }
    }

    #[test]
    fn only_the_json_grammar_is_a_number() {
        for text in
            ["", "-", "01", "-01", "1.", ".5", "1e", "1e+", "+1", "1.e1", "0x1", "1_0", "１"]
        {
            assert!(Number::parse(text).is_none(), "{text}");
        }
        assert_eq!(Number::scan(b"1.", 0).unwrap_err(), NumberFault::Truncated);
        assert_eq!(Number::scan(b"-", 0).unwrap_err(), NumberFault::Truncated);
        assert_eq!(Number::scan(b"-x", 0).unwrap_err(), NumberFault::Syntax(1));
    }

    proptest! {
        #[test]
        fn j7_numbers_equal_the_standard_library(
            text in "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?"
        ) {
            let expected: f64 = if text == "-0" { "0" } else { &text }.parse().unwrap();
            match value(&text) {
                Some(value) => prop_assert_eq!(value.to_bits(), expected.to_bits()),
                None => prop_assert!(expected.is_infinite()),
            }
        }
    }
}
