//! Feeds in a store.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::Unread;
use super::super::read::ReadSpec;
use super::super::stored::{read_state, read_states, redefine};
use super::*;
use crate::data::report::PageReport;
use crate::data::{Identity, Page, TableBuilder};
use crate::error::Kind;
use crate::store::{ChainRange, Delivery, Flagged, Store, Target as _, View, Watch};

/// A store in a folder of its own, which is removed when its test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("siteline-stored-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn store(&self) -> Store {
        Store::open(&self.0.join("plant.siteline")).expect("a store")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn named(name: &str) -> FeedState {
    state(|input| input.name = name.to_owned())
}

#[test]
fn the_states_of_a_store_come_with_their_names_in_order() {
    let folder = Folder::new();
    let store = folder.store();
    assert_eq!(read_states(&store).expect("a store"), []);
    for name in ["second", "first"] {
        store.apply(name, None, &named(name).to_bytes()).expect("a store");
    }
    let expected = ["first", "second"].map(|name| (name.to_owned(), named(name)));
    assert_eq!(read_states(&store).expect("a store"), expected);
    store.apply("second", None, b"damaged").expect("a store");
    assert_eq!(read_states(&store).expect_err("damaged").kind(), Kind::StoreCorrupt);
}

#[test]
fn a_feed_of_a_store_is_redefined_unless_a_run_holds_it_or_it_asks_for_other_points() {
    let folder = Folder::new();
    let store = folder.store();
    let times = feed(|input| input.overlap = seconds(2 * HOUR));
    let kind = |feed: &Feed| redefine(&store, feed).expect_err("refused").kind();
    assert_eq!(kind(&times), Kind::StoreError, "it is not there");
    store.apply("feed", None, &named("feed").to_bytes()).expect("a store");
    let lock = store.lock("feed").expect("free");
    assert_eq!(kind(&times), Kind::StoreBusy);
    drop(lock);
    assert_eq!(kind(&feed(|input| input.site = Some("S2".to_owned()))), Kind::FeedChanged);
    let stored = || read_state(&store, "feed").expect("a state").feed().clone();
    assert_ne!(stored(), times);
    redefine(&store, &times).expect("times may change");
    assert_eq!(stored(), times);
}

/// The page with this number: one point, of the minute with this number.
fn page(sequence: u64) -> Page {
    let mut table = TableBuilder::new(1);
    let minute = SINCE + i64::try_from(sequence).expect("small") * MINUTE;
    table.push(minute * 1_000_000, [Some(1.0), None, None], None);
    table.series(&Identity::from([Some(Arc::from("S")), None, None, None, None]));
    let points = Arc::new(table.finish().expect("points"));
    Page {
        points,
        report: PageReport::default(),
        sequence,
        raw: None,
        bookmark: None,
        is_last: false,
    }
}

fn apply(store: &Store, sequence: u64) {
    let mut state = named("feed");
    state.next_sequence = sequence + 1;
    let page = page(sequence);
    let (start, end) = Range::new(SINCE, SINCE + DAY).instants();
    let chain = ChainRange { first: 1, start, end };
    let delivery = Delivery {
        batch_first: sequence,
        page: Arc::new(page),
        read_at: end,
        chain,
        interval_seconds: Some(60),
        is_only_chain: true,
    };
    store.apply("feed", Some(&delivery), &state.to_bytes()).expect("a store");
}

#[test]
fn a_snapshot_has_the_points_of_its_sequence_number_while_pages_are_written() {
    let folder = Folder::new();
    let store = folder.store();
    apply(&store, 1);
    let spec = ReadSpec::new("feed".to_owned(), (None, None), View::Latest).expect("a spec");
    let spec = ReadSpec { unread: Unread::Keep, flagged: Flagged::Keep, ..spec };
    let last = 120;
    std::thread::scope(|scope| {
        scope.spawn(|| (2..=last).for_each(|sequence| apply(&store, sequence)));
        loop {
            let mut snapshot = spec.open(&store).expect("a snapshot");
            let mut rows = 0;
            while let Some(batch) = snapshot.reader.next_batch(1_000).expect("points") {
                rows += batch.num_rows() as u64;
            }
            assert_eq!(rows, snapshot.sequence, "a point for each page");
            if snapshot.sequence == last {
                break;
            }
        }
    });
}

#[test]
fn two_connections_that_write_by_turns_know_of_each_others_feeds() {
    let folder = Folder::new();
    let stores = [folder.store(), folder.store()];
    for turn in 0..6 {
        for (number, store) in stores.iter().enumerate() {
            let name = format!("feed {turn} {number}");
            store.apply(&name, None, &named(&name).to_bytes()).expect("a new feed");
            // The other one has written since: this feed's row is not the one that is known.
            store.apply("shared", None, &[turn, u8::from(number == 1)]).expect("a known feed");
        }
    }
    assert_eq!(stores[0].feeds().expect("a store").len(), 13);
    let names = ["shared", "nobody", "feed 5 1"];
    let [shared, nobody, last] = &stores[0].states(&names).expect("a store")[..] else {
        panic!("one for each name");
    };
    assert_eq!((shared.as_deref(), nobody), (Some(&[5, 1][..]), &None));
    assert_eq!(*last, Some(named("feed 5 1").to_bytes()));
    for store in &stores {
        store.check(&Watch::default()).expect("its checksums are right");
    }
}
