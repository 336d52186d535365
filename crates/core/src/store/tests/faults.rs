//! Damage: with one bit flipped in a closed store, a read returns the right points or fails.

use super::*;
use crate::test_kit;

#[derive(Debug, PartialEq)]
struct Contents {
    feeds: Vec<String>,
    states: Vec<Option<Vec<u8>>>,
    sequences: Vec<u64>,
    views: Vec<Vec<Shown>>,
    delays: Delays,
    held: Vec<bool>,
}

/// A closed store, its bytes, and all that can be read from it.
fn made() -> (Folder, Vec<u8>, Contents) {
    let folder = Folder::new();
    // Some points are recent, the others are in blocks.
    let limits = RecentLimits { few: 16, many: 2, dense: 4, most: 1_000 };
    let store = folder.store_with(limits);
    store.apply("empty", None, b"nothing yet").unwrap();
    for sequence in 1..=12_u64 {
        let points: Vec<Point> = (0..60)
            .map(|minute| minute * 37 % 1_100)
            .filter(|minute| (minute + sequence.cast_signed()) % 5 > 0)
            .map(|minute| (u8::try_from(minute % 3).unwrap(), minute, Some(value(sequence / 4))))
            .collect();
        let request = Request::whole(sequence, 0, 1_100, &points);
        let request = Request { first: sequence - (sequence + 1) % 2, ..request };
        let is_last = sequence % 2 == 0;
        Request { is_last, ..request }.apply_to(&store, &sequence.to_le_bytes()).unwrap();
    }
    drop(store);
    for table in ["recent", "contents"] {
        assert!(folder.number(&format!("SELECT COUNT(*) FROM {table}")) > 0, "{table}");
    }
    let bytes = std::fs::read(folder.file()).unwrap();
    let truth = read_all(&folder.file(), None).unwrap();
    assert_eq!(read_all(&folder.file(), Some(&truth)).unwrap(), truth);
    (folder, bytes, truth)
}

/// Reads everything from the store at a path. Each view agrees with `truth`, even after an error.
fn read_all(path: &Path, truth: Option<&Contents>) -> Result<Contents> {
    let store = Store::open(path)?;
    let views = [View::LATEST, View::as_of(5), View::changed_since(5)];
    let views = views.map(|view| read(&store, all(view, Flagged::Keep)));
    if let Some(truth) = truth {
        for (view, truth) in views.iter().zip(&truth.views) {
            assert!(view.as_ref().map_or(true, |view| view == truth));
        }
    }
    Ok(Contents {
        feeds: store.feeds()?,
        states: vec![store.state("line")?, store.state("empty")?, store.state("none")?],
        sequences: vec![store.sequence("line")?, store.sequence_at("line", time_of(10_007))?],
        views: views.into_iter().collect::<Result<_>>()?,
        delays: store.delays("line", MINUTE)?,
        held: store
            .holds("line", &[Range::new(0, MINUTE), Range::new(1_200 * MINUTE, 1_300 * MINUTE)])?,
    })
}

fn flip(bytes: &[u8], path: &Path, bit: usize, truth: &Contents) {
    let mut flipped = bytes.to_vec();
    flipped[bit / 8] ^= 1 << (bit % 8);
    std::fs::write(path, &flipped).unwrap();
    for beside in ["-wal", "-shm", "-journal"] {
        let _gone = std::fs::remove_file(format!("{}{beside}", path.display()));
    }
    match read_all(path, Some(truth)) {
        Ok(now) => assert_eq!(&now, truth, "bit {bit}"),
        Err(error) => assert_damage(&error, bit),
    }
}

fn assert_damage(error: &Error, place: usize) {
    let kind = error.kind();
    assert!(matches!(kind, Kind::StoreError | Kind::StoreCorrupt), "{place}: {error:?}");
}

#[test]
fn s7_one_flipped_bit_is_detected_or_changes_nothing() {
    let (folder, bytes, truth) = made();
    assert!(truth.views[0].len() > 40 && !truth.delays.revisions.is_empty(), "{truth:?}");
    let mut random = fastrand::Rng::with_seed(7);
    let header = 0..100 * 8;
    let others: Vec<usize> = (0..1_500).map(|_| random.usize(0..bytes.len() * 8)).collect();
    let used: Vec<usize> =
        (0..bytes.len() * 8).filter(|bit| bytes[bit / 8] != 0 && random.u8(..) < 4).collect();
    for bit in header.chain(others).chain(used).step_by(test_kit::step()) {
        flip(&bytes, &folder.file(), bit, &truth);
    }
}

#[test]
fn s7_a_missing_or_an_outdated_row_is_detected() {
    let (folder, bytes, truth) = made();
    let deleted = [
        ("feeds", "name = 'empty'"),
        ("states", "feed = 2"),
        ("series", "id = 3"),
        ("shelves", "shelf = 0"),
        ("contents", "id = 2"),
        ("pages", "sequence = 4"),
        ("store", "TRUE"),
        ("recent", "sequence = 12"),
        ("recent", "TRUE"),
    ];
    let deleted = deleted.map(|(table, row)| format!("DELETE FROM {table} WHERE {row}"));
    for change in deleted.iter().map(String::as_str).chain([
        // Another series of the same length. A directory page without blocks.
        "UPDATE series SET id = 9 WHERE id = 3",
        "UPDATE series SET identity =
            CAST(substr(identity, 1, length(identity) - 1) || x'39' AS BLOB) WHERE id = 2",
        "UPDATE shelves SET entries = x'00' WHERE shelf = 0",
        "UPDATE contents SET bytes = (SELECT bytes FROM contents WHERE id = 1) WHERE id = 2",
        "UPDATE pages SET read_at = read_at + 1 WHERE sequence = 4",
        "UPDATE recent SET sequence = 99 WHERE sequence = 12",
        "UPDATE recent SET points = (SELECT points FROM recent WHERE sequence = 12)",
        "UPDATE feeds SET recent = 0 WHERE name = 'line'",
        "UPDATE feeds SET sequence = 3 WHERE name = 'line'",
        "UPDATE feeds SET name = 'lime' WHERE name = 'line'",
        "UPDATE store SET made_by = 'another'",
        "CREATE TABLE more (a)",
    ]) {
        std::fs::write(folder.file(), &bytes).unwrap();
        folder.execute(change);
        assert_error(read_all(&folder.file(), Some(&truth)), Kind::StoreCorrupt, "plant.siteline");
    }
    for change in ["DELETE FROM seen WHERE sequence = 4", "UPDATE seen SET runs = x'00'"] {
        std::fs::write(folder.file(), &bytes).unwrap();
        folder.execute(change);
        let store = folder.store();
        assert_error(store.check(&Watch::default()), Kind::StoreCorrupt, "points of a page");
        let late = Request { first: 11, ..Request::whole(13, 0, 9, &[]) };
        assert_eq!(late.apply_to(&store, b"").unwrap_err().kind(), Kind::StoreCorrupt, "{change}");
        assert_eq!(store.sequence("line").unwrap(), 12);
    }
}

#[test]
fn s7_a_truncated_file_is_detected() {
    let (folder, bytes, truth) = made();
    for length in [1, 50, 100, 4_096, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(folder.file(), &bytes[..length]).unwrap();
        match read_all(&folder.file(), Some(&truth)) {
            // The last byte of a page may be unused.
            Ok(now) => assert!(now == truth && length == bytes.len() - 1),
            Err(error) => assert_damage(&error, length),
        }
    }
}

/// State, sequence number, points and flags of a feed.
type FeedState = (Option<Vec<u8>>, u64, [Vec<Shown>; 2]);

fn feed_state(store: &Store) -> Result<FeedState> {
    let kept = read(store, all(View::LATEST, Flagged::Keep))?;
    let only = read(store, all(View::LATEST, Flagged::Only))?;
    Ok((store.state("line")?, store.sequence("line")?, [kept, only]))
}

#[test]
fn s7_a_flipped_bit_in_the_log_loses_only_newest_pages() {
    let (folder, copy) = (Folder::new(), Folder::new());
    let store = folder.store();
    let mut past = Vec::new();
    for sequence in 1..=8_u64 {
        let minutes = 0..30 + sequence.cast_signed();
        let points: Vec<Point> =
            minutes.filter(|m| m % 7 > 0).map(|m| (1, m, Some(value(sequence / 3)))).collect();
        let request = Request::whole(sequence, 0, 40, &points[usize::from(sequence == 6)..]);
        request.apply_to(&store, &sequence.to_le_bytes()).unwrap();
        past.push(feed_state(&store).unwrap());
    }
    let beside = |folder: &Folder, end: &str| format!("{}{end}", folder.file().display());
    // The file and its log after a kill. SQLite rebuilds the shared memory.
    let (main, log) = (folder.file(), std::fs::read(beside(&folder, "-wal")).unwrap());
    let main = std::fs::read(main).unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    let header = 0..32 * 8;
    let others: Vec<usize> = (0..400).map(|_| random.usize(0..log.len() * 8)).collect();
    let (mut newest, mut older, mut refused) = (0, 0, 0);
    for bit in header.chain(others).step_by(test_kit::step()).map(Some).chain([None]) {
        let mut flipped = log.clone();
        if let Some(bit) = bit {
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
        let _gone = std::fs::remove_file(beside(&copy, "-shm"));
        std::fs::write(copy.file(), &main).unwrap();
        std::fs::write(beside(&copy, "-wal"), &flipped).unwrap();
        match Store::open(&copy.file())
            .and_then(|store| Ok((feed_state(&store)?, store.check(&Watch::default())?)))
        {
            Ok((now, ())) if past.last() == Some(&now) => newest += 1,
            Ok((now, ())) => {
                assert!(past.contains(&now), "bit {bit:?} gives a state that never existed");
                older += 1;
            }
            // The feed is not in the file yet, or no longer.
            Err(error) => {
                assert_damage(&error, bit.expect("no flipped bit"));
                refused += 1;
            }
        }
    }
    assert!(
        newest > 0 && older > test_kit::trials(50) && refused > 0,
        "{newest} {older} {refused}"
    );
}

/// A log is written again from its start. After a power loss, a part of its first commit may be from
/// the earlier log.
#[test]
fn s7_a_torn_first_commit_of_a_log_is_ignored() {
    const FRAME: usize = 24 + 4_096;
    let (folder, copy) = (Folder::new(), Folder::new());
    let (store, log) = (folder.store(), crate::files::beside(&folder.file(), "-wal"));
    let mut write = (0_u8..).map(|number| {
        store.apply("line", None, &vec![number; 1 << 20]).unwrap();
        (number, std::fs::read(&log).unwrap())
    });
    let mut before = write.next().unwrap();
    let mut torn = loop {
        let (number, after) = write.next().unwrap();
        if after[16..24] != before.1[16..24] {
            break after;
        }
        before = (number, after);
    };
    let frames = torn[32..].chunks_mut(FRAME).zip(before.1[32..].chunks(FRAME));
    // The pages that may have the mark.
    let marks = frames.filter(|(frame, _)| (2..=4).contains(&frame[3]));
    let replace =
        |(frame, earlier): (&mut [u8], &[u8])| frame[24..].copy_from_slice(&earlier[24..]);
    assert!(marks.map(replace).count() > 0);
    std::fs::copy(folder.file(), copy.file()).unwrap();
    std::fs::write(crate::files::beside(&copy.file(), "-wal"), &torn).unwrap();
    let store = copy.store();
    assert_eq!(store.state("line").unwrap().unwrap(), vec![before.0; 1 << 20]);
    drop(store);
    assert_eq!(copy.names(), [""]);
}
