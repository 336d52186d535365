//! Member names of one level of a page. Objects of one kind mostly have their members in one
//! order and one spacing, whatever they are, so each value foretells what stands before the next:
//! that is compared in place, first with what came last and then with what came before that. What
//! is found to be new costs a look-up and is learnt.

use super::json::Parser;
use super::separator::Separator;
use crate::error::Result;

/// Names beyond this many are not learnt: a page with so many different ones has no order.
const LEARNT: usize = 64;

/// So many ways from one value to the next are kept besides the last.
const MOST_WAYS: usize = 7;

/// Where nothing was read yet.
const START: usize = 0;
/// After a name that is not learnt.
const NOWHERE: usize = 1;
/// After the name with the index 0.
const FIRST: usize = 2;

/// A member name's place: known names keep the place they were given, unknown ones follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The place of a known name.
    Known(u8),
    /// A name that nobody asked for.
    Unknown,
}

impl Place {
    /// The bit of a known name, by which its second coming is noticed.
    #[inline]
    pub(super) fn bit(self) -> u64 {
        if let Self::Known(place) = self { 1 << place } else { 0 }
    }
}

/// The names of a level, and what follows the value of each.
pub(super) struct Names {
    list: Vec<String>,
    known: u8,
    /// What followed last: at the start, after a name that is not learnt, after each name.
    after: Vec<Option<Next>>,
    /// What followed before that, for each of them: members may be missing now and then.
    before: Vec<Vec<Next>>,
    previous: usize,
}

/// The way from one value to the next.
struct Next {
    separator: Separator,
    index: usize,
    place: Place,
    bit: u64,
    /// The next value is the first one of a further object.
    opens: bool,
}

impl Next {
    #[inline]
    fn step(&self, end: usize) -> Step {
        Step { place: self.place, bit: self.bit, opens: self.opens, end }
    }
}

/// A step from one value to the next, foretold and found.
pub(super) struct Step {
    /// The member whose value comes.
    pub(super) place: Place,
    /// Its bit.
    pub(super) bit: u64,
    /// It is the first one of a further object.
    pub(super) opens: bool,
    /// Where its value begins.
    pub(super) end: usize,
}

impl Names {
    /// Names in their order.
    pub(super) fn new<'n>(known: impl IntoIterator<Item = &'n str>) -> Self {
        let list: Vec<String> = known.into_iter().map(ToOwned::to_owned).collect();
        let after = (0..FIRST + list.len()).map(|_| None).collect();
        // Five, the points and fifty extra columns at most.
        let known = u8::try_from(list.len()).unwrap_or(u8::MAX);
        let before = (0..FIRST + list.len()).map(|_| Vec::new()).collect();
        Self { list, known, after, before, previous: START }
    }

    /// Forgets what came last.
    #[inline]
    pub(super) fn restart(&mut self) {
        self.previous = START;
    }

    /// The step from the value that ends at `at` to the next one, if it is the one that was learnt.
    #[expect(clippy::inline_always, reason = "measured: once for each value")]
    #[inline(always)]
    pub(super) fn follow(&mut self, bytes: &[u8], at: usize) -> Option<Step> {
        let next = self.after[self.previous].as_ref()?;
        let Some(end) = next.separator.end(bytes, at) else { return self.recall(bytes, at) };
        self.previous = next.index + FIRST;
        Some(next.step(end))
    }

    /// As [`Names::follow`], by the ways that were found earlier.
    #[inline(never)]
    fn recall(&mut self, bytes: &[u8], at: usize) -> Option<Step> {
        let mut before = self.before[self.previous].iter_mut();
        let (found, end) =
            before.find_map(|next| next.separator.end(bytes, at).map(|end| (next, end)))?;
        let last = self.after[self.previous].as_mut()?;
        std::mem::swap(found, last);
        self.previous = last.index + FIRST;
        Some(last.step(end))
    }

    /// Keeps a way that was just found.
    fn learn(&mut self, next: Next) {
        let last = self.after[self.previous].replace(next);
        let before = &mut self.before[self.previous];
        if before.len() == MOST_WAYS {
            before.remove(0);
        }
        before.extend(last);
    }

    /// Steps to the value of the object's next member; `None` at the object's end, which is left
    /// then. An unknown name that was not seen lately is given to `unknown`.
    #[inline]
    pub(super) fn next(
        &mut self,
        json: &mut Parser<'_>,
        first: &mut bool,
        unknown: impl FnOnce(&str),
    ) -> Result<Option<Place>> {
        if let Some(step) = self.follow(json.bytes(), json.offset()) {
            json.seek(step.end);
            *first = false;
            return Ok(Some(step.place));
        }
        let from = json.offset();
        if json.next_member(first)? {
            self.read(json, from, false, unknown).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Reads a member's name and colon, and learns what stood between the offset `from`, where the
    /// value before it ended, and its own value.
    pub(super) fn read(
        &mut self,
        json: &mut Parser<'_>,
        from: usize,
        opens: bool,
        unknown: impl FnOnce(&str),
    ) -> Result<Place> {
        let name = json.name()?;
        let Some(index) = self.look_up(&name, unknown) else {
            self.previous = NOWHERE;
            return Ok(Place::Unknown);
        };
        let known = u8::try_from(index).ok().filter(|index| *index < self.known);
        let place = known.map_or(Place::Unknown, Place::Known);
        if self.previous != NOWHERE
            && let Some(separator) = Separator::new(&json.bytes()[from..json.value_offset()])
        {
            self.learn(Next { separator, index, place, bit: place.bit(), opens });
        }
        self.previous = index + FIRST;
        Ok(place)
    }

    fn look_up(&mut self, name: &str, unknown: impl FnOnce(&str)) -> Option<usize> {
        let found = self.list.iter().position(|known| known == name);
        if found.is_none() {
            unknown(name);
            if self.list.len() >= usize::from(self.known) + LEARNT {
                return None;
            }
            self.list.push(name.to_owned());
            self.after.push(None);
            self.before.push(Vec::new());
        }
        found.or(Some(self.list.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::Place::{Known, Unknown};
    use super::*;

    fn read_all(names: &mut Names, body: &str) -> (Vec<Place>, Vec<String>) {
        let mut json = Parser::open(body.as_bytes()).unwrap();
        json.peek().unwrap();
        json.enter().unwrap();
        names.restart();
        let (mut first, mut places, mut unknown) = (true, Vec::new(), Vec::new());
        let mut told = |name: &str| unknown.push(name.to_owned());
        while let Some(place) = names.next(&mut json, &mut first, &mut told).unwrap() {
            places.push(place);
            json.skip_value().unwrap();
        }
        (places, unknown)
    }

    #[test]
    fn names_are_known_in_any_order_and_spelling() {
        let mut names = Names::new(["a", "b", "\"q"]);
        for _ in 0..3 {
            let (places, _) = read_all(&mut names, r#"{"a":1,"b":2,"\"q":3}"#);
            assert_eq!(places, [Known(0), Known(1), Known(2)]);
            let (places, _) = read_all(&mut names, r#"{ "\u0062" : 2, "x":{}, "a" :1 }"#);
            assert_eq!(places, [Known(1), Unknown, Known(0)]);
            let (places, _) = read_all(&mut names, r#"{"aa":1,"":2,"\"q":1,"\\":1}"#);
            assert_eq!(places, [Unknown, Unknown, Known(2), Unknown]);
        }
    }

    #[test]
    fn j18_every_unknown_name_is_told_and_a_flood_is_not_learnt() {
        let mut names = Names::new(["a"]);
        let body: Vec<String> = (0..1_000).map(|n| format!("\"n{n}\":0")).collect();
        let (places, unknown) = read_all(&mut names, &format!("{{{}}}", body.join(",")));
        assert!(places.iter().all(|place| *place == Place::Unknown));
        assert_eq!(unknown.len(), 1_000);
        assert_eq!(names.list.len(), 1 + LEARNT);
    }
}
