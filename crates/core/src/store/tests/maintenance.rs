//! Forgetting and compacting, stopped at any step, and observing long operations.

use proptest::prelude::*;

use super::model::{Model, limits, requests};
use super::*;
use crate::store::removal::Removal;

/// The limits of the kept past: the first kept minute, and the minute and the page request of
/// [`super::super::retention::Retention`].
#[derive(Debug, Clone, Copy)]
struct Kept {
    from: i64,
    history_before: i64,
    history_from: u64,
}

impl Default for Kept {
    fn default() -> Self {
        Self { from: i64::MIN / MINUTE, history_before: i64::MIN / MINUTE, history_from: 0 }
    }
}

/// Removes the data of the first `groups` directory pages, as if the process was killed after them.
fn remove_some(store: &Store, groups: usize, removal: &Removal<'_>) -> Freed {
    let (mut freed, watch) = (Freed::default(), Watch::default());
    let numbers = store.write(|writer, _| removal.begin(writer, "line")).unwrap();
    for number in numbers.iter().take(groups) {
        let one = std::slice::from_ref(number);
        freed += store.write(|writer, _| removal.remove(writer, "line", one, &watch)).unwrap();
    }
    freed
}

fn forget_some(store: &Store, before: i64, groups: usize) -> Freed {
    let state = store.state("line").unwrap().unwrap();
    remove_some(store, groups, &Removal::Points { before: before * MINUTE, state: &state })
}

fn compact_some(store: &Store, (start, end): (i64, i64), groups: usize) -> Freed {
    let range = Range::new(start * MINUTE, end * MINUTE);
    remove_some(store, groups, &Removal::Versions(range.into()))
}

/// Asserts that the store agrees with the model in the kept past, and rejects other views.
fn assert_keeps(store: &Store, model: &Model, kept: Kept, newest: u64) {
    for sequence in 0..=newest {
        for view in [View::LATEST, View::as_of(sequence), View::changed_since(sequence)] {
            let is_of_now = [View::LATEST, View::changed_since(0)].contains(&view);
            let lost = sequence < kept.history_from && !is_of_now;
            let shown = |from: i64| -> Vec<Shown> {
                let all = model.read(view, Flagged::Keep).into_iter();
                all.filter(|row| row.1 >= kept.from.max(from)).collect()
            };
            match read(store, all(view, Flagged::Keep)) {
                Err(error) => assert!(lost && error.kind() == Kind::QueryError, "{view:?} {error}"),
                Ok(whole) => {
                    assert!(!lost, "{view:?} {kept:?}");
                    assert_eq!(whole, shown(i64::MIN), "{view:?} {kept:?} {model:#?}");
                }
            }
            let late = kept.history_before.max(-1_000);
            let ranges = Range::new(late * MINUTE, 1_000_000 * MINUTE).into();
            let filter = PointFilter { ranges, ..all(view, Flagged::Keep) };
            assert_eq!(read(store, filter).unwrap(), shown(late), "{view:?} from {late}");
        }
    }
    store.check(&Watch::default()).unwrap();
}

/// An operation before a request: forget, compact, or none.
type Work = (u8, i64, i64, usize);

fn work() -> impl Strategy<Value = Work> {
    let minute = || prop_oneof![-1..7_i64, 126..130_i64, 509..516_i64];
    (0..6_u8, minute(), minute(), 0..3_usize)
}

proptest! {
    #![proptest_config(crate::test_kit::cases(60))]

    #[test]
    fn s22_kept_points_survive_an_interrupted_removal(
        requests in prop_oneof![requests(3), requests(9)],
        works in prop::collection::vec(work(), 18),
        limits in limits(),
    ) {
        let folder = Folder::new();
        let (store, mut model, mut kept) = (folder.store_with(limits), Model::default(), Kept::default());
        let mut newest = 0;
        for (request, (kind, minute, end, groups)) in requests.iter().zip(works) {
            if newest > 0 && kind == 0 {
                forget_some(&store, minute, groups);
                if minute > kept.from {
                    kept.from = minute;
                    kept.history_before = kept.history_before.max(minute);
                    kept.history_from = kept.history_from.max(newest);
                }
                assert_keeps(&store, &model, kept, newest);
            } else if newest > 0 && kind == 1 && minute < end {
                compact_some(&store, (minute, end), groups);
                kept.history_before = kept.history_before.max(end);
                kept.history_from = kept.history_from.max(newest);
                assert_keeps(&store, &model, kept, newest);
            }
            request.apply_to(&store, b"state").unwrap();
            model.add(request);
            newest = request.sequence;
        }
        assert_keeps(&store, &model, kept, newest);
        drop(store);
        assert_keeps(&folder.store(), &model, kept, newest);
        // Another call removes the rest.
        if kept.from > i64::MIN / MINUTE {
            let store = folder.store();
            forget_some(&store, kept.from, usize::MAX);
            assert_keeps(&store, &model, kept, newest);
            let connection = Connection::open(folder.file()).unwrap();
            let feed = Feeds::load(&connection).unwrap().find("line").cloned().unwrap();
            let index = FeedIndex::load(&connection, &feed).unwrap();
            let all = Ranges::all();
            let found = FoundBlocks::load(&connection, &index, &feed, &all, None).unwrap();
            let mut directory = Directory::new(&connection, feed.id).unwrap();
            for block in &found.blocks {
                let rows = found.rows(&mut directory, *block).unwrap();
                prop_assert!(rows.iter().all(|row| row.timestamp >= kept.from * MINUTE));
            }
            let chunks = found.blocks.iter().filter(|(_, entry)| entry.is_some()).count();
            let count = folder.number("SELECT COUNT(*) FROM contents");
            prop_assert_eq!(count, i64::try_from(chunks).unwrap());
        }
    }
}

/// A chain per page, with a point per minute of two series. The values differ from page to page.
fn long_store(folder: &Folder, pages: u64, minutes: i64) -> Store {
    let store = folder.store();
    for sequence in 1..=pages {
        let points: Vec<Point> = (0..2)
            .flat_map(|series| {
                (0..minutes).map(move |minute| (series, minute, Some(value(sequence))))
            })
            .collect();
        Request::whole(sequence, 0, minutes, &points).apply_to(&store, b"state").unwrap();
    }
    store
}

#[test]
fn forgetting_counts_the_points_and_frees_their_room() {
    let folder = Folder::new();
    let store = long_store(&folder, 2, 5_000);
    let freed = store.forget("line", 3_000 * MINUTE, b"after", &Watch::default()).unwrap();
    assert_eq!((freed.points, freed.versions, freed.returned), (6_000, 0, 0));
    // Two versions of 16 bytes each: the minima are null.
    assert!(freed.bytes > 6_000 * 32, "{freed:?}");
    assert_eq!(store.state("line").unwrap().as_deref(), Some(&b"after"[..]));
    assert_eq!(latest(&store).len(), 4_000);
    let again = store.forget("line", 3_000 * MINUTE, b"after", &Watch::default()).unwrap();
    assert_eq!(again, Freed::default());
    let returned = store.give_back(&Watch::default()).unwrap();
    assert!(returned > freed.bytes / 2, "{returned} of {freed:?}");
    assert_eq!(latest(&store).len(), 4_000);
    store.check(&Watch::default()).unwrap();
}

#[test]
fn compacting_keeps_the_newest_versions_alone() {
    let folder = Folder::new();
    let store = long_store(&folder, 3, 1_000);
    let ranges: Ranges = [0..600 * MINUTE, 700 * MINUTE..800 * MINUTE].into_iter().collect();
    let freed = store.compact("line", ranges.clone(), &Watch::default()).unwrap();
    assert_eq!((freed.points, freed.versions), (0, 2 * 2 * 700));
    assert_eq!(latest(&store).len(), 2_000);
    let as_of = |from: i64| {
        let ranges = Range::new(from * MINUTE, 1_000 * MINUTE).into();
        read(&store, PointFilter { ranges, ..all(View::as_of(1), Flagged::Keep) })
    };
    assert_eq!(as_of(700).unwrap_err().kind(), Kind::QueryError);
    assert!(as_of(800).unwrap().iter().all(|row| row.2 == Some(value(1).to_bits())));
    let again = store.compact("line", ranges, &Watch::default()).unwrap();
    assert_eq!(again, Freed::default());
}

#[test]
fn pages_with_only_forgotten_points_are_deleted() {
    let (folder, store) = new_store();
    for (sequence, start) in [(1, 0), (2, 10), (3, 20)] {
        let points = [(1, start, Some(1.0)), (1, start + 10, Some(1.0))];
        Request::whole(sequence, start, start + 10, &points).apply_to(&store, b"").unwrap();
    }
    store.forget("line", 20 * MINUTE, b"", &Watch::default()).unwrap();
    // The range of the second page ends there, and its last point is kept.
    assert_eq!(folder.number("SELECT COUNT(*) FROM pages"), 2);
    assert_eq!(latest(&store).len(), 2);
    store.check(&Watch::default()).unwrap();
}

#[test]
fn forgotten_points_do_not_return() {
    let (_folder, store) = new_store();
    Request::whole(2, 0, 9, &[(1, 1, Some(1.0)), (1, 5, Some(1.0))]).apply_to(&store, b"").unwrap();
    store.forget("line", 4 * MINUTE, b"", &Watch::default()).unwrap();
    let applied = Request::whole(3, 0, 9, &[(1, 1, Some(2.0)), (1, 5, Some(2.0))])
        .apply_to(&store, b"")
        .unwrap();
    assert_eq!((applied.inserted, applied.revised, applied.flagged), (0, 1, 0));
    assert_eq!(latest(&store), [(1, 5, Some(2.0_f64.to_bits()), None)]);
    let late = Request::whole(1, 0, 9, &[(1, 6, Some(2.0))]);
    assert_error(late.apply_to(&store, b""), Kind::StoreError, "arrived too late");
}

#[test]
fn a_stopped_operation_keeps_committed_changes() {
    let folder = Folder::new();
    let store = long_store(&folder, 2, 5_000);
    let stopped = || {
        let watch = Watch::default();
        watch.stop();
        watch
    };
    let is_stopped = |outcome| assert_error(outcome, Kind::StoreError, "was stopped");
    is_stopped(store.check(&stopped()));
    is_stopped(store.backup(&folder.0.join("copy"), None, &stopped()));
    assert!(!folder.names().iter().any(|name| name.contains("copy")));
    is_stopped(store.compact("line", Range::new(0, 99 * MINUTE).into(), &stopped()).map(drop));
    is_stopped(store.forget("line", 4_000 * MINUTE, b"", &stopped()).map(drop));
    is_stopped(store.give_back(&stopped()).map(drop));
    // Earlier points are in the file, but no read returns them.
    assert_eq!(latest(&store).len(), 2_000);
    store.check(&Watch::default()).unwrap();
    assert_eq!(store.forget("line", 4_000 * MINUTE, b"", &Watch::default()).unwrap().points, 8_000);
}

#[test]
fn a_watch_counts_to_the_end() {
    let folder = Folder::new();
    let store = long_store(&folder, 2, 40_000);
    let watched = |work: &dyn Fn(&Watch)| {
        let watch = Watch::default();
        work(&watch);
        watch.progress()
    };
    let (done, total) = watched(&|watch| store.check(watch).unwrap());
    assert_eq!((done, total), (626, 626), "two series in 313 blocks each");
    let (done, total) =
        watched(&|watch| store.backup(&folder.0.join("copy"), None, watch).unwrap());
    assert!(done > 0 && total > done, "the last step of a copy is not counted: {done} of {total}");
    let forgotten = watched(&|watch| {
        store.forget("line", 39_000 * MINUTE, b"", watch).unwrap();
    });
    assert_eq!(forgotten, (20, 20), "stretches of 128 minutes, 16 of them in a directory page");
    let (done, total) = watched(&|watch| {
        store.give_back(watch).unwrap();
    });
    assert!(done > 0 && done == total, "{done} of {total}");
}
