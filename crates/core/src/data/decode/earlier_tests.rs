//! The result of a page does not depend on the pages before it.

use proptest::prelude::*;

use super::tests::settings;
use super::{DecodeSettings, Decoded, EarlierPages, decode, decode_after};
use crate::error::Result;

const NAMES: [&str; 5] = ["siteId", "lineId", "machineId", "deviceId", "tagGuid"];

/// Five ids, layout, and the minutes of the points.
type Envelope = ([u8; 5], u8, Vec<u8>);

fn envelope((ids, layout, minutes): &Envelope) -> String {
    let id = |(name, id): (&str, &u8)| {
        let value = match id {
            0 => "null".to_owned(),
            1 => "7".to_owned(),
            2 => r#""\u0061""#.to_owned(),
            _ => format!("\"{}\"", "a".repeat(usize::from(*id))),
        };
        format!("\"{name}\":{value}")
    };
    let mut ids: Vec<String> = NAMES.into_iter().zip(ids).map(id).collect();
    let points: Vec<String> = minutes.iter().map(|minute| point(*minute)).collect();
    let space = if *layout == 2 { " " } else { "" };
    let points = format!("\"points\":{space}[{}]", points.join(","));
    match layout {
        0..=3 => ids.push(points),
        4 => ids.insert(0, points),
        5 => ids.insert(3, points),
        6 => ids.extend(["\"unit\":\"K\"".to_owned(), points]),
        7 => ids.extend([points, "\"unit\":\"m/s\"".to_owned(), "\"of\":{\"a\":[]}".to_owned()]),
        8 => ids.extend([points.clone(), points]),
        9 => drop(ids.remove(1)),
        _ => ids.extend([points, ids[0].clone()]),
    }
    format!("{{{}}}", ids.join(if *layout == 3 { " , " } else { "," }))
}

fn point(minute: u8) -> String {
    let value = if minute.is_multiple_of(5) { "\"1.5\"" } else { "-2.25" };
    format!(
        r#"{{"timestamp":"2026-11-01T00:{:02}:00Z","value":{value},"sampleCount":{minute}}}"#,
        minute % 60
    )
}

fn page(envelopes: &[Envelope]) -> String {
    let envelopes: Vec<String> = envelopes.iter().map(envelope).collect();
    format!(r#"{{"series":[{}],"nextCursor":null}}"#, envelopes.join(","))
}

fn any_page() -> impl Strategy<Value = Vec<Envelope>> {
    // Few ids, so that series repeat. Most pages are valid: only the layouts from 8 on are not.
    let ids = [0..2_u8, 3..4, 0..4, 3..5, 2..5];
    let layout = prop_oneof![60 => 0..8_u8, 1 => 8..11_u8];
    prop::collection::vec((ids, layout, prop::collection::vec(any::<u8>(), 0..4)), 0..8)
}

fn same(one: &Result<Decoded>, other: &Result<Decoded>) -> std::result::Result<(), TestCaseError> {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            prop_assert_eq!(one.points.batch().unwrap(), other.points.batch().unwrap());
            prop_assert_eq!(&one.points.series, &other.points.series);
            prop_assert_eq!(&one.points.envelopes, &other.points.envelopes);
            prop_assert_eq!(&one.report, &other.report);
        }
        (Err(one), Err(other)) => {
            prop_assert_eq!(one.to_string(), other.to_string());
            prop_assert_eq!(&one.context().path, &other.context().path);
        }
        (one, other) => prop_assert!(false, "{one:?}\n{other:?}"),
    }
    Ok(())
}

proptest! {
    #[test]
    fn j18_earlier_pages_do_not_change_the_result(
        pages in prop::collection::vec(any_page(), 1..6),
        repeats in prop::collection::vec(any::<prop::sample::Index>(), 6),
        damage in prop::option::weighted(0.5, (any::<prop::sample::Index>(), any::<prop::sample::Index>())),
        has_extra_column in prop::bool::weighted(0.2),
    ) {
        let extra_columns = if has_extra_column { vec!["unit".to_owned()] } else { Vec::new() };
        let settings = DecodeSettings { extra_columns, ..settings() };
        let mut earlier = EarlierPages::default();
        // Each page is followed by a repeated one, which is usually recognised.
        for (page_after, again) in pages.iter().zip(&repeats) {
            for envelopes in [page_after, again.get(&pages)] {
                let mut body = page(envelopes).into_bytes();
                if let Some((at, byte)) = &damage {
                    let at = at.index(body.len());
                    body[at] = *byte.get(br#"{}[]",:3a "#.as_slice());
                }
                same(&decode(&body, &settings), &decode_after(&body, &settings, &mut earlier))?;
            }
        }
    }
}

#[test]
fn the_number_of_stored_series_and_texts_is_bounded() {
    let mut earlier = EarlierPages::default();
    let mut read = |first: u32, count: u32, site: &str| {
        let envelopes: Vec<String> = (first..first + count)
            .map(|tag| {
                format!(
                    r#"{{"siteId":"{site}","lineId":"L","machineId":"M","deviceId":"D","tagGuid":{tag},"points":[]}}"#
                )
            })
            .collect();
        let body = format!(r#"{{"series":[{}],"nextCursor":null}}"#, envelopes.join(","));
        decode_after(body.as_bytes(), &settings(), &mut earlier).unwrap();
        earlier.series.len()
    };
    assert_eq!(read(0, 66_000, "S"), 66_000);
    assert_eq!(read(70_000, 3, "S"), 3, "cleared");
    let long = "s".repeat(17 << 20);
    assert_eq!(read(70_000, 1, &long), 4);
    assert_eq!(read(70_000, 2, &long), 5);
    assert_eq!(read(70_000, 3, "S"), 3, "cleared");
}
