//! Feeds in a store.

use super::super::Unread;
use super::super::read::ReadSpec;
use super::super::stored::read_states;
use super::*;
use crate::error::Kind;
use crate::store::tests::Folder;
use crate::store::{ChainRange, Delivery, Flagged, Store, Target as _, View, Watch};

fn named(name: &str) -> FeedState {
    state(|input| input.name = name.to_owned())
}

#[test]
fn states_are_sorted_by_feed_name() {
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

fn apply(store: &Store, sequence: u64) {
    let mut state = named("feed");
    state.next_sequence = sequence + 1;
    let minute = i64::try_from(sequence).expect("small");
    let (start, end) = day(0).instants();
    let chain = ChainRange { first: 1, start, end };
    let delivery = Delivery {
        batch_first: sequence,
        page: page(sequence, false, minute..minute + 1),
        read_at: end,
        chain,
        interval_seconds: Some(60),
        is_only_chain: true,
    };
    store.apply("feed", Some(&delivery), &state.to_bytes()).expect("a store");
}

#[test]
fn a_snapshot_matches_its_sequence_number() {
    let folder = Folder::new();
    let store = folder.store();
    apply(&store, 1);
    let spec = ReadSpec::new("feed".to_owned(), (None, None), View::LATEST).expect("a spec");
    let spec = ReadSpec { unread: Unread::Keep, flagged: Flagged::Keep, ..spec };
    let last = 120;
    std::thread::scope(|scope| {
        scope.spawn(|| (2..=last).for_each(|sequence| apply(&store, sequence)));
        loop {
            let (mut reader, read, _) = spec.open(&store).expect("a snapshot");
            let mut rows = 0;
            while let Some(batch) = reader.next_batch(1_000).expect("points") {
                rows += batch.num_rows() as u64;
            }
            assert_eq!(rows, read.state.sequence, "a point for each page");
            if read.state.sequence == last {
                break;
            }
        }
    });
}

#[test]
fn two_connections_see_each_others_feeds() {
    let folder = Folder::new();
    let stores = [folder.store(), folder.store()];
    for turn in 0..6 {
        for (number, store) in stores.iter().enumerate() {
            let name = format!("feed {turn} {number}");
            store.apply(&name, None, &named(&name).to_bytes()).expect("a new feed");
            // The other connection has written this row since.
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
