//! [`Buffers`]: a pool of buffers for large bodies.
//!
//! A newly allocated megabyte costs about three hundred page faults. In a chain, a page reuses the
//! buffer of the page before the previous one. There is no `Debug`, because it would show old
//! bodies.

use std::sync::{Arc, Weak};

use bytes::Bytes;

use crate::lock::Mutex;

/// Minimum capacity of a pooled buffer.
const SMALLEST: usize = 128 * 1024;
/// Maximum number of bytes of unused buffers in the pool.
const MOST_KEPT: usize = 8 << 20;

/// A pool of buffers. A buffer returns to the pool when its body is dropped. Nothing waits for the
/// lock, because a thread of the parent process may hold it after a fork.
#[derive(Clone, Default)]
pub(super) struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl Buffers {
    /// An empty buffer of at least this capacity.
    pub(super) fn with_capacity(&self, capacity: usize) -> Vec<u8> {
        let mut buffer = Vec::new();
        self.grow(&mut buffer, capacity);
        buffer
    }

    /// Raises the capacity of a buffer.
    pub(super) fn grow(&self, buffer: &mut Vec<u8>, capacity: usize) {
        if let Some(mut larger) = self.take(capacity) {
            larger.clear();
            larger.extend_from_slice(buffer);
            *buffer = larger;
        } else {
            buffer.reserve_exact(capacity - buffer.len());
        }
    }

    /// A buffer of this length with arbitrary content, to be overwritten.
    pub(super) fn with_length(&self, length: usize) -> Vec<u8> {
        let mut buffer = self.take(length).unwrap_or_else(|| vec![0; length]);
        buffer.resize(length, 0);
        buffer
    }

    /// The bytes of a body. A buffer of a pooled size returns to the pool when the last reference
    /// is dropped.
    pub(super) fn lend(&self, bytes: Vec<u8>) -> Bytes {
        if is_pooled_size(&bytes) {
            Bytes::from_owner(Lent { bytes, pool: Arc::downgrade(&self.0) })
        } else {
            Bytes::from(bytes)
        }
    }

    /// Returns an unused buffer of a pooled size to the pool.
    pub(super) fn take_back(&self, buffer: Vec<u8>) {
        let Some(mut kept) = self.0.try_lock().filter(|_| is_pooled_size(&buffer)) else { return };
        kept.push(buffer);
        // Drop the oldest first, because the size of the pages may have changed.
        while kept.iter().map(Vec::capacity).sum::<usize>() > MOST_KEPT {
            kept.remove(0);
        }
    }

    fn take(&self, least: usize) -> Option<Vec<u8>> {
        if least < SMALLEST {
            return None;
        }
        let mut kept = self.0.try_lock()?;
        // A small body must not keep a large buffer.
        let fits =
            |buffer: &Vec<u8>| (least..=least.saturating_mul(2)).contains(&buffer.capacity());
        let fitting = kept.iter().position(fits)?;
        Some(kept.remove(fitting))
    }
}

fn is_pooled_size(buffer: &Vec<u8>) -> bool {
    (SMALLEST..=MOST_KEPT).contains(&buffer.capacity())
}

struct Lent {
    bytes: Vec<u8>,
    pool: Weak<Mutex<Vec<Vec<u8>>>>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            Buffers(pool).take_back(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Buffers {
        pub(in crate::http) fn is_empty(&self) -> bool {
            self.0.lock().is_empty()
        }
    }

    fn kept(buffers: &Buffers) -> Vec<usize> {
        buffers.0.lock().iter().map(Vec::capacity).collect()
    }

    #[test]
    fn a_buffer_returns_with_the_last_reference_to_its_body_and_is_reused() {
        let buffers = Buffers::default();
        let mut first = buffers.with_capacity(SMALLEST);
        first.extend_from_slice(b"a body");
        let body = buffers.lend(first);
        let slice = body.slice(2..);
        drop(body);
        assert_eq!(slice, "body");
        assert!(kept(&buffers).is_empty());
        drop(slice);
        assert_eq!(kept(&buffers), [SMALLEST]);
        assert_eq!(buffers.with_capacity(SMALLEST + 1).capacity(), SMALLEST + 1, "it is too small");
        assert!(buffers.with_capacity(SMALLEST).is_empty());
        assert!(kept(&buffers).is_empty());
    }

    #[test]
    fn a_fitting_buffer_is_reused_and_the_oldest_are_dropped() {
        let buffers = Buffers::default();
        let lend = |sizes: &[usize]| {
            let lent = sizes.iter().map(|size| buffers.lend(Vec::with_capacity(*size)));
            drop(lent.collect::<Vec<_>>());
        };
        lend(&[MOST_KEPT / 2, SMALLEST, 2 * SMALLEST]);
        assert_eq!(buffers.with_capacity(SMALLEST + 1).capacity(), 2 * SMALLEST);
        assert_eq!(kept(&buffers), [MOST_KEPT / 2, SMALLEST]);
        assert_eq!(buffers.with_capacity(2 * SMALLEST).capacity(), 2 * SMALLEST, "a new buffer");
        assert_eq!(kept(&buffers), [MOST_KEPT / 2, SMALLEST]);
        lend(&[MOST_KEPT / 2]);
        assert_eq!(kept(&buffers), [SMALLEST, MOST_KEPT / 2]);
        lend(&[MOST_KEPT]);
        assert_eq!(kept(&buffers), [MOST_KEPT]);
    }

    #[test]
    fn the_pool_keeps_no_small_or_very_large_buffers_and_only_a_few() {
        let buffers = Buffers::default();
        for capacity in [SMALLEST - 1, MOST_KEPT + 1] {
            drop(buffers.lend(Vec::with_capacity(capacity)));
            assert!(kept(&buffers).is_empty(), "{capacity}");
        }
        // A very large buffer does not replace the kept ones.
        drop(buffers.lend(Vec::with_capacity(SMALLEST)));
        drop(buffers.lend(Vec::with_capacity(MOST_KEPT + 1)));
        assert_eq!(kept(&buffers), [SMALLEST]);
        assert!(buffers.with_capacity(SMALLEST).is_empty());
        let bodies: Vec<Bytes> =
            (0..5).map(|_| buffers.lend(Vec::with_capacity(MOST_KEPT / 4))).collect();
        drop(bodies);
        assert_eq!(kept(&buffers), [MOST_KEPT / 4; 4]);
    }
}
