//! Selects series of a feed.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::Identity;

/// In column order.
const NAMES: [&str; 5] = ["site", "line", "machine", "device", "tag"];

/// In column order.
pub type SeriesIds = [Option<String>; 5];

/// A series must match every list that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesFilter {
    /// In column order.
    pub ids: [Option<Vec<String>>; 5],
    pub series: Option<Vec<SeriesIds>>,
}

impl SeriesFilter {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the numbers of the selected series, ascending, or `None` for all. The error is the
    /// first value that no series has: it may be misspelled.
    pub(super) fn pick(&self, known: &HashMap<Identity, i64>) -> Result<Option<Vec<i64>>, String> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut picked: Vec<(SeriesKey<'_>, i64)> =
            known.iter().map(|(identity, number)| (key_of(&identity.0), *number)).collect();
        let mut unknown = None;
        for (column, (name, list)) in NAMES.into_iter().zip(&self.ids).enumerate() {
            let Some(list) = list else { continue };
            let has: HashSet<&str> =
                known.keys().filter_map(|ids| ids.0[column].as_deref()).collect();
            let missing = list.iter().find(|id| !has.contains(id.as_str()));
            unknown = unknown.or_else(|| missing.map(|id| unlisted(name, id, &has)));
            let list: HashSet<&str> = list.iter().map(String::as_str).collect();
            picked.retain(|(key, _)| key[column].is_some_and(|id| list.contains(id)));
        }
        if let Some(series) = &self.series {
            let has: HashSet<SeriesKey<'_>> = known.keys().map(|ids| key_of(&ids.0)).collect();
            let missing = series.iter().map(key_of).find(|key| !has.contains(key));
            unknown = unknown.or(missing
                .map(|key| format!("series ({})", key.map(|id| id.unwrap_or("None")).join(", "))));
            let series: HashSet<SeriesKey<'_>> = series.iter().map(key_of).collect();
            picked.retain(|(key, _)| series.contains(key));
        }
        let mut numbers: Vec<i64> = picked.into_iter().map(|(_, number)| number).collect();
        numbers.sort_unstable();
        unknown.map_or(Ok(Some(numbers)), Err)
    }
}

/// Lists up to five existing ids.
fn unlisted(name: &str, id: &str, has: &HashSet<&str>) -> String {
    let mut known: Vec<&str> = has.iter().copied().collect();
    known.sort_unstable();
    let more = if known.len() > 5 { ", …" } else { "" };
    let known: Vec<String> = known.iter().take(5).map(|one| format!("{one:?}")).collect();
    format!("{name} {id:?}, only {}{more}", known.join(", "))
}

/// Follows the name of a feed: `, tag "speed"`.
impl fmt::Display for SeriesFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, list) in NAMES.into_iter().zip(&self.ids) {
            let Some(list) = list else { continue };
            match list.as_slice() {
                [one] => write!(f, ", {name} {one:?}")?,
                _ => write!(f, ", {} {name}s", list.len())?,
            }
        }
        self.series.as_ref().map_or(Ok(()), |all| write!(f, ", {} of the series", all.len()))
    }
}

type SeriesKey<'s> = [Option<&'s str>; 5];

fn key_of<T: std::ops::Deref<Target = str>>(ids: &[Option<T>; 5]) -> SeriesKey<'_> {
    ids.each_ref().map(Option::as_deref)
}
