//! `alone PAGES_DIR SET [SECONDS]`: decoding alone, on one core, of bodies in memory.
//!
//! Compares siteline's decoder (timestamps, identities, columns, all checks) with sonic-rs, page
//! by page. Prints a line of JSON: GB/s by the medians of many rounds, and the ratio of siteline to
//! sonic-rs. sonic-rs does less: it does not parse timestamps.

use std::cell::RefCell;
use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use siteline_core::data::decode::{EarlierPages, decode_after};
use siteline_core::data::{DecodeSettings, parse_instant};
use siteline_bench::pages;
use siteline_bench::tally::Tally;
use siteline_bench::typed::Page;

/// The minimum number of rounds, however long they take.
const LEAST_ROUNDS: usize = 7;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Reads one body. Adds the points to the tally, if one is given.
type Reader = fn(body: &[u8], tally: Option<&mut Tally>) -> Outcome<()>;

const READERS: [(&str, Reader); 2] = [
    ("siteline", |body, tally| {
        let decoded = EARLIER.with_borrow_mut(|earlier| decode_after(body, &SETTINGS, earlier))?;
        let decoded = black_box(decoded);
        note(tally, || Tally::of_decoded(&decoded));
        Ok(())
    }),
    ("sonic", |body, tally| {
        let page: Page<'_> = black_box(sonic_rs::from_slice(body)?);
        note(tally, || Tally::of_page(&page));
        Ok(())
    }),
];

thread_local! {
    /// What the client keeps of the earlier pages of a chain: here that of all pages.
    static EARLIER: RefCell<EarlierPages> = RefCell::default();
}

/// The client's settings for a query of the rendered range.
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
    let (rounds, rates) = rates(&bodies, Duration::from_secs_f64(seconds))?;
    let mut line = format!(
        "{{\"set\": {set:?}, \"pages\": {}, \"points\": {}, \"rounds\": {rounds}",
        bodies.len(),
        tally.points
    );
    for ((name, _), rate) in READERS.iter().zip(rates) {
        write!(line, ", \"{name}\": {rate:.3}")?;
    }
    write!(line, ", \"ratio\": {:.3}}}", rates[0] / rates[1])?;
    writeln!(io::stdout(), "{line}")?;
    Ok(())
}

/// The tally of the bodies; an error if the readers disagree.
fn agreed(bodies: &[Vec<u8>]) -> Outcome<Tally> {
    let mut first = None;
    for (name, reader) in READERS {
        let mut tally = Tally::default();
        for body in bodies {
            reader(body, Some(&mut tally))?;
        }
        if *first.get_or_insert(tally) != tally {
            return Err(format!("{name} read {tally:?}, siteline {first:?}").into());
        }
    }
    first.ok_or_else(|| "no reader".into())
}

/// GB/s of each reader over all bodies: for each body the median of its times. All readers read a
/// body before the next one, in a different order each time, so that other load on the machine
/// affects them equally.
fn rates(bodies: &[Vec<u8>], limit: Duration) -> Outcome<(usize, [f64; READERS.len()])> {
    let mut times = vec![<[Vec<f64>; READERS.len()]>::default(); bodies.len()];
    let began = Instant::now();
    let mut round = 0;
    while round < LEAST_ROUNDS || began.elapsed() < limit {
        for (index, body) in bodies.iter().enumerate() {
            for offset in 0..READERS.len() {
                let reader = (round + index + offset) % READERS.len();
                let began = Instant::now();
                READERS[reader].1(body, None)?;
                times[index][reader].push(began.elapsed().as_secs_f64());
            }
        }
        round += 1;
    }
    let bytes: usize = bodies.iter().map(Vec::len).sum();
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits")]
    let gigabytes = bytes as f64 / 1e9;
    let seconds = |reader: usize| -> f64 { times.iter().map(|of| median(&of[reader])).sum() };
    Ok((round, std::array::from_fn(|reader| gigabytes / seconds(reader))))
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
