//! The series of a chain's earlier pages, with the text of their envelopes. The next page usually
//! has the same series in the same order. An envelope is recognised by comparing the bytes before
//! and after its points, without reading its ids.

use std::collections::HashMap;

use super::identities::IdentityTexts;
use crate::data::point_columns::Identity;

/// With more series, all are dropped before the next page, so that series that never repeat do not
/// fill the memory.
const MOST_SERIES: usize = 1 << 16;
/// The same limit for the bytes of ids and envelopes, because an id may be as long as a page.
const MOST_BYTES: usize = 32 << 20;
/// Longer texts of an envelope are not stored.
const LONGEST_TEXT: usize = 1_024;
/// Maximum number of stored lists of unknown members.
const MOST_LISTS: usize = 64;
/// After this many replaced texts without a repeated one, no more are stored, because each envelope
/// has its own text.
const MOST_REPLACED: u32 = 256;

/// The keys in [`IdentityTexts`]; `None` for null.
pub(super) type Keys = [Option<usize>; 5];

/// Series by number, in order of arrival.
#[derive(Default)]
pub(super) struct KnownSeries {
    pub(super) ids: [IdentityTexts; 5],
    numbers: HashMap<Keys, usize>,
    series: Vec<SeriesEntry>,
    unknown: Vec<Vec<String>>,
    last: usize,
    /// The bytes of ids and envelope texts.
    bytes: usize,
    /// Number of replaced texts since the last one that was repeated.
    replaced: u32,
}

struct SeriesEntry {
    identity: Identity,
    /// The series that followed it last time.
    next: usize,
    text: Option<EnvelopeText>,
}

/// The text of an envelope around its points. Equal texts have equal ids, on any page.
struct EnvelopeText {
    /// The bytes from the brace to the opening bracket of the points, both included. White space
    /// before the bracket is significant.
    head: Box<[u8]>,
    /// The bytes after the closing bracket of the points, up to the last brace.
    tail: Box<[u8]>,
    /// The index of its list of unknown members.
    unknown: usize,
}

impl KnownSeries {
    /// Called before each page. Keeps the numbers of series.
    pub(super) fn begin_page(&mut self) {
        if self.series.len() > MOST_SERIES || self.bytes > MOST_BYTES {
            *self = Self::default();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.series.len()
    }

    /// The series of the envelope at the start of `bytes`, if it is one of the two expected ones,
    /// and the offset of its points' bracket.
    #[inline]
    pub(super) fn expected(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let follower = self.series.get(self.last)?.next;
        // If a series is missing on some pages, the next one in order of arrival follows.
        [follower, self.last + 1].into_iter().find_map(|number| {
            let text = self.series.get(number)?.text.as_ref()?;
            // The head ends with the bracket.
            bytes.starts_with(&text.head).then_some((number, text.head.len() - 1))
        })
    }

    /// The length of the text after the points of this series' envelope, if `bytes` starts with it.
    #[inline]
    pub(super) fn tail(&mut self, number: usize, bytes: &[u8]) -> Option<usize> {
        let text = self.series[number].text.as_ref()?;
        let length = bytes.starts_with(&text.tail).then_some(text.tail.len())?;
        self.replaced = 0;
        Some(length)
    }

    /// The index of this envelope's list of unknown members, and the list.
    #[inline]
    pub(super) fn unknown(&self, number: usize) -> Option<(usize, &[String])> {
        let index = self.series[number].text.as_ref()?.unknown;
        Some((index, &self.unknown[index]))
    }

    /// Returns the number of the series with these keys, and adds new ones.
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

    /// Continues with the series of the next envelope.
    #[inline]
    pub(super) fn follow(&mut self, number: usize) {
        self.series[self.last].next = number;
        self.last = number;
    }

    pub(super) fn identity(&self, number: usize) -> &Identity {
        &self.series[number].identity
    }

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
