//! Encodes numbers as variable-length integers and runs, and computes the checksum of each row.

#[derive(Debug, Default)]
pub(super) struct Sink(pub(super) Vec<u8>);

impl Sink {
    /// Writes LEB128.
    #[inline]
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    /// Writes a zigzag number: small magnitudes of both signs are short.
    #[inline]
    pub(super) fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)).cast_unsigned());
    }

    pub(super) fn length(&mut self, length: usize) {
        self.number(length as u64);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Writes numbers as runs of equal differences, starting from 0. Numbers on a grid are one run.
    pub(super) fn steps(&mut self, numbers: impl Iterator<Item = i64>) {
        let mut last = 0_i64;
        self.runs(numbers.map(|number| {
            let step = number.wrapping_sub(last);
            last = number;
            step
        }));
    }

    pub(super) fn runs(&mut self, numbers: impl Iterator<Item = i64>) {
        let mut run: Option<(i64, u64)> = None;
        for number in numbers {
            match &mut run {
                Some((same, length)) if *same == number => *length += 1,
                _ => {
                    self.run(run.replace((number, 1)));
                }
            }
        }
        self.run(run);
    }

    fn run(&mut self, run: Option<(i64, u64)>) {
        if let Some((number, length)) = run {
            self.signed(number);
            self.number(length);
        }
    }
}

/// Every method returns `None` for bytes that no [`Sink`] wrote.
#[derive(Debug)]
pub(super) struct Source<'a>(pub(super) &'a [u8]);

impl<'a> Source<'a> {
    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    #[inline]
    pub(super) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    /// Reads `left` numbers.
    pub(super) fn runs(&mut self, mut left: usize, mut each: impl FnMut(i64, usize)) -> Option<()> {
        while left > 0 {
            let number = self.signed()?;
            let length = self.length()?;
            left = left.checked_sub(length)?;
            if length == 0 {
                return None;
            }
            each(number, length);
        }
        Some(())
    }

    pub(super) fn steps(&mut self, numbers: usize, mut each: impl FnMut(i64)) -> Option<()> {
        let mut last = 0_i64;
        self.runs(numbers, |step, length| {
            for _ in 0..length {
                last = last.wrapping_add(step);
                each(last);
            }
        })
    }
}

/// The checksum of a row, over the name of its table and its columns in order.
#[derive(Debug, Clone)]
pub(super) struct Checksum(u32);

impl Checksum {
    pub(super) fn new(table: &str) -> Self {
        Self(0).bytes(table.as_bytes())
    }

    pub(super) fn number(self, number: i64) -> Self {
        self.update(&number.to_le_bytes())
    }

    pub(super) fn numbers(self, numbers: &[i64]) -> Self {
        numbers.iter().fold(self, |sum, number| sum.number(*number))
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        self.update(&(bytes.len() as u64).to_le_bytes()).update(bytes)
    }

    fn update(self, bytes: &[u8]) -> Self {
        let mut crc = libdeflater::Crc::with_initial(self.0);
        crc.update(bytes);
        Self(crc.sum())
    }

    pub(super) fn value(self) -> i64 {
        i64::from(self.0)
    }
}
