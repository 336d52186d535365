//! The target of these tests: a store that can be made to fail.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array as _, RecordBatch, StringArray};
use siteline_core::data::Identity;
use siteline_core::data::ranges::Ranges;
use siteline_core::store::{
    Applied, Delivery, Flagged, PointFilter, SeriesFilter, Store, Target, View,
};
use siteline_core::{Error, Kind, Result};

/// A series and a bucket timestamp in microseconds.
pub(crate) type Key = (Identity, i64);
/// The four values of a point, the doubles as bits.
pub(crate) type Values = ([Option<u64>; 3], Option<i64>);

fn values(batch: &RecordBatch, row: usize) -> Values {
    let double = |column: usize| {
        let array = batch.column(column).as_primitive::<Float64Type>();
        array.is_valid(row).then(|| array.value(row).to_bits())
    };
    let counts = batch.column(9).as_primitive::<Int64Type>();
    ([double(6), double(7), double(8)], counts.is_valid(row).then(|| counts.value(row)))
}

/// A store, in a separate file for each test.
#[derive(Debug)]
pub(crate) struct Stored {
    store: Store,
    path: PathBuf,
    failures: Mutex<u32>,
    /// Timestamps that the target cannot store.
    refused: Mutex<std::ops::Range<i64>>,
}

impl Stored {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("siteline-sync-{}-{number}", std::process::id());
        // A store in memory needs no fsync.
        let path = ["/dev/shm", env!("CARGO_TARGET_TMPDIR")]
            .map(|folder| Path::new(folder).join(&name))
            .into_iter()
            .find(|path| std::fs::create_dir(path).is_ok())
            .expect("a folder");
        let store = Store::open(&path.join("store.siteline")).expect("a store");
        Self { store, path, failures: Mutex::default(), refused: Mutex::new(0..0) }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.store.close();
        std::fs::remove_dir_all(&self.path).ok();
    }
}

impl Stored {
    /// All points of a feed that are not flagged.
    pub(crate) fn points(&self, feed: &str) -> BTreeMap<Key, Values> {
        if self.store.sequence(feed).expect("a store") == 0 {
            return BTreeMap::new();
        }
        let filter = PointFilter {
            ranges: Ranges::all(),
            view: View::LATEST,
            flagged: Flagged::Drop,
            series: SeriesFilter::default(),
        };
        let mut reader = self.store.read(feed, filter).expect("a reader");
        let mut points = BTreeMap::new();
        while let Some(batch) = reader.next_batch(10_000).expect("points") {
            let times = batch.column(5).as_primitive::<TimestampMicrosecondType>();
            for row in 0..batch.num_rows() {
                points.insert((identity(&batch, row), times.value(row)), values(&batch, row));
            }
        }
        points
    }

    /// Makes the next `times` calls of `apply` fail without a change.
    pub(crate) fn fail(&self, times: u32) {
        *self.failures.lock().unwrap_or_else(PoisonError::into_inner) = times;
    }

    /// Makes `apply` reject pages with a point in this range.
    pub(crate) fn refuse(&self, times: std::ops::Range<i64>) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = times;
    }
}

fn identity(batch: &RecordBatch, row: usize) -> Identity {
    let id = |column: usize| {
        let ids = batch.column(column).as_dictionary::<Int32Type>();
        let texts: &StringArray = ids.values().as_string();
        ids.key(row).map(|key| Arc::from(texts.value(key)))
    };
    Identity::from([0, 1, 2, 3, 4].map(id))
}

impl Target for Stored {
    fn lock(&self, feed: &str) -> Result<Box<dyn Any + Send>> {
        self.store.lock(feed)
    }

    fn state(&self, feed: &str) -> Result<Option<Vec<u8>>> {
        self.store.state(feed)
    }

    fn apply(&self, feed: &str, delivery: Option<&Delivery>, state: &[u8]) -> Result<Applied> {
        let failures = &mut *self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if *failures > 0 {
            *failures -= 1;
            return Err(Error::new(Kind::StoreFull, "no space"));
        }
        if let Some(Delivery { page, chain, .. }) = delivery {
            let sequence = self.store.sequence(feed)?;
            assert_eq!(page.sequence, sequence + 1, "one number for each page");
            assert!(chain.first <= page.sequence);
            let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            if page.points.timestamps.values().iter().any(|time| refused.contains(time)) {
                let error = Error::new(Kind::StoreError, "no such text");
                return Err(error.with(|context| context.unstorable = true));
            }
        }
        self.store.apply(feed, delivery, state)
    }
}
