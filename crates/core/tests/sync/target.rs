//! A trait for the targets of these tests, and its implementation with a store.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array as _, RecordBatch, StringArray};
use siteline_core::data::Identity;
use siteline_core::store::{
    Applied, Delivery, Flagged, PointFilter, SeriesFilter, Store, Target, View,
};
use siteline_core::{Error, Kind, Result};

/// A series and a bucket timestamp in microseconds.
pub(crate) type Key = (Identity, i64);
/// The four values of a point, the doubles as bits.
pub(crate) type Values = ([Option<u64>; 3], Option<i64>);

/// A target with readable points that can be made to fail.
pub(crate) trait TestTarget: Target {
    /// All points of a feed that are not flagged.
    fn points(&self, feed: &str) -> BTreeMap<Key, Values>;

    /// Makes the next `times` calls of `apply` fail without a change.
    fn fail(&self, times: u32);

    /// Replaces the state.
    fn replace_state(&self, feed: &str, state: &[u8]);
}

/// The numbers of a row.
pub(crate) fn values(batch: &RecordBatch, row: usize) -> Values {
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
}

impl Stored {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let path = folder.join(format!("sync-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        let store = Store::open(&path.join("store.siteline")).expect("a store");
        Self { store, path, failures: Mutex::default() }
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

impl TestTarget for Stored {
    fn points(&self, feed: &str) -> BTreeMap<Key, Values> {
        if self.store.sequence(feed).expect("a store") == 0 {
            return BTreeMap::new();
        }
        let filter = PointFilter {
            ranges: None,
            view: View::Latest,
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

    fn fail(&self, times: u32) {
        *self.failures.lock().unwrap_or_else(PoisonError::into_inner) = times;
    }

    fn replace_state(&self, feed: &str, state: &[u8]) {
        self.store.apply(feed, None, state).expect("a store");
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
        self.store.apply(feed, delivery, state)
    }
}
