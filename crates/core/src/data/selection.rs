//! The series that a read keeps, whether or not the service filters.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::point_columns::Identity;
use crate::error::{Error, Kind, Result, escaped};

pub type Ids = [Option<String>; 5];
/// Ids of machines, devices and tags.
pub type Levels = [Vec<String>; 3];

const LEVELS: [&str; 3] = ["machine", "device", "tag"];
/// Each chain costs at least one page.
pub const MOST_CHAINS: usize = 10_000;
const FIRST: usize = 2;

/// Keeps the series that match every list, by id or name. An empty list matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Sorted ids or names.
    pub levels: Levels,
    /// Complete series, sorted.
    pub series: Vec<Ids>,
    /// The query parameters of the levels, if the user set them.
    pub parameters: [Option<String>; 3],
}

/// The series that discovery lists under the names of a selection. It may list fewer ids than pages
/// contain.
#[derive(Debug, Default)]
pub struct NamedSeries(HashMap<Option<String>, Vec<Ids>>);

impl NamedSeries {
    #[must_use]
    pub fn new(series: Vec<Ids>) -> Self {
        let mut of_tag: HashMap<_, Vec<Ids>> = HashMap::new();
        for ids in series {
            of_tag.entry(ids[4].clone()).or_default().push(ids);
        }
        Self(of_tag)
    }

    fn has(&self, ids: &Identity) -> bool {
        let tag = ids.0[4].as_deref().map(ToOwned::to_owned);
        let is_listed = |listed: &Ids| {
            let mut both = listed.iter().zip(ids.0.iter());
            both.all(|(listed, id)| listed.is_none() || listed.as_deref() == id.as_deref())
        };
        self.0.get(&tag).is_some_and(|series| series.iter().any(is_listed))
    }
}

impl Selection {
    pub fn is_empty(&self) -> bool {
        self.series.is_empty() && self.levels.iter().all(Vec::is_empty)
    }

    /// Whether the requests filter by a level.
    pub fn is_sent(&self) -> bool {
        let is_sent = |level: usize| {
            self.parameters[level].is_some()
                && !(self.series.is_empty() && self.levels[level].is_empty())
        };
        (0..LEVELS.len()).any(is_sent)
    }

    pub fn keeps(&self, identity: &Identity, named: Option<&NamedSeries>) -> bool {
        let ids = &identity.0;
        let has = |(level, list): (usize, &Vec<String>)| {
            list.is_empty()
                || ids[FIRST + level].as_deref().is_some_and(|id| list.iter().any(|one| one == id))
        };
        let is =
            |one: &Ids| one.iter().zip(ids.iter()).all(|(one, id)| one.as_deref() == id.as_deref());
        self.levels.iter().enumerate().all(has)
            && (self.series.is_empty() || self.series.iter().any(is))
            || named.is_some_and(|named| named.has(identity))
    }

    /// `levels` are the ids of the selected levels.
    pub(super) fn chains(&self, site: &[String], line: &[String], levels: &Levels) -> Vec<Ids> {
        let mut lists: [&[String]; 5] = [site, line, &[], &[], &[]];
        for level in 0..LEVELS.len() {
            if self.parameters[level].is_some() {
                lists[FIRST + level] = &levels[level];
            }
        }
        let mut chains: Vec<Ids> = self.places();
        for (column, list) in lists.into_iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            let combined = chains.iter().flat_map(|chain| {
                let is_possible =
                    |id: &&String| chain[column].as_ref().is_none_or(|own| own == *id);
                list.iter().filter(is_possible).map(|id| {
                    let mut chain = chain.clone();
                    chain[column] = Some(id.clone());
                    chain
                })
            });
            chains = combined.take(MOST_CHAINS + 1).collect();
        }
        let mut known = HashSet::new();
        chains.retain(|chain| known.insert(chain.clone()));
        chains
    }

    /// For complete series. If no level is sent, a site or line is sent only if all series share
    /// it: more chains could cost more pages than they save.
    fn places(&self) -> Vec<Ids> {
        let is_sent = self.is_sent();
        let place = |ids: &Ids, columns: &[usize]| -> Ids {
            let sent = |column| if columns.contains(&column) { ids[column].clone() } else { None };
            std::array::from_fn(sent)
        };
        let mut columns = Vec::new();
        for column in 0..FIRST {
            let values: HashSet<_> = self.series.iter().map(|ids| &ids[column]).collect();
            if is_sent || values.len() == 1 {
                columns.push(column);
            }
        }
        let levels = (0..LEVELS.len()).filter(|level| self.parameters[*level].is_some());
        columns.extend(levels.map(|level| FIRST + level));
        let mut known = HashSet::new();
        let places = self.series.iter().map(|ids| place(ids, &columns));
        let places: Vec<_> = places.filter(|place| known.insert(place.clone())).collect();
        if places.is_empty() { vec![Ids::default()] } else { places }
    }

    pub(super) fn filters(&self, chain: &Ids) -> impl Iterator<Item = (String, Vec<String>)> {
        let levels = self.parameters.iter().zip(&chain[FIRST..]);
        levels.filter_map(|(name, id)| Some((name.clone()?, vec![id.clone()?])))
    }

    /// The order of ids has no meaning.
    pub(super) fn check(&mut self, filters: &[(String, Vec<String>)]) -> Result<()> {
        for (level, name) in LEVELS.into_iter().enumerate() {
            let ids = &mut self.levels[level];
            if ids.iter().any(String::is_empty) {
                return Err(Error::new(Kind::QueryError, format!("{name}= contains an empty id."))
                    .with_hint("Leave it out to read all."));
            }
            ids.sort_unstable();
            ids.dedup();
            let is_sent = !(self.series.is_empty() && ids.is_empty());
            let parameter = self.parameters[level].as_ref().filter(|_| is_sent);
            if let Some(parameter) =
                parameter.filter(|own| filters.iter().any(|(one, _)| one == *own))
            {
                let message = format!(
                    "filters= contains {parameter:?}, which {name}= or series= also sends."
                );
                return Err(Error::new(Kind::QueryError, message).with_hint(format!(
                    "filter_names maps {name} to that parameter. Use only {name}=."
                )));
            }
        }
        self.series.sort_unstable();
        self.series.dedup();
        Ok(())
    }

    /// A text for fingerprints.
    pub(super) fn identity(&self) -> String {
        format!("{:?} {:?}", self.levels, self.series)
    }

    pub(super) fn display_parts(&self) -> impl Iterator<Item = String> {
        let ids = LEVELS.iter().zip(&self.levels);
        let ids =
            ids.flat_map(|(name, ids)| ids.iter().map(move |id| format!("{name}={}", escaped(id))));
        ids.chain((!self.series.is_empty()).then(|| format!("series={}", self.series.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ids: &[&str]) -> Vec<String> {
        ids.iter().map(ToString::to_string).collect()
    }

    fn ids(ids: [&str; 5]) -> Ids {
        ids.map(|id| (id != "-").then(|| id.to_owned()))
    }

    fn series(all: [&str; 5]) -> Identity {
        Identity::from(ids(all).map(|id| id.as_deref().map(Into::into)))
    }

    #[test]
    fn a_series_is_kept_if_each_list_has_its_id() {
        let levels = [list(&["M2", "M1", "M2"]), vec![], list(&["t"])];
        let mut both = Selection { levels, ..Selection::default() };
        both.check(&[]).unwrap();
        assert_eq!(both.levels[0], ["M1", "M2"]);
        let kept = |machine, tag| both.keeps(&series(["S", "L", machine, "D", tag]), None);
        assert_eq!(
            [kept("M1", "t"), kept("M3", "t"), kept("M1", "u"), kept("-", "t")],
            [true, false, false, false]
        );
        assert_eq!(both.display_parts().collect::<Vec<_>>(), ["machine=M1", "machine=M2", "tag=t"]);
        let whole = ids(["S", "L", "M1", "D", "t"]);
        let whole = Selection { series: vec![whole], ..Selection::default() };
        assert!(whole.keeps(&series(["S", "L", "M1", "D", "t"]), None));
        assert!(!whole.keeps(&series(["S", "L", "-", "D", "t"]), None));
        assert!(Selection::default().keeps(&series(["S", "L", "-", "D", "t"]), None));
        let mut empty = Selection { levels: [vec![], list(&[""]), vec![]], ..Selection::default() };
        assert_eq!(empty.check(&[]).unwrap_err().kind(), Kind::QueryError);
    }

    #[test]
    fn a_listed_name_keeps_its_series_only() {
        let levels = [list(&["Press"]), vec![], vec![]];
        let press = Selection { levels, ..Selection::default() };
        let named = NamedSeries::new(vec![
            ids(["S", "L1", "M1", "D", "t"]),
            ids(["-", "-", "-", "-", "u"]),
        ]);
        let kept = |all| press.keeps(&series(all), Some(&named));
        assert!(kept(["S", "L1", "M1", "D", "t"]) && !kept(["S", "L2", "M1", "D", "t"]));
        assert!(kept(["S", "L2", "M2", "D", "u"]) && kept(["S", "L2", "Press", "D", "v"]));
    }

    #[test]
    fn each_sent_value_needs_a_chain() {
        let chains = |selection: &Selection, site: &[&str], line: &[&str]| -> Vec<String> {
            let chains = selection.chains(&list(site), &list(line), &selection.levels);
            let shown = |chain: Ids| chain.map(|id| id.unwrap_or("-".to_owned())).join(" ");
            chains.into_iter().map(shown).collect()
        };
        let levels = [list(&["M1", "M2"]), vec![], list(&["t"])];
        let mut one = Selection { levels, ..Selection::default() };
        assert_eq!(chains(&one, &["S"], &[]), ["S - - - -"]);
        one.parameters[0] = Some("machineId".to_owned());
        assert_eq!(
            chains(&one, &[], &["L", "K"]),
            ["- L M1 - -", "- L M2 - -", "- K M1 - -", "- K M2 - -"]
        );

        let all =
            [["S", "L1", "M1", "D", "t"], ["S", "L2", "M2", "D", "t"], ["S", "L2", "M2", "D", "u"]];
        let mut whole = Selection { series: all.map(ids).to_vec(), ..Selection::default() };
        assert_eq!(chains(&whole, &[], &[]), ["S - - - -"]);
        assert_eq!(chains(&whole, &["S"], &["L2"]), ["S L2 - - -"]);
        assert_eq!(chains(&whole, &["S2"], &[]), [""; 0]);
        whole.parameters[0] = Some("machineId".to_owned());
        assert_eq!(chains(&whole, &[], &[]), ["S L1 M1 - -", "S L2 M2 - -"]);
        assert_eq!(chains(&whole, &[], &["L2"]), ["S L2 M2 - -"]);
        let refused = whole.check(&[("machineId".to_owned(), vec![])]).unwrap_err();
        assert_eq!(refused.kind(), Kind::QueryError);
    }
}
