//! Locks, busy files, closing, and forks.

use super::*;
use crate::fork::pretend;

#[test]
fn s6_a_second_sync_of_a_feed_is_busy() {
    let folder = Folder::new();
    let (store, other) = (folder.store(), folder.store());
    let held = store.lock("line").unwrap();
    for second in [&store, &other] {
        assert_error(second.lock("line"), Kind::StoreBusy, "plant.siteline");
    }
    let _another = other.lock("line 2 / äöü").unwrap();
    drop(held);
    drop(other.lock("line").unwrap());
}

#[test]
fn s5_a_file_under_another_writer_is_busy() {
    let folder = Folder::new();
    let store = Store::open_as(&folder.file(), StoreOptions::default(), Duration::ZERO).unwrap();
    store.apply("line", None, b"before").unwrap();
    let other = Connection::open(folder.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let request = Request::whole(1, 0, 9, &[(1, 1, Some(1.0))]);
    assert_eq!(request.apply_to(&store, b"after").unwrap_err().kind(), Kind::StoreBusy);
    // Reads are still possible.
    assert_eq!(store.state("line").unwrap().as_deref(), Some(&b"before"[..]));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(request.apply_to(&store, b"after").unwrap().inserted, 1);
}

#[test]
fn the_log_of_an_open_store_stays_short() {
    let (folder, store) = new_store();
    for state in 0..24_u8 {
        store.apply("line", None, &vec![state; 1 << 20]).unwrap();
    }
    let log = crate::files::beside(&folder.file(), "-wal").metadata().unwrap().len();
    assert!(log < 12 << 20, "24 MiB were written: {log}");
}

#[test]
fn eight_threads_may_create_one_store_at_once() {
    for _ in 0..25 {
        let folder = Folder::new();
        std::thread::scope(|scope| {
            for feed in 0..8 {
                let folder = &folder;
                scope.spawn(move || {
                    let name = format!("{feed}");
                    let make = || Store::open(&folder.file())?.apply(&name, None, b"");
                    // On a slow disk another thread may take longer than the busy timeout.
                    while let Err(error) = make() {
                        assert_eq!(error.kind(), Kind::StoreBusy, "{error}");
                    }
                });
            }
        });
        assert_eq!(folder.store().feeds().unwrap().len(), 8);
        folder.store().check(&Watch::default()).unwrap();
    }
}

#[test]
fn after_close_calls_are_refused_and_readers_continue() {
    let (_folder, store) = new_store();
    Request::whole(1, 0, 9, &[(1, 1, Some(1.0))]).apply_to(&store, b"").unwrap();
    let mut reader = store.read("line", all(View::LATEST, Flagged::Keep)).unwrap();
    store.close();
    store.close();
    assert_eq!(reader.next_batch(9).unwrap().unwrap().num_rows(), 1);
    let closed = [
        store.feeds().unwrap_err(),
        store.state("line").unwrap_err(),
        store.lock("line").unwrap_err(),
        store.apply("line", None, b"").unwrap_err(),
        store.read("line", all(View::LATEST, Flagged::Keep)).unwrap_err(),
        store.check(&Watch::default()).unwrap_err(),
    ];
    assert!(closed.iter().all(|error| error.kind() == Kind::ClosedError), "{closed:?}");
}

#[test]
fn r12_a_forked_child_writes_with_its_own_connection() {
    let (_folder, store) = new_store();
    Request::whole(1, 0, 9, &[(1, 1, Some(1.0))]).apply_to(&store, b"parent").unwrap();
    let mut reader = store.read("line", all(View::LATEST, Flagged::Keep)).unwrap();
    let lock = store.lock("line").unwrap();
    let child = pretend(1);
    assert_eq!(reader.next_batch(9).unwrap_err().kind(), Kind::ForkError);
    assert_eq!(store.state("line").unwrap().as_deref(), Some(&b"parent"[..]));
    Request::whole(2, 0, 9, &[(1, 1, Some(2.0))]).apply_to(&store, b"child").unwrap();
    let grandchild = pretend(2);
    Request::whole(3, 0, 9, &[(1, 1, Some(3.0))]).apply_to(&store, b"grandchild").unwrap();
    assert_eq!(store.lock("line").unwrap_err().kind(), Kind::StoreBusy);
    drop((grandchild, child));
    Request::whole(4, 0, 9, &[(1, 1, Some(4.0))]).apply_to(&store, b"parent").unwrap();
    assert_eq!(latest(&store), [(1, 1, Some(4.0_f64.to_bits()), None)]);
    drop(lock);
    drop(store.lock("line").unwrap());
    store.check(&Watch::default()).unwrap();
}

#[test]
fn another_page_with_a_used_number_is_refused() {
    let (_folder, store) = new_store();
    let one = Request::whole(1, 0, 9, &[(1, 1, Some(1.0))]);
    one.apply_to(&store, b"one").unwrap();
    for other in [
        Request { points: Vec::new(), ..one.clone() },
        Request { is_last: false, ..one.clone() },
        Request { end: 8, ..one.clone() },
    ] {
        assert_error(other.apply_to(&store, b"other"), Kind::StoreError, "already stored");
    }
    assert_eq!(one.apply_to(&store, b"again").unwrap().unchanged, 1);
    assert_eq!(store.state("line").unwrap(), Some(b"again".to_vec()));
}

#[test]
fn an_abandoned_chain_flags_nothing() {
    use super::super::seen_log::ABANDONED;
    let (folder, store) = new_store();
    let seen_rows = || folder.number("SELECT COUNT(*) FROM seen");
    let begun = Request { is_last: false, ..Request::whole(1, 0, 9, &[(1, 1, Some(1.0))]) };
    begun.apply_to(&store, b"").unwrap();
    // Sequence numbers may have gaps, so thousands of pages need not be written.
    let one = [(1, 20, Some(2.0))];
    for sequence in ABANDONED - 100..ABANDONED {
        Request::whole(sequence, 20, 29, &one).apply_to(&store, b"").unwrap();
    }
    assert_eq!(seen_rows(), 101, "the chain may still continue");
    for sequence in 2 * ABANDONED..2 * ABANDONED + 100 {
        Request::whole(sequence, 20, 29, &one).apply_to(&store, b"").unwrap();
    }
    assert_eq!(seen_rows(), 100);
    store.check(&Watch::default()).unwrap();
    let ends = Request { first: 1, ..Request::whole(3 * ABANDONED, 0, 9, &[(1, 2, None)]) };
    assert_eq!(ends.apply_to(&store, b"").unwrap().flagged, 0, "its points were deleted");
    assert_eq!(latest(&store).len(), 3);
}
