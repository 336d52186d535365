//! The query of a data request (§4.3), parsed strictly: the error names the first mistake.

use aws_lc_rs::digest;
use jiff::Timestamp;

use super::form;
use super::identity::Selection;
use super::options::Options;

const MICROSECONDS: i64 = 1_000_000;

/// The parameters with logged values: all except the cursor.
pub(super) const LOGGED_PARAMETERS: [&str; 9] = [
    "siteId",
    "lineId",
    "machineId",
    "deviceId",
    "tagGuid",
    "from",
    "to",
    "aggregationIntervalSeconds",
    "pageSize",
];

/// The points of a query: bucket timestamps in `[from, to)`, on a grid of `interval`.
/// Microseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PointQuery {
    pub(super) selection: Selection,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) interval: i64,
}

#[derive(Debug)]
pub(super) struct DataQuery {
    pub(super) points: PointQuery,
    pub(super) page_size: u32,
    pub(super) cursor: Option<String>,
    /// A digest of all parameters but the cursor: a cursor is valid for these only.
    binding: Vec<u8>,
}

pub(super) struct Defaults {
    pub(super) now: Timestamp,
    pub(super) interval_seconds: u32,
}

impl DataQuery {
    /// Parses the query string. `Err` is the text of the error reply.
    pub(super) fn parse(
        query: &str,
        options: &Options,
        defaults: &Defaults,
    ) -> Result<Self, String> {
        let pairs = form::decode(query)?;
        let mut selection = Selection::default();
        let (mut from, mut to, mut interval) = (None, None, None);
        let (mut page_size, mut cursor) = (None, None);
        for (name, value) in &pairs {
            let value = value.as_str();
            match name.as_str() {
                "from" => once(&mut from, name, instant(name, value)?)?,
                "to" => once(&mut to, name, instant(name, value)?)?,
                "aggregationIntervalSeconds" => {
                    let most = options.maximum_interval_seconds;
                    once(&mut interval, name, number(name, value, most)?)?;
                }
                "pageSize" => {
                    let most = options.maximum_page_size;
                    once(&mut page_size, name, number(name, value, most)?)?;
                }
                "cursor" => once(&mut cursor, name, value.to_owned())?,
                "siteId" => single(&mut selection.sites, name, value)?,
                "lineId" => single(&mut selection.lines, name, value)?,
                _ => match selection.filter(name) {
                    Some(ids) => filter(ids, name, value)?,
                    None => return Err(format!("unknown parameter {name:?}")),
                },
            }
        }
        let interval =
            i64::from(interval.unwrap_or(defaults.interval_seconds).max(1)) * MICROSECONDS;
        let (from, to) = range(from, to, interval, defaults.now);
        check_range(from, to, options)?;
        // An inclusive end is an exclusive end a microsecond later.
        let to = to.saturating_add(i64::from(options.to_inclusive));
        Ok(Self {
            points: PointQuery { selection, from, to, interval },
            page_size: page_size.unwrap_or_else(|| options.page_size()),
            cursor,
            binding: binding(&pairs),
        })
    }

    pub(super) fn binding(&self, subject: &str) -> Vec<u8> {
        [subject.as_bytes(), b"\n", &self.binding].concat()
    }
}

/// The range of a query: by default it ends now and is a day long.
pub(super) fn range(
    from: Option<i64>,
    to: Option<i64>,
    interval: i64,
    now: Timestamp,
) -> (i64, i64) {
    const DAY: i64 = 86_400 * MICROSECONDS;
    let to = to.unwrap_or_else(|| super::aggregation::floor(now.as_microsecond(), interval));
    (from.unwrap_or_else(|| to.saturating_sub(DAY)), to)
}

fn check_range(from: i64, to: i64, options: &Options) -> Result<(), String> {
    if from >= to {
        return Err("from is not before to".to_owned());
    }
    let most = i64::from(options.maximum_range_seconds);
    if to - from > most * MICROSECONDS {
        let days = most / 86_400;
        return Err(format!("the range is longer than {days} days"));
    }
    Ok(())
}

fn once<T>(target: &mut Option<T>, name: &str, value: T) -> Result<(), String> {
    match target.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{name} is given twice")),
    }
}

fn single(list: &mut Vec<String>, name: &str, value: &str) -> Result<(), String> {
    if list.is_empty() { filter(list, name, value) } else { Err(format!("{name} is given twice")) }
}

fn filter(list: &mut Vec<String>, name: &str, value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Err(format!("{name} is empty"));
    }
    list.push(value.to_owned());
    Ok(())
}

/// In plain digits.
fn number(name: &str, value: &str, most: u32) -> Result<u32, String> {
    let plain = value.bytes().all(|b| b.is_ascii_digit()) && !value.starts_with('0');
    let number = value.parse().ok().filter(|number| plain && *number <= most);
    number.ok_or_else(|| format!("{name} is not a whole number from 1 to {most}"))
}

/// `2026-11-01T00:00:00Z`, with an optional fraction, or `+00:00` in place of `Z`.
fn instant(name: &str, value: &str) -> Result<i64, String> {
    let bad = || format!("{name} is not a UTC timestamp in ISO 8601 form");
    let local = value.strip_suffix('Z').or_else(|| value.strip_suffix("+00:00"));
    let local = local.ok_or_else(bad)?;
    let (seconds, fraction) = local.split_once('.').unwrap_or((local, "0"));
    let pattern: String =
        seconds.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let fraction_is_good =
        (1..=9).contains(&fraction.len()) && fraction.bytes().all(|b| b.is_ascii_digit());
    if pattern != "0000-00-00T00:00:00" || !fraction_is_good || seconds.ends_with(":60") {
        return Err(bad());
    }
    let timestamp: Timestamp = format!("{local}Z").parse().map_err(|_| bad())?;
    // Rounded down, so that nanoseconds never make the range longer.
    i64::try_from(timestamp.as_nanosecond().div_euclid(1_000)).map_err(|_| bad())
}

/// A digest of all parameters but the cursor.
fn binding(pairs: &[(String, String)]) -> Vec<u8> {
    let mut pairs: Vec<_> = pairs.iter().filter(|(name, _)| name != "cursor").collect();
    pairs.sort_unstable();
    let mut context = digest::Context::new(&digest::SHA256);
    for (name, value) in pairs {
        for part in [name, value] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
    }
    context.finish().as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(query: &str) -> Result<DataQuery, String> {
        let now = "2026-11-08T00:00:30Z".parse().expect("a time");
        DataQuery::parse(query, &Options::default(), &Defaults { now, interval_seconds: 60 })
    }

    #[test]
    fn missing_parameters_have_their_defaults() {
        let query = parsed("").expect("a query");
        assert_eq!(query.points.to - query.points.from, 86_400 * MICROSECONDS);
        assert_eq!(query.points.to % (60 * MICROSECONDS), 0);
        assert_eq!((query.points.interval, query.page_size), (60 * MICROSECONDS, 1_000));
    }

    #[test]
    fn invalid_parameters_are_refused() {
        for bad in [
            "pageSize=0",
            "pageSize=+5",
            "pageSize=1.5",
            "pageSize=10001",
            "pageSize=5&pageSize=5",
            "pageSize=",
            "aggregationIntervalSeconds=60&aggregationIntervalSeconds=60",
            "aggregationIntervalSeconds=-1",
            "aggregationIntervalSeconds=",
            "siteId=",
            "siteId=S1&siteId=S1",
            "lineId=L1&lineId=L2",
            "siteid=S1",
            "siteId",
            "from=2026-11-01T00:00:00Z&from=2026-11-01T00:00:00Z",
            "to=2026-11-01T00:00:00Z&to=2026-11-01T00:00:00Z",
            "from=1793491200",
            "from=2026-11-01",
            "from=2026-11-01T00:00Z",
            "from=2026-11-01T00:00:00",
            "from=2026-11-01T00:00:00+00:00",
            "from=2026-11-01T00:00:00%2B01:00",
            "from=2026-11-01t00:00:00z",
            "from=2026-02-30T00:00:00Z",
            "from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z",
            "from=2020-01-01T00:00:00Z&to=2026-01-01T00:00:00Z",
            "From=2026-11-02T00:00:00Z",
            "access_token=x",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
        assert!(parsed("from=2026-11-01T00:00:00%2B00:00&to=2026-11-01T00:00:00.5Z").is_ok());
    }
}
