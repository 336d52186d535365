//! Decoding alone, of bodies in memory: siteline's decoder (timestamps, identities, columns, all
//! checks), and sonic-rs with structs. sonic-rs does less: it does not parse timestamps.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use siteline_core::data::decode::{EarlierPages, decode_after};
use siteline_core::data::{DecodeSettings, parse_instant_in};

use crate::page::Page;
use crate::{Outcome, Tally};

/// The minimum number of rounds, and how long they last.
const LEAST_ROUNDS: usize = 7;
const LIMIT: Duration = Duration::from_secs(10);

/// GB/s of both decoders over all bodies: for each body the median of its times. Both read a body
/// before the next one, so that other load on the machine affects them equally.
pub(crate) fn run(folder: &Path) -> Outcome<String> {
    let paths = (0..).map(|page| folder.join(format!("{page:03}.json")));
    let bodies = paths.take_while(|path| path.exists()).map(fs::read);
    let bodies: Vec<Vec<u8>> = bodies.collect::<Result<_, _>>()?;
    // The client's settings for a query of the rendered range, and its memory of a chain.
    let settings = DecodeSettings {
        start: Some(parse_instant_in("2026-09-01T00:00:00Z", None)?),
        end: Some(parse_instant_in("2026-10-05T17:20:00Z", None)?),
        interval_seconds: Some(60),
        ..DecodeSettings::default()
    };
    let mut earlier = EarlierPages::default();
    let (mut ours, mut theirs) = (Tally::default(), Tally::default());
    let mut times = vec![(Vec::new(), Vec::new()); bodies.len()];
    let began = Instant::now();
    let mut round = 0;
    while round < LEAST_ROUNDS || began.elapsed() < LIMIT {
        for (body, (siteline, sonic)) in bodies.iter().zip(&mut times) {
            let began = Instant::now();
            let decoded = black_box(decode_after(body, &settings, &mut earlier)?);
            siteline.push(began.elapsed());
            let began = Instant::now();
            let page: Page<'_> = black_box(sonic_rs::from_slice(body)?);
            sonic.push(began.elapsed());
            if round == 0 {
                ours.extend(&decoded.points.numbers[0]);
                theirs.extend(page.series.iter().flat_map(|each| &each.points).map(|p| p.value));
            }
        }
        round += 1;
    }
    if ours != theirs || ours.points == 0 {
        return Err(format!("siteline read {ours:?} and sonic-rs {theirs:?}").into());
    }
    let siteline: Duration = times.iter_mut().map(|(times, _)| median(times)).sum();
    let sonic: Duration = times.iter_mut().map(|(_, times)| median(times)).sum();
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits")]
    let gigabytes = bodies.iter().map(Vec::len).sum::<usize>() as f64 / 1e9;
    let [siteline, sonic] = [siteline, sonic].map(|time| gigabytes / time.as_secs_f64());
    Ok(format!(r#"{{"siteline": {siteline:.3}, "sonic": {sonic:.3}}}"#))
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
