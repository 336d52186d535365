//! [`Selection`]: which series a read keeps of the pages that arrive, whether or not the service filters.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::point_columns::Identity;
use crate::error::{Error, Kind, Result, escaped};

/// The series that a read keeps: those that have one of the ids in each list that is not empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Ids of machines.
    pub machine: Vec<String>,
    /// Ids of devices.
    pub device: Vec<String>,
    /// Ids of tags.
    pub tag: Vec<String>,
    /// Whole series.
    pub series: Vec<[Option<String>; 5]>,
}

impl Selection {
    /// Whether all series are kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.is_empty() && self.lists().iter().all(|(_, _, ids)| ids.is_empty())
    }

    /// Whether this series is kept.
    #[must_use]
    pub fn keeps(&self, Identity(ids): &Identity) -> bool {
        let has = |column: usize, list: &[String]| {
            list.is_empty()
                || ids[column].as_deref().is_some_and(|id| list.iter().any(|one| one == id))
        };
        let is = |one: &[Option<String>; 5]| {
            one.iter().zip(ids.iter()).all(|(one, id)| one.as_deref() == id.as_deref())
        };
        self.lists().into_iter().all(|(_, column, list)| has(column, list))
            && (self.series.is_empty() || self.series.iter().any(is))
    }

    /// Removes ids that are given twice, and sorts them: the order has no meaning.
    ///
    /// # Errors
    /// `QueryError` for an empty id.
    pub(super) fn check(&mut self) -> Result<()> {
        for (name, _, ids) in self.lists() {
            if ids.iter().any(String::is_empty) {
                return Err(Error::new(Kind::QueryError, format!("{name} is empty"))
                    .with_hint("Omit it to keep all."));
            }
        }
        for ids in [&mut self.machine, &mut self.device, &mut self.tag] {
            *ids = ids.drain(..).collect::<HashSet<_>>().into_iter().collect();
            ids.sort_unstable();
        }
        self.series = self.series.drain(..).collect::<HashSet<_>>().into_iter().collect();
        self.series.sort_unstable();
        Ok(())
    }

    /// As a query shows it.
    pub(super) fn shown(&self) -> impl Iterator<Item = String> {
        let ids = self
            .lists()
            .into_iter()
            .flat_map(|(name, _, ids)| ids.iter().map(move |id| format!("{name}={}", escaped(id))));
        let series = (!self.series.is_empty()).then(|| format!("series={}", self.series.len()));
        ids.chain(series)
    }

    fn lists(&self) -> [(&'static str, usize, &[String]); 3] {
        [("machine", 2, &self.machine), ("device", 3, &self.device), ("tag", 4, &self.tag)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(ToString::to_string).collect()
    }

    fn series(machine: Option<&str>, tag: &str) -> Identity {
        let text = |id: &str| Some(id.into());
        Identity::from([text("S"), text("L"), machine.map(Into::into), text("D"), text(tag)])
    }

    #[test]
    fn a_series_is_kept_if_each_list_has_its_id() {
        let mut both = Selection {
            machine: ids(&["M2", "M1", "M2"]),
            tag: ids(&["t"]),
            ..Selection::default()
        };
        both.check().unwrap();
        assert_eq!(both.machine, ["M1", "M2"]);
        let kept = |machine, tag| both.keeps(&series(machine, tag));
        assert_eq!(
            [kept(Some("M1"), "t"), kept(Some("M3"), "t"), kept(Some("M1"), "u"), kept(None, "t")],
            [true, false, false, false]
        );
        let whole = ["S", "L", "M1", "D", "t"].map(|id| Some(id.to_owned()));
        let whole = Selection { series: vec![whole], ..Selection::default() };
        assert!(whole.keeps(&series(Some("M1"), "t")) && !whole.keeps(&series(None, "t")));
        assert!(Selection::default().keeps(&series(None, "t")));
        assert_eq!(both.shown().collect::<Vec<_>>(), ["machine=M1", "machine=M2", "tag=t"]);
        let mut empty = Selection { device: ids(&[""]), ..Selection::default() };
        assert_eq!(empty.check().unwrap_err().kind(), Kind::QueryError);
    }
}
