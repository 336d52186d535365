//! Decoding alone, of bodies in memory: siteline's decoder (timestamps, identities, columns, all
//! checks), and sonic-rs with structs. sonic-rs does less: it does not parse timestamps.

use std::cell::RefCell;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde::Deserialize;
use siteline_core::data::decode::{EarlierPages, decode_after};
use siteline_core::data::{DecodeSettings, parse_instant};

use crate::{Outcome, Tally};

/// The minimum number of rounds, and how long they last.
const LEAST_ROUNDS: usize = 7;
const LIMIT: Duration = Duration::from_secs(10);

/// Reads one body. Adds the points to the tally, if one is given.
type Reader = fn(body: &[u8], tally: Option<&mut Tally>) -> Outcome<()>;

const READERS: [Reader; 2] = [siteline, sonic];

thread_local! {
    /// The client's memory of the earlier pages of a chain: here all pages.
    static EARLIER: RefCell<EarlierPages> = RefCell::default();
}

/// The client's settings for a query of the rendered range.
static SETTINGS: LazyLock<DecodeSettings> = LazyLock::new(|| DecodeSettings {
    start: parse_instant("2026-09-01T00:00:00Z").ok(),
    end: parse_instant("2026-10-05T17:20:00Z").ok(),
    interval_seconds: Some(60),
    ..DecodeSettings::default()
});

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "decoded, and not read")]
struct Page<'a> {
    #[serde(borrow)]
    series: Vec<Series<'a>>,
    next_cursor: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "decoded, and not read")]
struct Series<'a> {
    site_id: Option<&'a str>,
    line_id: Option<&'a str>,
    machine_id: Option<&'a str>,
    device_id: Option<&'a str>,
    tag_guid: Option<&'a str>,
    #[serde(borrow)]
    points: Vec<Point<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "decoded, and not read")]
struct Point<'a> {
    timestamp: &'a str,
    value: Option<f64>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    sample_count: Option<i64>,
}

fn siteline(body: &[u8], tally: Option<&mut Tally>) -> Outcome<()> {
    let decoded = EARLIER.with_borrow_mut(|earlier| decode_after(body, &SETTINGS, earlier))?;
    let decoded = black_box(decoded);
    if let Some(tally) = tally {
        tally.extend(&decoded.points.numbers[0]);
    }
    Ok(())
}

fn sonic(body: &[u8], tally: Option<&mut Tally>) -> Outcome<()> {
    let page: Page<'_> = black_box(sonic_rs::from_slice(body)?);
    if let Some(tally) = tally {
        tally.extend(page.series.iter().flat_map(|series| &series.points).map(|point| point.value));
    }
    Ok(())
}

/// GB/s of each reader over all bodies: for each body the median of its times. All readers read a
/// body before the next one, in a different order each time, so that other load on the machine
/// affects them equally.
pub(crate) fn run(folder: &Path) -> Outcome<String> {
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<_> = paths.collect::<Outcome<_>>()?;
    paths.sort();
    let bodies: Vec<Vec<u8>> = paths.iter().map(fs::read).collect::<Result<_, _>>()?;
    let mut tallies = [Tally::default(), Tally::default()];
    for body in &bodies {
        for (reader, tally) in READERS.iter().zip(&mut tallies) {
            reader(body, Some(tally))?;
        }
    }
    if tallies[0] != tallies[1] || tallies[0].points == 0 {
        return Err(format!("siteline and sonic-rs read {tallies:?}").into());
    }
    let mut times = vec![<[Vec<f64>; READERS.len()]>::default(); bodies.len()];
    let began = Instant::now();
    let mut round = 0;
    while round < LEAST_ROUNDS || began.elapsed() < LIMIT {
        for (index, body) in bodies.iter().enumerate() {
            for offset in 0..READERS.len() {
                let reader = (round + index + offset) % READERS.len();
                let began = Instant::now();
                READERS[reader](body, None)?;
                times[index][reader].push(began.elapsed().as_secs_f64());
            }
        }
        round += 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits")]
    let gigabytes = bodies.iter().map(Vec::len).sum::<usize>() as f64 / 1e9;
    let [siteline, sonic] = [0, 1]
        .map(|reader| gigabytes / times.iter_mut().map(|of| median(&mut of[reader])).sum::<f64>());
    Ok(format!(r#"{{"siteline": {siteline:.3}, "sonic": {sonic:.3}}}"#))
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
