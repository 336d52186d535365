//! The series that a chain's earlier pages had, with the text of their envelopes. The next page mostly
//! has the same series in the same order: an envelope is recognised by comparing its bytes before and
//! after the points, without reading its ids.

use std::collections::HashMap;

use super::identities::IdentityTexts;
use crate::data::point_columns::Identity;

/// More series are forgotten before the next page: a service that never repeats one fills no memory.
const MOST_SERIES: usize = 1 << 16;
/// The same for more bytes of ids and of envelopes: an id may be as long as a page.
const MOST_BYTES: usize = 32 << 20;
/// Longer texts of an envelope are not stored.
const LONGEST_TEXT: usize = 1_024;
/// At most so many lists of unknown members are stored.
const MOST_LISTS: usize = 64;
/// After so many texts that took the place of others without one that occurred again, no more are stored:
/// each envelope has a text of its own.
const MOST_REPLACED: u32 = 256;

/// The keys of a series' five ids in [`IdentityTexts`]; `None` for null.
pub(super) type Keys = [Option<i32>; 5];

/// Series by number, in order of arrival.
#[derive(Default)]
pub(super) struct KnownSeries {
    /// The texts of the five ids.
    pub(super) ids: [IdentityTexts; 5],
    numbers: HashMap<Keys, usize>,
    series: Vec<SeriesEntry>,
    /// The lists of unknown members of envelopes, each once.
    unknown: Vec<Vec<String>>,
    /// The number of the series of the last envelope.
    last: usize,
    /// The bytes of the ids and of the texts of envelopes.
    bytes: usize,
    /// Texts that took the place of another since the last one that occurred again.
    replaced: u32,
}

/// One series.
struct SeriesEntry {
    identity: Identity,
    /// The series that followed it the last time.
    next: usize,
    text: Option<EnvelopeText>,
}

/// The text of an envelope around its points. The same text has the same ids, whatever page it is on.
struct EnvelopeText {
    /// From its brace to the bracket of the points, both included: white space before the bracket counts.
    head: Box<[u8]>,
    /// From after that bracket's other half to its last brace.
    tail: Box<[u8]>,
    /// The index of the list of its unknown members.
    unknown: usize,
}

impl KnownSeries {
    /// Before a page. The numbers of series stay.
    pub(super) fn begin_page(&mut self) {
        if self.series.len() > MOST_SERIES || self.bytes > MOST_BYTES {
            *self = Self::default();
        }
    }

    /// The number of series.
    pub(super) fn len(&self) -> usize {
        self.series.len()
    }

    /// The series whose envelope begins these bytes, if it is one of the two expected, and the offset of
    /// the bracket of its points.
    #[inline]
    pub(super) fn expected(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let follower = self.series.get(self.last)?.next;
        // Where a series is missing on some pages, the one after it in order of arrival follows.
        [follower, self.last + 1].into_iter().find_map(|number| {
            let text = self.series.get(number)?.text.as_ref()?;
            // The head ends with the bracket.
            bytes.starts_with(&text.head).then_some((number, text.head.len() - 1))
        })
    }

    /// The length of what follows the points in an envelope of this series, if these bytes begin with it.
    #[inline]
    pub(super) fn tail(&mut self, number: usize, bytes: &[u8]) -> Option<usize> {
        let text = self.series[number].text.as_ref()?;
        let length = bytes.starts_with(&text.tail).then_some(text.tail.len())?;
        self.replaced = 0;
        Some(length)
    }

    /// The index of the list of unknown members of this series' envelope, and the list.
    #[inline]
    pub(super) fn unknown(&self, number: usize) -> Option<(usize, &[String])> {
        let index = self.series[number].text.as_ref()?.unknown;
        Some((index, &self.unknown[index]))
    }

    /// The number of the series with these keys, which is added if it is new. The order of series mostly
    /// repeats, so the one that followed the last time is compared first.
    pub(super) fn number(&mut self, keys: Keys) -> usize {
        let new = self.series.len();
        let number = *self.numbers.entry(keys).or_insert(new);
        if number == new {
            let text = |column: usize| keys[column].map(|key| self.ids[column].text(key).clone());
            let identity = Identity::from(std::array::from_fn(text));
            self.bytes += identity.0.iter().flatten().map(|id| id.len()).sum::<usize>();
            self.series.push(SeriesEntry { identity, next: new + 1, text: None });
        }
        number
    }

    /// Goes on to the series of the next envelope.
    #[inline]
    pub(super) fn follow(&mut self, number: usize) {
        self.series[self.last].next = number;
        self.last = number;
    }

    /// The ids of a series.
    pub(super) fn identity(&self, number: usize) -> &Identity {
        &self.series[number].identity
    }

    /// Stores the text of an envelope of this series.
    pub(super) fn learn(&mut self, number: usize, head: &[u8], tail: &[u8], unknown: &[String]) {
        if head.len() + tail.len() > LONGEST_TEXT || self.replaced > MOST_REPLACED {
            return;
        }
        let known = self.unknown.iter().position(|list| list == unknown);
        let index = known.unwrap_or(self.unknown.len());
        if index == MOST_LISTS {
            return;
        }
        if known.is_none() {
            self.unknown.push(unknown.to_vec());
        }
        self.bytes += head.len() + tail.len();
        let text = EnvelopeText { head: head.into(), tail: tail.into(), unknown: index };
        let before = self.series[number].text.replace(text);
        self.replaced += u32::from(before.is_some());
    }
}
