//! A block: every version of the points of one series in a stretch of time. Its encoding:
//!
//! ```text
//! form:u8 rows timestamps:steps versions:steps marks:runs
//! counts:(0 runs | 1 one by one) values:[f64] minima:[f64] maxima:[f64]
//! ```
//!
//! A column omits its nulls. Doubles are read back bit for bit.

use super::bytes::{Sink, Source};

const FORM: u8 = 1;
/// Rows of null values on a grid cost no bytes. The limit keeps forged blocks from filling the
/// memory.
const FREE_ROWS: usize = 1 << 20;
const ROWS_PER_BYTE: usize = 64;
/// The bit of a mark for an absent point. The lower bits mark null values.
const ABSENT: u8 = 0b1_0000;
const COUNT_NULL: u8 = 0b1000;

/// A null value is 0 and has its bit in `nulls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Values {
    /// Value, minimum and maximum.
    bits: [u64; 3],
    count: i64,
    nulls: u8,
}

impl Values {
    pub(super) fn new(numbers: [Option<f64>; 3], count: Option<i64>) -> Self {
        let mut values = Self { count: count.unwrap_or_default(), ..Self::default() };
        for (index, number) in numbers.into_iter().enumerate() {
            match number {
                Some(number) => values.bits[index] = number.to_bits(),
                None => values.nulls |= 1 << index,
            }
        }
        if count.is_none() {
            values.nulls |= COUNT_NULL;
        }
        values
    }

    #[inline]
    pub(super) fn numbers(&self) -> [Option<f64>; 3] {
        std::array::from_fn(|index| {
            (self.nulls & (1 << index) == 0).then(|| f64::from_bits(self.bits[index]))
        })
    }

    #[inline]
    pub(super) fn count(&self) -> Option<i64> {
        (self.nulls & COUNT_NULL == 0).then_some(self.count)
    }
}

/// Rows of a block are sorted by timestamp, then version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PointVersion {
    pub(super) timestamp: i64,
    /// Sequence number of the page request that brought it.
    pub(super) version: u64,
    /// Set if the chain that ended with that page lacked the point. The values are the last known.
    pub(super) absent: bool,
    pub(super) values: Values,
}

impl PointVersion {
    #[inline]
    pub(super) fn same(&self, other: &Self) -> bool {
        self.absent == other.absent && self.values == other.values
    }
}

pub(super) fn encode(rows: &[PointVersion]) -> Vec<u8> {
    encode_with(rows, |_| ())
}

/// `more` writes a further column after the timestamps.
pub(super) fn encode_with(rows: &[PointVersion], more: impl FnOnce(&mut Sink)) -> Vec<u8> {
    let mut sink = Sink(Vec::with_capacity(64 + rows.len() * 28));
    sink.0.push(FORM);
    sink.length(rows.len());
    sink.steps(rows.iter().map(|row| row.timestamp));
    more(&mut sink);
    encode_columns(&mut sink, rows);
    sink.0
}

fn encode_columns(sink: &mut Sink, rows: &[PointVersion]) {
    sink.steps(rows.iter().map(|row| row.version.cast_signed()));
    sink.runs(rows.iter().map(|row| i64::from(mark(row))));
    let counts = || rows.iter().filter_map(|row| row.values.count());
    let runs = counts().zip(counts().skip(1)).filter(|(one, next)| one != next).count();
    if runs * 2 < rows.len() {
        sink.0.push(0);
        sink.runs(counts());
    } else {
        sink.0.push(1);
        counts().for_each(|count| sink.signed(count));
    }
    for index in 0..3 {
        for row in rows.iter().filter(|row| row.values.nulls & (1 << index) == 0) {
            sink.0.extend_from_slice(&row.values.bits[index].to_le_bytes());
        }
    }
}

fn mark(row: &PointVersion) -> u8 {
    row.values.nulls | if row.absent { ABSENT } else { 0 }
}

pub(super) fn is_plausible(rows: usize, bytes: usize) -> bool {
    rows <= FREE_ROWS.saturating_add(bytes.saturating_mul(ROWS_PER_BYTE))
}

/// Returns `None` for bytes that [`encode`] did not write.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<PointVersion>> {
    let rows = decode_with(bytes, |_, _| Some(()))?;
    let is_sorted = rows
        .is_sorted_by(|one, next| (one.timestamp, one.version) < (next.timestamp, next.version));
    is_sorted.then_some(rows)
}

/// `more` reads a further column after the timestamps.
pub(super) fn decode_with(
    bytes: &[u8],
    more: impl FnOnce(&mut Source<'_>, usize) -> Option<()>,
) -> Option<Vec<PointVersion>> {
    let (form, rest) = bytes.split_first()?;
    let mut source = Source(rest);
    let count = source.length()?;
    if *form != FORM || !is_plausible(count, bytes.len()) {
        return None;
    }
    let mut rows = Vec::new();
    source.steps(count, |timestamp| {
        rows.push(PointVersion { timestamp, version: 0, absent: false, values: Values::default() });
    })?;
    more(&mut source, count)?;
    decode_columns(&mut source, &mut rows)?;
    source.0.is_empty().then_some(rows)
}

fn decode_columns(source: &mut Source<'_>, rows: &mut [PointVersion]) -> Option<()> {
    let mut at = 0;
    source.steps(rows.len(), |version| {
        rows[at].version = version.cast_unsigned();
        at += 1;
    })?;
    at = 0;
    let mut marked = Some(());
    source.runs(rows.len(), |mark, length| {
        let Some(mark) = u8::try_from(mark).ok().filter(|mark| *mark < ABSENT << 1) else {
            marked = None;
            return;
        };
        for row in &mut rows[at..at + length] {
            row.absent = mark & ABSENT != 0;
            row.values.nulls = mark & !ABSENT;
        }
        at += length;
    })?;
    marked?;
    read_counts(source, rows)?;
    (0..3).try_for_each(|index| read_numbers(source, rows, index))
}

fn read_counts(source: &mut Source<'_>, rows: &mut [PointVersion]) -> Option<()> {
    let known = rows.iter().filter(|row| row.values.nulls & COUNT_NULL == 0).count();
    let mut slots = rows.iter_mut().filter(|row| row.values.nulls & COUNT_NULL == 0);
    match source.take(1)? {
        [0] => source.runs(known, |count, length| {
            slots.by_ref().take(length).for_each(|row| row.values.count = count);
        }),
        [1] => slots.try_for_each(|row| {
            row.values.count = source.signed()?;
            Some(())
        }),
        _ => None,
    }
}

fn read_numbers(source: &mut Source<'_>, rows: &mut [PointVersion], index: usize) -> Option<()> {
    let known = rows.iter().filter(|row| row.values.nulls & (1 << index) == 0).count();
    let (numbers, _) = source.take(known.checked_mul(8)?)?.as_chunks::<8>();
    let slots = rows.iter_mut().filter(|row| row.values.nulls & (1 << index) == 0);
    for (row, bytes) in slots.zip(numbers) {
        row.values.bits[index] = u64::from_le_bytes(*bytes);
    }
    Some(())
}
