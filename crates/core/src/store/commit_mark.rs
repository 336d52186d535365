//! The mark of a commit: a random number, and the number of the previous commit. Each commit writes
//! its mark into the second row of the table `store`, on a page that changes anyway. A log belongs
//! to a file if it contains the file's last commit, or if its first commit follows that one.
//!
//! The pages are read without `SQLite`, because `SQLite` would apply the log first.

use super::bytes::Checksum;

/// The table `store` is created first, so it is on one of these pages. Page 1 has the header.
pub(super) const PLACES: std::ops::RangeInclusive<u32> = 2..=4;
pub(super) const NOTHING: i64 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommitMark {
    pub(super) id: i64,
    pub(super) parent: i64,
}

impl CommitMark {
    pub(super) fn after(parent: i64) -> Self {
        let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
        Self { id: (high ^ low).cast_signed(), parent }
    }

    pub(super) fn check(id: i64, parent: i64) -> i64 {
        Checksum::new("commit").numbers(&[id, parent]).value()
    }

    /// Returns `None` for other or damaged pages of the table `store`.
    pub(super) fn on_page(page: &[u8]) -> Option<Self> {
        let (mut first, mut second) = (None, None);
        for cell in 0..usize::from(u16_at(page, 3)?).min(8) {
            let start = usize::from(u16_at(page, 8 + 2 * cell)?);
            match read_row(page.get(start..)?)? {
                (1, [_, version, _, layout, digest, check], made_by) => {
                    let sum = root_check(version, made_by, layout, digest);
                    first = (check == sum).then_some(());
                }
                (2, [_, _, _, parent, id, check], _) => {
                    let is_whole = check == Self::check(id, parent);
                    second = is_whole.then_some(Self { id, parent });
                }
                _ => return None,
            }
        }
        first.and(second)
    }
}

pub(super) fn root_check(version: i64, made_by: &[u8], layout: i64, digest: i64) -> i64 {
    Checksum::new("store").number(version).bytes(made_by).numbers(&[layout, digest]).value()
}

/// Reads the row number, the numbers in the six columns, and the text from a cell of a leaf page. A
/// column without a number counts as 0: the checksum of the row shows whether that is right.
fn read_row(cell: &[u8]) -> Option<(u64, [i64; 6], &[u8])> {
    let (_length, cell) = varint(cell)?;
    let (number, record) = varint(cell)?;
    let (head, types) = varint(record)?;
    let head = usize::try_from(head).ok()?;
    let mut types = types.get(..head.checked_sub(record.len() - types.len())?)?;
    let mut values = record.get(head..)?;
    let (mut columns, mut text) = ([0; 6], &[][..]);
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
        match kind {
            9 => *column = 1,
            13.. => text = bytes,
            _ => *column = signed(bytes),
        }
    }
    types.is_empty().then_some((number, columns, text))
}

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
