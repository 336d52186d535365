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
        let cells = usize::from(u16_at(page, 3)?).min(2);
        let cell = |place| page.get(usize::from(u16_at(page, 8 + 2 * place)?)..);
        (0..cells).filter_map(cell).find_map(Self::in_cell)
    }

    /// Reads a cell of a leaf page: the row's length, its number 2, the length of its types, the
    /// types of its six columns, and their values. A column without a number counts as 0: the
    /// checksum shows whether that is right.
    fn in_cell(cell: &[u8]) -> Option<Self> {
        let (&[_length, 2, 7, ref types @ ..], mut values) = cell.split_first_chunk::<9>()? else {
            return None;
        };
        let mut columns = [0; 6];
        for (column, kind) in columns.iter_mut().zip(types) {
            let length = match kind {
                1..=4 => usize::from(*kind),
                5 => 6,
                6 => 8,
                _ => 0,
            };
            let (bytes, rest) = values.split_at_checked(length)?;
            (*column, values) = (if *kind == 9 { 1 } else { signed(bytes) }, rest);
        }
        let [_, _, _, parent, id, check] = columns;
        (check == Self::check(id, parent)).then_some(Self { id, parent })
    }
}

fn signed(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let start = if negative { -1 } else { 0 };
    bytes.iter().fold(start, |number, byte| (number << 8) | i64::from(*byte))
}

fn u16_at(page: &[u8], place: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*page.get(place..)?.first_chunk()?))
}
