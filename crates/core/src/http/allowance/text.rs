//! The text format of a count: readable lines with the same total length for every count; the last
//! line is a checksum of the others. A file is valid only if writing its count gives the same bytes.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;

use super::count::{Count, Origin};
use super::serials::{Batch, Serials};
use super::service_clock::ServiceClock;
use super::tally::{Pause, Tally};
use super::time_of_day::TimeOfDay;
use super::token_counts::TokenCounts;
use crate::clock::{BootTime, Reading};

/// The current version of the format.
const FORM: u32 = 4;
/// The version without batches of requests that wait; like those before it, it is read, and written anew
/// in the current one. Form 2 had no token requests of an hour either.
const WITHOUT_WAITING: u32 = 3;
/// The version without serial numbers and readings.
const WITHOUT_READINGS: u32 = 1;
const TITLE: &str = "siteline ledger, form ";
const CHECK: &str = "check ";
/// `check 01234567` and the end of the line.
const CHECK_LINE: usize = CHECK.len() + 8 + 1;
/// Where the service's time is from: a reply, or the wall clock.
const READ: &str = "read   ";
const ASSUMED: &str = "assumed";
/// Written instead of an unknown time.
const NO_TIME: &str = "-";
const ORIGINS: [(&str, Origin); 3] =
    [("assumed", Origin::Assumed), ("stated", Origin::Stated), ("learnt", Origin::Learnt)];

/// The content of a ledger file.
pub(super) struct Contents {
    /// The integration that it belongs to.
    pub(super) integration: String,
    pub(super) count: Count,
}

/// Why a text is not a valid ledger.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TextFault {
    #[error("is damaged")]
    Damaged,
    #[error("was made by a newer siteline (form {0})")]
    Newer(u32),
}

/// Writes a count; the length is the same for every count.
pub(super) fn write(count: &Count, integration: &str) -> String {
    let origin =
        ORIGINS.iter().find(|(_, origin)| *origin == count.origin).map_or("", |(name, _)| name);
    let pause = |pause: Option<Pause>| {
        let until = padded(pause.map(|pause| pause.until));
        format!("{until} said {}", padded(pause.map(|pause| pause.requested_at)))
    };
    let Serials { last, day, before, old, uncertain, undated, undated_until, .. } = count.serials;
    let Serials { past, earlier, earlier_until, recent, .. } = count.serials;
    let ServiceClock { confirmed, other, assumed, doubtful } = count.clock;
    let text = format!(
        "{TITLE}{FORM}\n\
         integration {integration}\n\
         requests {:20} since {}\n\
         tokens   {:20} since {}\n\
         days begin {} {origin:7}\n\
         no request before {}\n\
         no token before   {}\n\
         before   {:20} since {}\n\
         serials {last:20} day {day:20} before {before:20} past {past:20}\n\
         old {old:20} uncertain {uncertain:20} undated {undated:20} until {undated_until:20}\n\
         clock {} {}\n\
         other {}\n\
         doubtful {}\n\
         asked {}\n\
         hour     {:20} since {}\n\
         starts   {:20} since {}\n\
         batches  {earlier_until:20}\n\
         earlier  {:20} until {}\n\
         recent   {:20} until {}\n",
        count.requests.count,
        padded(count.requests.since),
        count.tokens.day.count,
        padded(count.tokens.day.since),
        count.day_begins,
        pause(count.pin),
        pause(count.token_pause),
        count.before.count,
        padded(count.before.since),
        if assumed { ASSUMED } else { READ },
        reading_text(confirmed),
        reading_text(other),
        reading_text(doubtful),
        reading_text(count.asked),
        count.tokens.hour.count,
        padded(count.tokens.hour.since),
        count.tokens.starts.count,
        padded(count.tokens.starts.since),
        earlier.count,
        padded(earlier.until),
        recent.count,
        padded(recent.until),
    );
    format!("{text}{CHECK}{:08x}\n", libdeflater::crc32(text.as_bytes()))
}

/// Parses a text. Every version ends with the checksum, so that a newer version differs from damage.
pub(super) fn read(bytes: &[u8]) -> Result<Contents, TextFault> {
    let text = str::from_utf8(bytes).map_err(|_| TextFault::Damaged)?;
    let split = text.len().checked_sub(CHECK_LINE).ok_or(TextFault::Damaged)?;
    let (body, check) = text.split_at_checked(split).ok_or(TextFault::Damaged)?;
    if check != format!("{CHECK}{:08x}\n", libdeflater::crc32(body.as_bytes())) {
        return Err(TextFault::Damaged);
    }
    let title = body.lines().next().and_then(|line| line.strip_prefix(TITLE));
    let form = match title.and_then(|form| form.parse().ok()) {
        Some(form @ WITHOUT_READINGS..=FORM) => form,
        Some(newer) if newer > FORM => return Err(TextFault::Newer(newer)),
        _ => return Err(TextFault::Damaged),
    };
    let contents = parse(body, form)?;
    if form == FORM && write(&contents.count, &contents.integration) != text {
        return Err(TextFault::Damaged);
    }
    Ok(contents)
}

fn parse(body: &str, form: u32) -> Result<Contents, TextFault> {
    let mut lines = body.lines().skip(1);
    let mut words = |name: &str| {
        let line =
            lines.next().and_then(|line| line.strip_prefix(name)).ok_or(TextFault::Damaged)?;
        Ok(line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    };
    let [integration] = &words("integration ")?[..] else { return Err(TextFault::Damaged) };
    let requests = tally(&words("requests ")?)?;
    let tokens = TokenCounts { day: tally(&words("tokens ")?)?, ..TokenCounts::default() };
    let [day_begins, origin] = &words("days begin ")?[..] else { return Err(TextFault::Damaged) };
    let origin = ORIGINS.iter().find(|(name, _)| name == origin).ok_or(TextFault::Damaged)?.1;
    let day_begins = TimeOfDay::parse(day_begins).map_err(|_| TextFault::Damaged)?;
    let pin = pause(&words("no request before ")?)?;
    let token_pause = pause(&words("no token before ")?)?;
    let last = requests.count;
    let mut count = Count {
        requests,
        before: Tally::default(),
        serials: Serials { last, old: last, ..Serials::default() },
        tokens,
        day_begins,
        origin,
        pin,
        token_pause,
        clock: ServiceClock::default(),
        asked: None,
    };
    if form != WITHOUT_READINGS {
        count.before = tally(&words("before ")?)?;
        let serials = words("serials ")?;
        count.serials = if form == FORM {
            current_serials(&serials, &words("old ")?)?
        } else {
            earlier_serials(&serials, &words("early ")?)?
        };
        let [origin, confirmed @ ..] = &words("clock ")?[..] else {
            return Err(TextFault::Damaged);
        };
        let assumed = origin == ASSUMED;
        let confirmed = reading(confirmed)?;
        let other = reading(&words("other ")?)?;
        let doubtful = reading(&words("doubtful ")?)?;
        count.clock = ServiceClock { confirmed, other, assumed, doubtful };
        count.asked = reading(&words("asked ")?)?;
    }
    if form >= WITHOUT_WAITING {
        count.tokens.hour = tally(&words("hour ")?)?;
        count.tokens.starts = tally(&words("starts ")?)?;
    }
    if form == FORM {
        let [until] = &words("batches ")?[..] else { return Err(TextFault::Damaged) };
        count.serials.earlier_until = number(until)?;
        count.serials.earlier = batch(&words("earlier ")?)?;
        count.serials.recent = batch(&words("recent ")?)?;
    }
    Ok(Contents { integration: integration.clone(), count })
}

fn tally(words: &[String]) -> Result<Tally, TextFault> {
    let [count, _, since] = words else { return Err(TextFault::Damaged) };
    let count = count.parse().map_err(|_| TextFault::Damaged)?;
    Ok(Tally { count, since: time(since)? })
}

fn pause(words: &[String]) -> Result<Option<Pause>, TextFault> {
    let [until, _, requested_at] = words else { return Err(TextFault::Damaged) };
    match (time(until)?, time(requested_at)?) {
        (Some(until), Some(requested_at)) => Ok(Some(Pause { requested_at, until })),
        (None, None) => Ok(None),
        _ => Err(TextFault::Damaged),
    }
}

fn current_serials(first: &[String], second: &[String]) -> Result<Serials, TextFault> {
    let [last, _, day, _, before, _, past] = first else { return Err(TextFault::Damaged) };
    let [old, _, uncertain, _, undated, _, until] = second else { return Err(TextFault::Damaged) };
    Ok(Serials {
        last: number(last)?,
        day: number(day)?,
        before: number(before)?,
        past: number(past)?,
        old: number(old)?,
        uncertain: number(uncertain)?,
        undated: number(undated)?,
        undated_until: number(until)?,
        ..Serials::default()
    })
}

/// Before form 4 it was not known which requests wait: no reply had shown the day of those after
/// `placed`, and `open` of them wait, or more if they were sent long before midnight.
fn earlier_serials(first: &[String], second: &[String]) -> Result<Serials, TextFault> {
    let [last, _, day, _, before, _, placed] = first else { return Err(TextFault::Damaged) };
    let [_, _, open, _, old, _, uncertain] = second else { return Err(TextFault::Damaged) };
    let [last, placed]: [u64; 2] = [number(last)?, number(placed)?];
    let unplaced = last.saturating_sub(placed);
    let waiting = number::<u64>(open)?.min(unplaced);
    Ok(Serials {
        last,
        day: number(day)?,
        before: number(before)?,
        old: number(old)?,
        uncertain: number(uncertain)?,
        undated: unplaced - waiting,
        undated_until: last,
        recent: Batch { count: waiting, until: None },
        ..Serials::default()
    })
}

fn batch(words: &[String]) -> Result<Batch, TextFault> {
    let Tally { count, since } = tally(words)?;
    Ok(Batch { count, until: since })
}

fn number<T: FromStr>(word: &str) -> Result<T, TextFault> {
    word.parse().map_err(|_| TextFault::Damaged)
}

fn reading(words: &[String]) -> Result<Option<Reading>, TextFault> {
    let [service, _, start, _, milliseconds] = words else { return Err(TextFault::Damaged) };
    let Some(service) = time(service)? else { return Ok(None) };
    let start = u128::from_str_radix(start, 16).map_err(|_| TextFault::Damaged)?;
    let boot = BootTime { start, elapsed: Duration::from_millis(number(milliseconds)?) };
    Ok(Some(Reading { service, boot }))
}

/// A reading, to the millisecond: rounded so that the service's time is not later than it is.
fn reading_text(reading: Option<Reading>) -> String {
    let service = padded(reading.map(|reading| reading.service));
    let (start, elapsed) =
        reading.map_or((0, Duration::ZERO), |reading| (reading.boot.start, reading.boot.elapsed));
    let milliseconds = elapsed.as_nanos().div_ceil(1_000_000);
    format!("{service} start {start:032x} at {milliseconds:20}")
}

fn time(word: &str) -> Result<Option<Timestamp>, TextFault> {
    if word == NO_TIME {
        return Ok(None);
    }
    word.parse().map(Some).map_err(|_| TextFault::Damaged)
}

/// A time, padded to the maximum length.
fn padded(at: Option<Timestamp>) -> String {
    let text = at.map_or_else(|| NO_TIME.to_owned(), |at| at.to_string());
    format!("{text:33}")
}
