//! `alone PAGES_DIR SET [SECONDS]`: decoding alone, on one core, of bodies that are in memory.
//!
//! siteline's whole decoder (timestamps, identities, columns, all its checks) beside other people's
//! readers, in rounds of one after the other; printed is one line of JSON: the medians of the rounds
//! in GB/s. The typed ones do less: a timestamp stays text there.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use siteline::data::decode::decode_sized;
use siteline::data::{DecodeSettings, parse_instant};
use siteline_bench::columns::Columns;
use siteline_bench::tally::Tally;
use siteline_bench::typed::Page;
use siteline_bench::{pages, seeds};

/// So many rounds at least, however long they take.
const LEAST_ROUNDS: usize = 7;
/// Points of a page, which the client knows from the page before.
const ROWS: usize = 10_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A way to read one body, of which it also has a copy that it may spoil. What was read is added to
/// the tally where one is wanted.
type Reader = fn(body: &[u8], spoilt: &mut [u8], tally: Option<&mut Tally>) -> Outcome<()>;

const READERS: [(&str, Reader); 5] = [
    ("siteline", |body, _, tally| {
        let decoded = black_box(decode_sized(body, &SETTINGS, ROWS)?);
        note(tally, || Tally::of_decoded(&decoded));
        Ok(())
    }),
    ("sonic", |body, _, tally| {
        let page: Page<'_> = black_box(sonic_rs::from_slice(body)?);
        note(tally, || Tally::of_page(&page));
        Ok(())
    }),
    ("sonic_columns", |body, _, tally| {
        let mut columns = Columns::new(ROWS);
        black_box(seeds::read(body, &mut columns)?);
        let batch = black_box(columns.finish()?);
        note(tally, || Tally::of_batch(&batch));
        Ok(())
    }),
    ("simd_json", |_, spoilt, tally| {
        let page: Page<'_> = black_box(simd_json::from_slice(spoilt)?);
        note(tally, || Tally::of_page(&page));
        Ok(())
    }),
    ("serde_json", |body, _, tally| {
        let page: Page<'_> = black_box(serde_json::from_slice(body)?);
        note(tally, || Tally::of_page(&page));
        Ok(())
    }),
];

/// As the client has them for a query of the rendered range.
static SETTINGS: LazyLock<DecodeSettings> = LazyLock::new(|| DecodeSettings {
    start: parse_instant("2026-09-01T00:00:00Z").ok(),
    end: parse_instant("2026-10-05T17:20:00Z").ok(),
    interval_seconds: Some(60),
    ..DecodeSettings::default()
});

fn note(tally: Option<&mut Tally>, read: impl FnOnce() -> Tally) {
    if let Some(tally) = tally {
        tally.add(read());
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, set, seconds) = match arguments.as_slice() {
        [folder, set] => (folder, set, 10.0),
        [folder, set, seconds] => (folder, set, seconds.parse()?),
        _ => return Err("alone PAGES_DIR SET [SECONDS]".into()),
    };
    let bodies = pages::of_folder(&Path::new(folder).join(set))?;
    let tally = agreed(&bodies)?;
    let bytes: usize = bodies.iter().map(Vec::len).sum();
    let rates = rounds(&bodies, Duration::from_secs_f64(seconds))?;
    let mut line = format!(
        "{{\"set\": {set:?}, \"bytes\": {bytes}, \"points\": {}, \"rounds\": {}",
        tally.points,
        rates[0].len()
    );
    let medians = rates.map(median);
    for ((name, _), rate) in READERS.iter().zip(medians) {
        line.push_str(&format!(", \"{name}\": {rate:.3}"));
    }
    line.push_str(&format!(", \"ratio\": {:.3}}}", medians[0] / medians[1]));
    writeln!(io::stdout(), "{line}")?;
    Ok(())
}

/// What all readers find in the bodies; an error where one finds something else.
fn agreed(bodies: &[Vec<u8>]) -> Outcome<Tally> {
    let mut first = None;
    for (name, reader) in READERS {
        let mut tally = Tally::default();
        for body in bodies {
            reader(body, &mut body.clone(), Some(&mut tally))?;
        }
        if *first.get_or_insert(tally) != tally {
            return Err(format!("{name} read {tally:?}, siteline {first:?}").into());
        }
    }
    first.ok_or_else(|| "no reader".into())
}

/// GB/s of each reader in each round. Each round begins with the next reader.
fn rounds(bodies: &[Vec<u8>], time: Duration) -> Outcome<[Vec<f64>; READERS.len()]> {
    let mut rates: [Vec<f64>; READERS.len()] = Default::default();
    let began = Instant::now();
    let mut round = 0;
    while round < LEAST_ROUNDS || began.elapsed() < time {
        for turn in 0..READERS.len() {
            let reader = (round + turn) % READERS.len();
            rates[reader].push(rate(bodies, READERS[reader].1)?);
        }
        round += 1;
    }
    Ok(rates)
}

/// GB/s over all bodies; the copies are not timed, but made for every reader alike.
fn rate(bodies: &[Vec<u8>], reader: Reader) -> Outcome<f64> {
    let (mut bytes, mut spent) = (0, Duration::ZERO);
    for body in bodies {
        let mut copy = body.clone();
        let began = Instant::now();
        reader(body, &mut copy, None)?;
        spent += began.elapsed();
        bytes += body.len();
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits")]
    Ok(bytes as f64 / spent.as_secs_f64() / 1e9)
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
