//! Parses bucket timestamps to microseconds since 1970-01-01T00:00:00Z. The interface document does
//! not specify a form. ISO 8601 text with a zone, and epoch seconds or milliseconds are accepted.

use jiff::civil::Date;

use super::number::Number;
use crate::data::shape::TimestampForm;

/// 0001-01-01T00:00:00Z, the first instant of a Python datetime.
pub(crate) const FIRST_MICROSECOND: i64 = -62_135_596_800_000_000;
/// 9999-12-31T23:59:59.999999Z, the last instant of a Python datetime.
pub(super) const LAST_MICROSECOND: i64 = 253_402_300_799_999_999;

const HOUR: i64 = 3_600_000_000;
const MINUTE: i64 = 60_000_000;
const SECOND: i64 = 1_000_000;

/// A fault in a text timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsoFault {
    Form,
    NoZone,
    DateOnly,
    OutOfRange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instant {
    pub microseconds: i64,
    /// Whether it was truncated to microseconds.
    pub(crate) truncated: bool,
    /// Whether it was a leap second, `:60`, which is read as `:59.999999`.
    pub(crate) leap_second: bool,
}

/// Caches the last date, because successive points usually share it.
#[derive(Debug, Clone)]
pub(crate) struct DateMemo {
    text: [u8; 10],
    microseconds: i64,
}

impl Default for DateMemo {
    /// Contains a valid date, because ten zero bytes would match an invalid text.
    fn default() -> Self {
        Self { text: *b"1970-01-01", microseconds: 0 }
    }
}

impl DateMemo {
    /// Midnight UTC of the date in `YYYY-MM-DD`.
    #[inline]
    fn midnight(&mut self, text: &[u8; 10]) -> Result<i64, IsoFault> {
        if self.text == *text { Ok(self.microseconds) } else { self.learn(text) }
    }

    #[cold]
    fn learn(&mut self, text: &[u8; 10]) -> Result<i64, IsoFault> {
        self.microseconds = midnight(text)?;
        self.text = *text;
        Ok(self.microseconds)
    }
}

/// Parses ISO 8601 with `T`, `t` or a space; optional seconds; a fraction of any length after `.`
/// or `,`; and zone `Z`, `z`, `+02:00`, `+0200` or `+02`.
#[inline]
pub(crate) fn parse_iso(text: &[u8], memo: &mut DateMemo) -> Result<Instant, IsoFault> {
    if let Ok(text) = <&[u8; 20]>::try_from(text)
        && let Some(microseconds) = parse_plain(text, memo)
    {
        return Ok(Instant { microseconds, truncated: false, leap_second: false });
    }
    parse_any(text, memo)
}

/// Parses the most frequent form at the start of `bytes`, `"2026-11-01T00:00:00Z"` with quotes.
/// Returns the instant and the length; `None` for any other form, valid or not.
#[inline]
pub(super) fn take_iso(bytes: &[u8], memo: &mut DateMemo) -> Option<(i64, usize)> {
    let [b'"', text @ .., b'"'] = bytes.first_chunk::<22>()? else { return None };
    Some((parse_plain(text, memo)?, 22))
}

/// Parses the most frequent form, `2026-11-01T00:00:00Z`.
#[inline]
fn parse_plain(text: &[u8; 20], memo: &mut DateMemo) -> Option<i64> {
    let (date, [b'T', time @ .., b'Z']) = text.split_first_chunk::<10>()? else { return None };
    let time = time_of_day(*time.first_chunk()?)?;
    Some(memo.midnight(date).ok()? + time)
}

/// The microseconds of `HH:MM:SS`, parsed eight bytes at once.
#[inline]
fn time_of_day(text: [u8; 8]) -> Option<i64> {
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let digits = u64::from_le_bytes(text) ^ u64::from_le_bytes(*b"00:00:00");
    // With these, a byte exceeds 0x7F if it is above its maximum: 2, 9, 0 for the colon, 5, 9...
    let excess = u64::from_le_bytes([0x7D, 0x76, 0x7F, 0x7A, 0x76, 0x7F, 0x7A, 0x76]);
    if (digits.wrapping_add(excess) | digits) & HIGHS != 0 {
        return None;
    }
    // Each byte becomes ten times itself plus the next byte. That is at most 99, so there is no
    // carry.
    let pairs = (digits * 10 + (digits >> 8)).to_le_bytes();
    let (hours, minutes, seconds) = (i64::from(pairs[0]), i64::from(pairs[3]), i64::from(pairs[6]));
    (hours < 24).then_some(((hours * 60 + minutes) * 60 + seconds) * SECOND)
}

fn parse_any(text: &[u8], memo: &mut DateMemo) -> Result<Instant, IsoFault> {
    let Some((date, rest)) = text.split_first_chunk::<10>() else { return Err(IsoFault::Form) };
    let midnight = memo.midnight(date)?;
    let mut rest = match rest {
        [] => return Err(IsoFault::DateOnly),
        [b'T' | b't' | b' ', rest @ ..] => rest,
        _ => return Err(IsoFault::Form),
    };
    let hour = two_digits(&mut rest, 23)?;
    let minute = after_colon(&mut rest, 59)?.ok_or(IsoFault::Form)?;
    let second = after_colon(&mut rest, 60)?;
    let leap_second = second == Some(60);
    let mut truncated = false;
    let mut fraction = 0;
    if second.is_some() && matches!(rest, [b'.' | b',', ..]) {
        (fraction, truncated) = parse_fraction(&mut rest)?;
    }
    if leap_second {
        fraction = SECOND - 1;
    }
    let second = second.unwrap_or(0).min(59);
    let local = midnight + hour * HOUR + minute * MINUTE + second * SECOND + fraction;
    let microseconds = local - parse_zone(rest)?;
    if (FIRST_MICROSECOND..=LAST_MICROSECOND).contains(&microseconds) {
        Ok(Instant { microseconds, truncated, leap_second })
    } else {
        Err(IsoFault::OutOfRange)
    }
}

fn two_digits(rest: &mut &[u8], most: i64) -> Result<i64, IsoFault> {
    let [tens @ b'0'..=b'9', ones @ b'0'..=b'9', tail @ ..] = *rest else {
        return Err(IsoFault::Form);
    };
    *rest = tail;
    let value = i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
    if value <= most { Ok(value) } else { Err(IsoFault::Form) }
}

fn after_colon(rest: &mut &[u8], most: i64) -> Result<Option<i64>, IsoFault> {
    let [b':', tail @ ..] = *rest else { return Ok(None) };
    *rest = tail;
    two_digits(rest, most).map(Some)
}

/// The microseconds of a fraction, and whether nonzero digits were lost.
fn parse_fraction(rest: &mut &[u8]) -> Result<(i64, bool), IsoFault> {
    let digits = &rest[1..];
    let count = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    if count == 0 {
        return Err(IsoFault::Form);
    }
    let (digits, tail) = digits.split_at(count);
    *rest = tail;
    let kept = digits.iter().copied().chain(std::iter::repeat(b'0')).take(6);
    let microseconds = kept.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Ok((microseconds, digits.iter().skip(6).any(|digit| *digit != b'0')))
}

/// The zone's offset from UTC in microseconds.
fn parse_zone(zone: &[u8]) -> Result<i64, IsoFault> {
    let (sign, mut rest) = match zone {
        [] => return Err(IsoFault::NoZone),
        [b'Z' | b'z'] => return Ok(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return Err(IsoFault::Form),
    };
    let hours = two_digits(&mut rest, 23)?;
    let minutes = match rest {
        [] => 0,
        [b':', ..] => after_colon(&mut rest, 59)?.unwrap_or(0),
        _ => two_digits(&mut rest, 59)?,
    };
    if rest.is_empty() { Ok(sign * (hours * HOUR + minutes * MINUTE)) } else { Err(IsoFault::Form) }
}

fn midnight(text: &[u8; 10]) -> Result<i64, IsoFault> {
    // The library also accepts other forms.
    let [_, _, _, _, b'-', _, _, b'-', ..] = text else { return Err(IsoFault::Form) };
    let date = std::str::from_utf8(text).ok().and_then(|text| text.parse::<Date>().ok());
    let date = date.ok_or(IsoFault::Form)?;
    if date.year() == 0 {
        return Err(IsoFault::OutOfRange);
    }
    Ok(date.duration_since(Date::constant(1970, 1, 1)).as_secs() * SECOND)
}

/// Converts a number in this epoch form; `None` outside the years 1 to 9999.
pub(super) fn parse_epoch(number: Number<'_>, form: TimestampForm) -> Option<Instant> {
    let power = if form == TimestampForm::EpochMilliseconds { 3 } else { 6 };
    let (microseconds, truncated) = number.scaled(power)?;
    (FIRST_MICROSECOND..=LAST_MICROSECOND).contains(&microseconds).then_some(Instant {
        microseconds,
        truncated,
        leap_second: false,
    })
}

/// Detects the epoch form of a number: the one closer to the query's range. If both are equally
/// close, `settled`, the form of the page so far, decides, otherwise the size of the number.
pub(super) fn recognise_epoch(
    number: Number<'_>,
    range: (Option<i64>, Option<i64>),
    settled: Option<TimestampForm>,
) -> TimestampForm {
    use TimestampForm::{EpochMilliseconds, EpochSeconds};
    let seconds = parse_epoch(number, EpochSeconds).map(|instant| instant.microseconds);
    let milliseconds = parse_epoch(number, EpochMilliseconds).map(|instant| instant.microseconds);
    let (Some(seconds), Some(milliseconds)) = (seconds, milliseconds) else {
        // If it is out of range in seconds, it is milliseconds or an error.
        return if seconds.is_some() { EpochSeconds } else { EpochMilliseconds };
    };
    let (as_seconds, as_milliseconds) = (distance(seconds, range), distance(milliseconds, range));
    match as_seconds.cmp(&as_milliseconds) {
        std::cmp::Ordering::Less => EpochSeconds,
        std::cmp::Ordering::Greater => EpochMilliseconds,
        std::cmp::Ordering::Equal => settled.unwrap_or(
            // 10^11 seconds is the year 5138, 10^11 milliseconds is 1973.
            if seconds.unsigned_abs() < 100_000_000_000_000_000 {
                EpochSeconds
            } else {
                EpochMilliseconds
            },
        ),
    }
}

fn distance(instant: i64, (start, end): (Option<i64>, Option<i64>)) -> u64 {
    match (start, end) {
        (Some(start), _) if instant < start => start.abs_diff(instant),
        (_, Some(end)) if instant > end => instant.abs_diff(end),
        // Without the other bound, measures the distance from the known one.
        (Some(start), None) => instant.abs_diff(start),
        (None, Some(end)) => end.abs_diff(instant),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn iso(text: &str) -> Result<Instant, IsoFault> {
        parse_iso(text.as_bytes(), &mut DateMemo::default())
    }

    fn expected(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_microsecond()
    }

    #[test]
    fn j11_every_form_of_iso_text_gives_the_same_instant() {
        for text in [
            "2026-11-01T00:00:00Z",
            "2026-11-01T02:00:00+02:00",
            "2026-11-01t00:00:00z",
            "2026-11-01 00:00:00Z",
            "2026-10-31T18:30:00-0530",
            "2026-11-01T02:00+02",
            "2026-11-01T00:00:00.000Z",
            "2026-11-01T00:00:00,0Z",
            "2026-11-01T00:00:00.000000000000Z",
        ] {
            let instant = iso(text).unwrap();
            assert_eq!(instant.microseconds, expected("2026-11-01T00:00:00Z"), "{text}");
            assert!(!instant.truncated && !instant.leap_second, "{text}");
        }
        let nine = iso("2026-11-01T00:00:00.123456789Z").unwrap();
        assert_eq!(nine.microseconds, expected("2026-11-01T00:00:00.123456Z"));
        assert!(nine.truncated);
        let before_epoch = iso("1969-12-31T23:59:59.9999999Z").unwrap();
        assert_eq!(before_epoch.microseconds, -1);
    }

    #[test]
    fn j11_text_without_a_zone_or_not_iso_is_refused() {
        assert_eq!(iso("2026-11-01T00:00:00"), Err(IsoFault::NoZone));
        assert_eq!(iso("2026-11-01T00:00"), Err(IsoFault::NoZone));
        assert_eq!(iso("2026-11-01"), Err(IsoFault::DateOnly));
        for text in [
            "",
            "2026",
            "2026-11-01T",
            "2026-11-01T00Z",
            "2026-11-01T24:00:00Z",
            "2026-11-01T00:60:00Z",
            "2026-11-01T00:00:61Z",
            "2026-02-29T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-11-31T00:00:00Z",
            "2026-11-01T00:00:00.Z",
            "2026-11-01T00:00:00Zx",
            "2026-11-01T00:00:00+2:00",
            "2026-11-01T00:00:00+02:00x",
            "+12026-11-01T00:00:00Z",
            "20261101T000000Z",
            "20261101T0T00:00:00Z",
            "2026-W45-1T00:00:00Z",
            "2026-11-01T0:00:00Z",
            "1793491200",
            "2026-11-01T00:00.5Z",
            "2026-11-01T00:00:00+24:00",
            "１026-11-01T00:00:00Z",
            "\0\0\0\0\0\0\0\0\0\0T00:00:00Z",
        ] {
            assert_eq!(iso(text), Err(IsoFault::Form), "{text}");
        }
    }

    #[test]
    fn j13_only_the_years_1_to_9999_are_accepted() {
        assert_eq!(iso("0001-01-01T00:00:00Z").unwrap().microseconds, FIRST_MICROSECOND);
        assert_eq!(iso("9999-12-31T23:59:59.999999Z").unwrap().microseconds, LAST_MICROSECOND);
        assert_eq!(iso("0000-12-31T23:59:59Z"), Err(IsoFault::OutOfRange));
        assert_eq!(iso("0001-01-01T00:00:00+01:00"), Err(IsoFault::OutOfRange));
        assert_eq!(iso("9999-12-31T23:59:59-00:01"), Err(IsoFault::OutOfRange));
        for text in ["1000000000000000000", "1e18", "1e400", "-1000000000000000000"] {
            let number = Number::parse(text).unwrap();
            assert_eq!(parse_epoch(number, TimestampForm::EpochSeconds), None, "{text}");
            assert_eq!(parse_epoch(number, TimestampForm::EpochMilliseconds), None, "{text}");
        }
    }

    #[test]
    fn j12_epoch_forms_are_detected_by_distance_to_the_range() {
        use TimestampForm::{EpochMilliseconds, EpochSeconds};
        let day = |text: &str| Some(expected(text));
        let november = (day("2026-11-01T00:00:00Z"), day("2026-11-08T00:00:00Z"));
        let seventies = (day("1970-01-01T00:00:00Z"), day("1970-01-02T00:00:00Z"));
        let open = (None, None);
        for (text, range, settled, form) in [
            ("1793491200", november, None, EpochSeconds),
            ("1793491200000", november, None, EpochMilliseconds),
            ("1793491200.25", november, None, EpochSeconds),
            ("1.7934912e9", november, None, EpochSeconds),
            ("1793491200", open, None, EpochSeconds),
            ("1793491200000", open, None, EpochMilliseconds),
            ("60000000", seventies, None, EpochMilliseconds),
            ("80000", seventies, None, EpochSeconds),
            ("80000", seventies, Some(EpochMilliseconds), EpochMilliseconds),
            ("1793491200000", (november.0, None), None, EpochMilliseconds),
        ] {
            let number = Number::parse(text).unwrap();
            assert_eq!(recognise_epoch(number, range, settled), form, "{text} {settled:?}");
        }
        let quarter = parse_epoch(Number::parse("1793491200.2500001").unwrap(), EpochSeconds);
        let quarter = quarter.unwrap();
        assert_eq!(quarter.microseconds, expected("2026-11-01T00:00:00.25Z"));
        assert!(quarter.truncated);
    }

    proptest! {
        #[test]
        fn j11_dates_agree_with_the_calendar_of_jiff(
            microseconds in FIRST_MICROSECOND..=(LAST_MICROSECOND - 48 * HOUR)
        ) {
            let text = Timestamp::from_microsecond(microseconds).unwrap().to_string();
            prop_assert_eq!(iso(&text).unwrap().microseconds, microseconds);
        }
    }
}
