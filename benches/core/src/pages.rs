//! Bodies to decode: those of a folder, or one generated from a fixed seed.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// Series of a generated page.
const SERIES: u32 = 20;
/// Points of each series.
const POINTS: u32 = 500;

/// All bodies of a folder, in the order of their names.
///
/// # Errors
/// A folder that cannot be read, or has no pages.
pub fn of_folder(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "a folder without pages"));
    }
    paths.iter().map(fs::read).collect()
}

/// The layout of a generated page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Without spaces, members in the order of the interface.
    A,
    /// Spaces after colons and commas, members in another order, one of them unknown.
    B,
}

/// A page of 20 series with 500 points each: doubles of 3 to 17 digits, one point of 100 null.
#[must_use]
pub fn generate(layout: Layout) -> Vec<u8> {
    let mut random = Random(2026);
    let envelopes: Vec<String> = (0..SERIES)
        .map(|series| {
            let points: Vec<String> =
                (0..POINTS).map(|minute| point(layout, minute, &mut random)).collect();
            envelope(layout, series, &points)
        })
        .collect();
    let body = match layout {
        Layout::A => format!("{{\"series\":[{}],\"nextCursor\":\"p001\"}}", envelopes.join(",")),
        Layout::B => {
            format!("{{\"nextCursor\": \"p001\", \"series\": [{}]}}", envelopes.join(", "))
        }
    };
    body.into_bytes()
}

fn envelope(layout: Layout, series: u32, points: &[String]) -> String {
    let (line, machine) = (series / 5, series / 2);
    let tag = format!("7d9c2f10-5b6e-4d3a-9c1b-{series:012x}");
    match layout {
        Layout::A => format!(
            "{{\"siteId\":\"plant-1\",\"lineId\":\"line-{line}\",\"machineId\":\"machine-{machine}\",\
             \"deviceId\":\"device-{series}\",\"tagGuid\":\"{tag}\",\"points\":[{}]}}",
            points.join(",")
        ),
        Layout::B => format!(
            "{{\"tagGuid\": \"{tag}\", \"points\": [{}], \"deviceId\": \"device-{series}\", \
             \"machineId\": \"machine-{machine}\", \"siteId\": \"plant-1\", \"lineId\": \"line-{line}\"}}",
            points.join(", ")
        ),
    }
}

fn point(layout: Layout, minute: u32, random: &mut Random) -> String {
    let time = format!("2026-09-01T{:02}:{:02}:00Z", minute / 60, minute % 60);
    let count = random.below(60) + 1;
    let [value, minimum, maximum] = if random.below(100) == 0 {
        std::array::from_fn(|_| "null".to_owned())
    } else {
        std::array::from_fn(|_| random.number())
    };
    match layout {
        Layout::A => format!(
            "{{\"timestamp\":\"{time}\",\"value\":{value},\"minimum\":{minimum},\
             \"maximum\":{maximum},\"sampleCount\":{count}}}"
        ),
        Layout::B => format!(
            "{{\"sampleCount\": {count}, \"maximum\": {maximum}, \"quality\": \"good\", \
             \"value\": {value}, \"timestamp\": \"{time}\", \"minimum\": {minimum}}}"
        ),
    }
}

/// A seeded generator of random numbers.
struct Random(u64);

impl Random {
    /// A number below `bound`.
    fn below(&mut self, bound: u32) -> u32 {
        // Knuth's generator; only its high bits are random enough.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(bound)).unwrap_or_default()
    }

    /// A decimal of 3 to 17 digits, 1 to 3 of them before the point.
    fn number(&mut self) -> String {
        let mut text = (self.below(999) + 1).to_string();
        let digits = 3 + usize::try_from(self.below(15)).unwrap_or_default();
        text.push('.');
        for _ in text.len() - 1..digits {
            let digit = self.below(10);
            // Writing to a string cannot fail.
            let _ = write!(text, "{digit}");
        }
        if text.ends_with('.') {
            text.push('5');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use siteline_core::data::{DecodeSettings, decode};

    use super::*;
    use crate::columns::Columns;
    use crate::seeds;
    use crate::tally::Tally;
    use crate::typed::Page;

    #[test]
    fn all_readers_agree_on_both_layouts() {
        for layout in [Layout::A, Layout::B] {
            let body = generate(layout);
            let decoded = decode(&body, &DecodeSettings::default()).unwrap();
            let tally = Tally::of_decoded(&decoded);
            assert_eq!(tally.points, 10_000, "{layout:?}");
            assert!((50..200).contains(&tally.nulls));
            let page: Page<'_> = sonic_rs::from_slice(&body).unwrap();
            assert_eq!(Tally::of_page(&page), tally);
            let mut columns = Columns::new(0);
            assert_eq!(seeds::read(&body, &mut columns).unwrap(), Some("p001"));
            assert_eq!(columns.finish().unwrap(), decoded.points.batch().unwrap(), "{layout:?}");
        }
    }
}
