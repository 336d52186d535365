//! Member names of one level of a page, and the bytes before them. Objects of one kind usually have
//! the same members in the same order with the same white space. The bytes between two values
//! (commas, brackets, the next name and colon) are stored as a transition from one member to the
//! next. They are compared at once when that member occurs again. Only new bytes are parsed.

use super::json::Parser;
use super::separator::Separator;
use crate::error::Result;

/// Maximum number of stored unknown names. With more, transitions would rarely repeat.
const MOST_UNKNOWN: usize = 1_024;

/// Maximum number of older transitions of a member.
const MOST_OLDER: usize = 7;

/// The index of the transitions from the start of the level.
const AT_START: usize = 0;
/// The index for members that are not stored. They have no transitions.
const AT_UNLEARNT: usize = 1;
/// The index of the transitions from the first name. Transitions from other names follow.
const AT_FIRST_NAME: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    /// The index of its name in [`MemberNames::new`].
    Known(u8),
    Unknown,
}

impl Member {
    /// A bit for each known name, 0 for an unknown one, to detect duplicates.
    #[inline]
    pub(super) fn bit(self) -> u64 {
        if let Self::Known(index) = self { 1 << index } else { 0 }
    }
}

pub(super) struct MemberNames {
    /// The known names, then the unknown ones in order of arrival.
    names: Vec<String>,
    known: u8,
    /// The last transition from each index.
    last: Vec<Option<Transition>>,
    /// Older transitions, for levels with optional members.
    older: Vec<Vec<Transition>>,
    /// The index of the next transition's start in the two lists above.
    from: usize,
}

/// The bytes between two values, and the member after them.
struct Transition {
    separator: Separator,
    name: usize,
    member: Member,
    bit: u64,
    /// Whether it is the first member of another object.
    opens: bool,
}

impl Transition {
    #[inline]
    fn step(&self, end: usize) -> FoundMember {
        FoundMember { member: self.member, bit: self.bit, opens: self.opens, end }
    }
}

/// A transition that was found in the body.
pub(super) struct FoundMember {
    pub(super) member: Member,
    pub(super) bit: u64,
    /// Whether it is the first member of another object.
    pub(super) opens: bool,
    /// The offset of its value.
    pub(super) end: usize,
}

impl MemberNames {
    /// The names are in index order.
    pub(super) fn new<'n>(known: impl IntoIterator<Item = &'n str>) -> Self {
        let names: Vec<String> = known.into_iter().map(ToOwned::to_owned).collect();
        let last = (0..AT_FIRST_NAME + names.len()).map(|_| None).collect();
        let older = (0..AT_FIRST_NAME + names.len()).map(|_| Vec::new()).collect();
        // At most five, the points and fifty extra columns.
        let known = u8::try_from(names.len()).unwrap_or(u8::MAX);
        Self { names, known, last, older, from: AT_START }
    }

    /// Returns to the start of the level.
    #[inline]
    pub(super) fn restart(&mut self) {
        self.from = AT_START;
    }

    /// Steps from the value that ends at `at` to the next one, if a stored transition matches.
    #[expect(clippy::inline_always, reason = "measured: once for each value")]
    #[inline(always)]
    pub(super) fn follow(&mut self, bytes: &[u8], at: usize) -> Option<FoundMember> {
        let last = self.last[self.from].as_ref()?;
        let Some(end) = last.separator.match_at(bytes, at) else {
            return self.follow_older(bytes, at);
        };
        self.from = last.name + AT_FIRST_NAME;
        Some(last.step(end))
    }

    /// Like [`MemberNames::follow`], with an older transition, which becomes the last one.
    #[inline(never)]
    fn follow_older(&mut self, bytes: &[u8], at: usize) -> Option<FoundMember> {
        let mut older = self.older[self.from].iter_mut();
        let (found, end) = older.find_map(|older| {
            let end = older.separator.match_at(bytes, at)?;
            Some((older, end))
        })?;
        let last = self.last[self.from].as_mut()?;
        std::mem::swap(found, last);
        self.from = last.name + AT_FIRST_NAME;
        Some(last.step(end))
    }

    fn learn(&mut self, transition: Transition) {
        let replaced = self.last[self.from].replace(transition);
        let older = &mut self.older[self.from];
        if older.len() == MOST_OLDER {
            older.remove(0);
        }
        older.extend(replaced);
    }

    /// The name of the last step's member; `None` if it is not stored.
    pub(super) fn current(&self) -> Option<&str> {
        self.names.get(self.from.checked_sub(AT_FIRST_NAME)?).map(String::as_str)
    }

    /// Steps to the value of the next member. At the object's end, leaves it and returns `None`.
    /// Calls `note_unknown` with each unknown name that is not stored yet.
    #[inline]
    pub(super) fn next(
        &mut self,
        json: &mut Parser<'_>,
        first: &mut bool,
        note_unknown: impl FnOnce(&str),
    ) -> Result<Option<Member>> {
        if let Some(step) = self.follow(json.bytes(), json.offset()) {
            json.seek(step.end);
            *first = false;
            return Ok(Some(step.member));
        }
        let from = json.offset();
        if json.next_member(first)? {
            self.read(json, from, false, note_unknown).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Reads a member's name and colon. Stores the bytes between `from`, the end of the previous
    /// value, and its own value.
    pub(super) fn read(
        &mut self,
        json: &mut Parser<'_>,
        from: usize,
        opens: bool,
        note_unknown: impl FnOnce(&str),
    ) -> Result<Member> {
        let text = json.name()?;
        let Some(name) = self.index(&text, note_unknown) else {
            self.from = AT_UNLEARNT;
            return Ok(Member::Unknown);
        };
        let known = u8::try_from(name).ok().filter(|index| *index < self.known);
        let member = known.map_or(Member::Unknown, Member::Known);
        if self.from != AT_UNLEARNT
            && let Some(separator) = Separator::new(&json.bytes()[from..json.value_offset()])
        {
            self.learn(Transition { separator, name, member, bit: member.bit(), opens });
        }
        self.from = name + AT_FIRST_NAME;
        Ok(member)
    }

    /// The index of a name, which is stored if it is new. `None` if there are too many.
    fn index(&mut self, text: &str, note_unknown: impl FnOnce(&str)) -> Option<usize> {
        let index = self.names.iter().rposition(|name| name == text);
        if index.is_some() {
            return index;
        }
        note_unknown(text);
        let index = self.names.len();
        if index >= usize::from(self.known) + MOST_UNKNOWN {
            return None;
        }
        self.names.push(text.to_owned());
        self.last.push(None);
        self.older.push(Vec::new());
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(names: &mut MemberNames, body: &str) -> (Vec<Member>, Vec<String>) {
        let mut json = Parser::open(body.as_bytes()).unwrap();
        json.peek().unwrap();
        json.enter().unwrap();
        names.restart();
        let (mut first, mut members, mut unknown) = (true, Vec::new(), Vec::new());
        let mut note = |name: &str| unknown.push(name.to_owned());
        while let Some(member) = names.next(&mut json, &mut first, &mut note).unwrap() {
            members.push(member);
            json.skip_value().unwrap();
        }
        (members, unknown)
    }

    #[test]
    fn j18_unknown_names_are_reported_and_few_stored() {
        let mut names = MemberNames::new(["a"]);
        let body: Vec<String> = (0..2_000).map(|n| format!("\"n{n}\":0")).collect();
        let (members, unknown) = read_all(&mut names, &format!("{{{}}}", body.join(",")));
        assert!(members.iter().all(|member| *member == Member::Unknown));
        assert_eq!(unknown.len(), 2_000);
        assert_eq!(names.names.len(), 1 + MOST_UNKNOWN);
    }
}
