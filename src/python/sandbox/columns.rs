//! The columns of a frame to load, whatever frame they came in, and their way into the sandbox.

use std::collections::HashMap;
use std::sync::Arc;

use crate::sandbox::{Identity, Point, Reading, Sandbox, SandboxError};

/// The id columns, in the order of the document.
pub(super) const ID_COLUMNS: [&str; 5] =
    ["site_id", "line_id", "machine_id", "device_id", "tag_guid"];
const DAY: i64 = 86_400_000_000;
const SECOND: i64 = 1_000_000;

/// The columns that a frame has. All are of one length; times are microseconds since the Unix
/// epoch.
#[derive(Default)]
pub(super) struct Columns {
    pub(super) ids: [Option<Texts>; 5],
    pub(super) timestamp: Vec<i64>,
    pub(super) value: Vec<Option<f64>>,
    pub(super) minimum: Option<Vec<Option<f64>>>,
    pub(super) maximum: Option<Vec<Option<f64>>>,
    pub(super) sample_count: Option<Vec<Option<i64>>>,
    pub(super) available_at: Option<Vec<Option<i64>>>,
}

/// A column of few different texts.
#[derive(Default)]
pub(super) struct Texts {
    codes: Vec<usize>,
    values: Vec<Option<Arc<str>>>,
    known: HashMap<Option<Arc<str>>, usize>,
}

impl Texts {
    pub(super) fn push(&mut self, text: Option<&str>) {
        let text: Option<Arc<str>> = text.map(Arc::from);
        let code = *self.known.entry(text).or_insert_with_key(|text| {
            self.values.push(text.clone());
            self.values.len() - 1
        });
        self.codes.push(code);
    }

    fn at(&self, row: usize) -> Option<Arc<str>> {
        self.values[self.codes[row]].clone()
    }
}

impl Columns {
    /// Loads everything into a sandbox; gives the number of rows. Ids that are no column are those
    /// of `identity`.
    pub(super) fn load(
        &self,
        sandbox: &Sandbox,
        identity: &Identity,
        bucket_seconds: Option<u32>,
    ) -> Result<usize, String> {
        let shown = |error: SandboxError| error.to_string();
        let is_aggregated =
            self.minimum.is_some() || self.maximum.is_some() || self.sample_count.is_some();
        if is_aggregated {
            let width = match bucket_seconds {
                Some(seconds) => seconds,
                None => self.grid()?,
            };
            let points = |rows: Vec<usize>| rows.iter().map(|row| self.point(*row)).collect();
            let series = self.series(identity).into_iter();
            let series = series.map(|(identity, rows)| (identity, points(rows))).collect();
            sandbox.load_points(width, series).map_err(shown)?;
        } else {
            let width = bucket_seconds.ok_or(
                "Raw readings (no minimum, maximum or sample_count) need bucket=, such as \"1m\".",
            )?;
            let readings =
                |rows: Vec<usize>| rows.iter().filter_map(|row| self.reading(*row)).collect();
            let series = self.series(identity).into_iter();
            let series = series.map(|(identity, rows)| (identity, readings(rows))).collect();
            sandbox.load_readings(width, series).map_err(shown)?;
        }
        Ok(self.timestamp.len())
    }

    /// The rows of each series, in the order of the frame.
    fn series(&self, identity: &Identity) -> Vec<(Identity, Vec<usize>)> {
        let mut places: HashMap<[usize; 5], usize> = HashMap::new();
        let mut series: Vec<(Identity, Vec<usize>)> = Vec::new();
        for row in 0..self.timestamp.len() {
            let codes =
                std::array::from_fn(|id| self.ids[id].as_ref().map_or(0, |texts| texts.codes[row]));
            let place = *places.entry(codes).or_insert_with(|| {
                series.push((self.identity(row, identity), Vec::new()));
                series.len() - 1
            });
            series[place].1.push(row);
        }
        series
    }

    fn identity(&self, row: usize, default: &Identity) -> Identity {
        let id = |index: usize, default: &Option<Arc<str>>| match &self.ids[index] {
            Some(texts) => texts.at(row),
            None => default.clone(),
        };
        Identity {
            site: id(0, &default.site),
            line: id(1, &default.line),
            machine: id(2, &default.machine),
            device: id(3, &default.device),
            tag: id(4, &default.tag),
        }
    }

    /// The widest bucket on whose grid all timestamps lie, a day at most, in seconds.
    fn grid(&self) -> Result<u32, String> {
        let width = self.timestamp.iter().fold(DAY, |width, timestamp| {
            let (mut one, mut other) = (width, timestamp.rem_euclid(DAY));
            while other != 0 {
                (one, other) = (other, one % other);
            }
            one
        });
        let seconds = u32::try_from(width / SECOND).ok().filter(|_| width % SECOND == 0);
        seconds.ok_or_else(|| "The timestamps lie on no grid of whole seconds.".to_owned())
    }

    fn point(&self, row: usize) -> Point {
        let at = |column: &Option<Vec<Option<f64>>>| column.as_ref().and_then(|all| all[row]);
        Point {
            timestamp: self.timestamp[row],
            value: self.value[row],
            minimum: at(&self.minimum),
            maximum: at(&self.maximum),
            sample_count: self.sample_count.as_ref().and_then(|all| all[row]),
            available_at: self.available_at(row),
        }
    }

    /// A reading without a value is no reading.
    fn reading(&self, row: usize) -> Option<Reading> {
        let (timestamp, available_at) = (self.timestamp[row], self.available_at(row));
        self.value[row].map(|value| Reading { timestamp, value, available_at })
    }

    fn available_at(&self, row: usize) -> Option<i64> {
        self.available_at.as_ref().and_then(|all| all[row])
    }
}
