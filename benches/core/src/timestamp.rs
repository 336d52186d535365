//! `2026-09-01T00:00:00Z` to microseconds: the only form in rendered pages; siteline parses other
//! forms.

/// Reads timestamps; keeps the day of the last one, which is mostly that of the next.
#[derive(Debug, Default)]
pub struct Timestamps {
    date: [u8; 10],
    midnight: i64,
}

impl Timestamps {
    /// Microseconds since 1970 UTC; `None` for a text that is not an instant.
    #[inline]
    pub fn read(&mut self, text: &str) -> Option<i64> {
        let Ok(form): Result<&[u8; 20], _> = text.as_bytes().try_into() else { return slow(text) };
        let [date @ .., b'T', h1, h2, b':', m1, m2, b':', s1, s2, b'Z'] = form else {
            return slow(text);
        };
        if self.date != *date {
            (self.date, self.midnight) = (*date, slow(&format!("{}T00:00:00Z", &text[..10]))?);
        }
        let [hour, minute, second] = [(h1, h2), (m1, m2), (s1, s2)].map(|(a, b)| two(*a, *b));
        if hour > 23 || minute > 59 || second > 59 {
            return slow(text);
        }
        Some(self.midnight + i64::from((hour * 60 + minute) * 60 + second) * 1_000_000)
    }
}

/// The number of two digits; a large one if they are not digits.
#[inline]
fn two(tens: u8, ones: u8) -> u32 {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    if tens > 9 || ones > 9 { u32::MAX >> 8 } else { u32::from(tens) * 10 + u32::from(ones) }
}

#[cold]
fn slow(text: &str) -> Option<i64> {
    Some(siteline_core::data::parse_instant(text).ok()?.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Microseconds of a day.
    const DAY: i64 = 86_400_000_000;

    #[test]
    fn the_fast_form_and_other_forms_give_the_same_instant() {
        let mut timestamps = Timestamps::default();
        let noon = 20_697 * DAY + DAY / 2;
        for text in
            ["2026-09-01T12:00:00Z", "2026-09-01T12:00:00.000Z", "2026-09-01T14:00:00+02:00"]
        {
            assert_eq!(timestamps.read(text), Some(noon), "{text}");
        }
        assert_eq!(timestamps.read("2026-09-01T12:00:61Z"), None);
        assert_eq!(timestamps.read("2026-13-01T12:00:00Z"), None);
        assert_eq!(timestamps.read("2026-09-01T12:00:00Z"), Some(noon));
    }
}
