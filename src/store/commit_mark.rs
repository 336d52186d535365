//! The mark of a commit: a random number, and the number of the commit before it. Each commit of
//! siteline writes it into the second row of the table `store`, on the page that it changes anyway.
//! With the marks a file is matched to its log: a log belongs to a file whose last commit is in it, or
//! is the one that its first commit follows.
//!
//! The pages are read here without `SQLite`, which would apply a log before anything else.

use super::bytes::Checksum;
use super::schema::root_check;

/// The pages that may have the table `store`: it is the first one that was made. Page 1 has the header.
pub(super) const PLACES: std::ops::RangeInclusive<u32> = 2..=4;
/// The number of the commit before the first one.
pub(super) const NOTHING: i64 = 0;

/// The mark of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommitMark {
    pub(super) id: i64,
    /// The commit before it; `None` if it was written by a siteline that wrote no marks.
    pub(super) parent: Option<i64>,
}

impl CommitMark {
    /// The mark of a commit that follows another.
    pub(super) fn after(parent: i64) -> Self {
        let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
        Self { id: (high ^ low).cast_signed(), parent: Some(parent) }
    }

    /// The checksum of the row.
    pub(super) fn check(id: i64, parent: i64) -> i64 {
        Checksum::new("commit").numbers(&[id, parent]).value()
    }

    /// The mark on a page of the table `store`; `None` for every other page, and a damaged one.
    pub(super) fn on_page(page: &[u8]) -> Option<Self> {
        let (mut first, mut second) = (None, None);
        for cell in 0..usize::from(u16_at(page, 3)?).min(8) {
            let start = usize::from(u16_at(page, 8 + 2 * cell)?);
            match read_row(page.get(start..)?)? {
                (1, [_, version, made_by, layout, digest, check]) => {
                    let numbers = [version.number()?, layout.number()?, digest.number()?];
                    let Column::Text(made_by) = made_by else { return None };
                    let sum = root_check(numbers[0], made_by, numbers[1], numbers[2]);
                    first = (check.number()? == sum).then_some(sum);
                }
                (2, [_, _, _, parent, id, check]) => {
                    let (parent, id) = (parent.number()?, id.number()?);
                    let is_whole = check.number()? == Self::check(id, parent);
                    second = is_whole.then_some(Self { id, parent: Some(parent) });
                }
                _ => return None,
            }
        }
        // An older siteline wrote no second row.
        first.map(|check| second.unwrap_or(Self { id: check, parent: None }))
    }
}

/// A value of a row of the table `store`.
#[derive(Debug, Clone, Copy)]
enum Column<'a> {
    Null,
    Number(i64),
    Text(&'a [u8]),
}

impl Column<'_> {
    fn number(self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }
}

/// The number of a row and its six columns, from a cell of a leaf page.
fn read_row(cell: &[u8]) -> Option<(u64, [Column<'_>; 6])> {
    let (_length, cell) = varint(cell)?;
    let (number, record) = varint(cell)?;
    let (head, types) = varint(record)?;
    let head = usize::try_from(head).ok()?;
    let mut types = types.get(..head.checked_sub(record.len() - types.len())?)?;
    let mut values = record.get(head..)?;
    let mut columns = [Column::Null; 6];
    for column in &mut columns {
        let (kind, rest) = varint(types)?;
        types = rest;
        let length = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind,
            5 => 6,
            6 => 8,
            13.. if kind % 2 == 1 => (kind - 13) / 2,
            _ => return None,
        };
        let (bytes, rest) = values.split_at_checked(usize::try_from(length).ok()?)?;
        values = rest;
        *column = match kind {
            0 => Column::Null,
            8 => Column::Number(0),
            9 => Column::Number(1),
            13.. => Column::Text(bytes),
            _ => Column::Number(signed(bytes)),
        };
    }
    types.is_empty().then_some((number, columns))
}

/// A number of up to eight bytes, highest first.
fn signed(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let start = if negative { -1 } else { 0 };
    bytes.iter().fold(start, |number, byte| (number << 8) | i64::from(*byte))
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (place, byte) in bytes.iter().enumerate().take(9) {
        if place == 8 {
            return Some(((number << 8) | u64::from(*byte), &bytes[9..]));
        }
        number = (number << 7) | u64::from(byte & 0x7F);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[place + 1..]));
        }
    }
    None
}

fn u16_at(page: &[u8], place: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*page.get(place..)?.first_chunk()?))
}
