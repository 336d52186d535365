//! Member names of one level of a page. Objects of one kind mostly have their members in one
//! order, whatever it is, so each name foretells the next and is compared in place; a wrong guess
//! costs a look-up and is learnt.

use super::json::Parser;
use super::string::{Written, is_plain};
use crate::error::Result;

/// Names beyond this many are not learnt: a page with so many different ones has no order.
const LEARNT: usize = 64;

/// A member name's place: known names keep the place they were given, unknown ones follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The place of a known name.
    Known(usize),
    /// A name that nobody asked for.
    Unknown,
}

/// The names of a level, and which follows which.
pub(super) struct Names {
    list: Vec<String>,
    /// The same names as they are compared with the body.
    written: Vec<Written>,
    known: usize,
    /// For each name, the one that followed it last; the first entry is for the object's start.
    /// `None` where nothing may be guessed.
    after: Vec<Option<usize>>,
    previous: usize,
}

impl Names {
    /// Names in their order; guesses start with that order.
    pub(super) fn new<'n>(known: impl IntoIterator<Item = &'n str>) -> Self {
        let list: Vec<String> = known.into_iter().map(ToOwned::to_owned).collect();
        let known = list.len();
        let guess = |index: usize| list.get(index).filter(|name| is_plain(name)).map(|_| index);
        let after = (0..=known).map(guess).collect();
        let written = list.iter().map(|name| Written::new(name)).collect();
        Self { list, written, known, after, previous: 0 }
    }

    /// Forgets what came last: a new object starts.
    #[inline]
    pub(super) fn restart(&mut self) {
        self.previous = 0;
    }

    /// Reads a member's name and colon. An unknown name that was not seen lately is given to
    /// `unknown`.
    #[inline]
    pub(super) fn read(
        &mut self,
        json: &mut Parser<'_>,
        unknown: impl FnOnce(&str),
    ) -> Result<Place> {
        if let Some(guess) = self.after[self.previous]
            && json.take_name(&self.written[guess])?
        {
            self.previous = guess + 1;
            return Ok(self.place(guess));
        }
        let name = json.name()?;
        Ok(self.look_up(&name, unknown))
    }

    #[inline]
    fn place(&self, index: usize) -> Place {
        if index < self.known { Place::Known(index) } else { Place::Unknown }
    }

    fn look_up(&mut self, name: &str, unknown: impl FnOnce(&str)) -> Place {
        let found = self.list.iter().position(|known| known == name);
        if found.is_none() {
            unknown(name);
            if self.list.len() >= self.known + LEARNT {
                return Place::Unknown;
            }
            self.written.push(Written::new(name));
            self.list.push(name.to_owned());
            self.after.push(None);
        }
        let index = found.unwrap_or(self.list.len() - 1);
        if is_plain(name) {
            self.after[self.previous] = Some(index);
        }
        self.previous = index + 1;
        self.place(index)
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
        while json.next_member(&mut first).unwrap() {
            places.push(names.read(&mut json, |name| unknown.push(name.to_owned())).unwrap());
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
