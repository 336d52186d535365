//! [`Buffers`]: where large bodies come to stand, one after another.
//!
//! A fresh megabyte costs some three hundred page faults. In a chain the next page has the room of the
//! one before the last. What stood there is never shown, which is why there is no `Debug` here.

use std::sync::{Arc, MutexGuard, Weak};

use bytes::Bytes;

use crate::lock::Mutex;

/// Smaller ones are not worth it.
const SMALLEST: usize = 128 * 1024;
/// Bytes of room that are kept while no body is read.
const MOST_KEPT: usize = 8 << 20;

/// Room to read large bodies into. It comes back by itself when a body is dropped.
#[derive(Clone, Default)]
pub(super) struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl Buffers {
    /// An empty buffer with room for so many bytes at least.
    pub(super) fn with_room(&self, room: usize) -> Vec<u8> {
        let mut buffer = Vec::new();
        self.make_room(&mut buffer, room);
        buffer
    }

    /// Gives a buffer room for so many bytes in all.
    pub(super) fn make_room(&self, buffer: &mut Vec<u8>, room: usize) {
        if let Some(mut larger) = self.take(room) {
            larger.clear();
            larger.extend_from_slice(buffer);
            *buffer = larger;
        } else {
            buffer.reserve_exact(room - buffer.len());
        }
    }

    /// A buffer of so many bytes, to be written over: what they are is not said.
    pub(super) fn of_length(&self, length: usize) -> Vec<u8> {
        let mut buffer = self.take(length).unwrap_or_else(|| vec![0; length]);
        buffer.resize(length, 0);
        buffer
    }

    /// The bytes of a body. With the last of their holders they come back, where they are worth it.
    pub(super) fn lend(&self, bytes: Vec<u8>) -> Bytes {
        if is_worth_it(&bytes) {
            Bytes::from_owner(Lent { bytes, home: Arc::downgrade(&self.0) })
        } else {
            Bytes::from(bytes)
        }
    }

    /// Keeps a buffer that is done with, where it is worth it.
    pub(super) fn take_back(&self, buffer: Vec<u8>) {
        let Some(mut kept) = self.try_lock().filter(|_| is_worth_it(&buffer)) else { return };
        kept.push(buffer);
        // The oldest make way: the pages may have grown, or shrunk.
        while kept.iter().map(Vec::capacity).sum::<usize>() > MOST_KEPT {
            kept.remove(0);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// `None` where another thread has the lock. It may be a thread of the process that this one was
    /// forked from, so nobody waits for a buffer.
    fn try_lock(&self) -> Option<MutexGuard<'_, Vec<Vec<u8>>>> {
        self.0.try_lock()
    }

    fn take(&self, least: usize) -> Option<Vec<u8>> {
        if least < SMALLEST {
            return None;
        }
        let mut kept = self.try_lock()?;
        // A small body in much room would hold all of it.
        let fits =
            |buffer: &Vec<u8>| (least..=least.saturating_mul(2)).contains(&buffer.capacity());
        let fitting = kept.iter().position(fits)?;
        Some(kept.remove(fitting))
    }
}

fn is_worth_it(buffer: &Vec<u8>) -> bool {
    (SMALLEST..=MOST_KEPT).contains(&buffer.capacity())
}

struct Lent {
    bytes: Vec<u8>,
    home: Weak<Mutex<Vec<Vec<u8>>>>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            Buffers(home).take_back(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(buffers: &Buffers) -> Vec<usize> {
        buffers.0.lock().iter().map(Vec::capacity).collect()
    }

    #[test]
    fn room_comes_back_with_the_last_holder_of_a_body_and_is_used_again() {
        let buffers = Buffers::default();
        let mut first = buffers.with_room(SMALLEST);
        first.extend_from_slice(b"a body");
        let body = buffers.lend(first);
        let slice = body.slice(2..);
        drop(body);
        assert_eq!(slice, "body");
        assert!(kept(&buffers).is_empty());
        drop(slice);
        assert_eq!(kept(&buffers), [SMALLEST]);
        assert_eq!(buffers.with_room(SMALLEST + 1).capacity(), SMALLEST + 1, "it is too small");
        assert!(buffers.with_room(SMALLEST).is_empty());
        assert!(kept(&buffers).is_empty());
    }

    #[test]
    fn a_buffer_of_a_length_has_that_length_whatever_it_had_before() {
        let buffers = Buffers::default();
        for length in [SMALLEST, 2 * SMALLEST, SMALLEST + 1] {
            let body = buffers.lend(buffers.of_length(length));
            assert_eq!(body.len(), length);
        }
        assert_eq!(kept(&buffers), [SMALLEST, 2 * SMALLEST]);
    }

    #[test]
    fn neither_small_nor_very_large_ones_are_kept_nor_more_than_a_few() {
        let buffers = Buffers::default();
        for room in [SMALLEST - 1, MOST_KEPT + 1] {
            drop(buffers.lend(Vec::with_capacity(room)));
        }
        assert!(kept(&buffers).is_empty());
        let bodies: Vec<Bytes> =
            (0..5).map(|_| buffers.lend(Vec::with_capacity(MOST_KEPT / 4))).collect();
        drop(bodies);
        assert_eq!(kept(&buffers), [MOST_KEPT / 4; 4]);
    }

    #[test]
    fn what_fits_is_taken_and_the_oldest_make_way() {
        let buffers = Buffers::default();
        let lend = |rooms: &[usize]| {
            let lent = rooms.iter().map(|room| buffers.lend(Vec::with_capacity(*room)));
            drop(lent.collect::<Vec<_>>());
        };
        lend(&[MOST_KEPT / 2, SMALLEST, 2 * SMALLEST]);
        assert_eq!(buffers.with_room(SMALLEST + 1).capacity(), 2 * SMALLEST);
        assert_eq!(kept(&buffers), [MOST_KEPT / 2, SMALLEST]);
        assert_eq!(buffers.with_room(2 * SMALLEST).capacity(), 2 * SMALLEST, "a fresh one");
        assert_eq!(kept(&buffers), [MOST_KEPT / 2, SMALLEST]);
        lend(&[MOST_KEPT / 2]);
        assert_eq!(kept(&buffers), [SMALLEST, MOST_KEPT / 2]);
        lend(&[MOST_KEPT]);
        assert_eq!(kept(&buffers), [MOST_KEPT]);
    }

    #[test]
    fn a_body_may_outlive_where_it_came_from() {
        let buffers = Buffers::default();
        let body = buffers.lend(vec![b'x'; SMALLEST]);
        drop(buffers);
        assert!(body.iter().all(|byte| *byte == b'x'));
    }
}
