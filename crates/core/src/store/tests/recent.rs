//! Recent points: pages with a few points of each of many series, and their move into blocks.

use super::model::Model;
use super::*;

/// Few points of at least two blocks become recent points. They move at two per block.
const EAGER: RecentLimits = RecentLimits { few: 4, many: 2, dense: 2, most: 1_000 };

fn rows_and_blocks(folder: &Folder) -> (i64, i64) {
    let count = |table| folder.number(&format!("SELECT COUNT(*) FROM {table}"));
    (count("recent"), count("contents"))
}

/// A page with one point at this minute in each series.
fn wide(sequence: u64, series: u8, minute: i64) -> Request {
    let points: Vec<Point> = (0..series).map(|s| (s, minute, Some(value(sequence)))).collect();
    Request { is_last: false, first: 1, ..Request::whole(sequence, 0, 600, &points) }
}

#[test]
fn recent_points_move_when_a_stretch_has_many() {
    // Series and minute of each page, then the rows and blocks. Blocks begin at minutes 0 and 128.
    let dense = vec![
        (3, 126, (1, 0)),
        (3, 127, (2, 0)),
        // The previous stretch has two points of each series, and this page does not touch it.
        (3, 128, (1, 3)),
        (3, 129, (2, 3)),
        // Two points of each series again, but this page touches the stretch.
        (3, 130, (3, 3)),
        (3, 0, (1, 6)),
    ];
    let most = vec![
        (3, 1, (1, 0)),
        (3, 200, (2, 0)),
        (3, 300, (3, 0)),
        (3, 400, (1, 9)),
        // The touched stretch has thirteen points, so all stretches move.
        (10, 401, (0, 19)),
    ];
    let few = RecentLimits { dense: 100, most: 10, ..EAGER };
    for (limits, pages) in [(EAGER, dense), (few, most)] {
        let folder = Folder::new();
        let (store, mut model) = (folder.store_with(limits), Model::default());
        for (sequence, (series, minute, expected)) in (1..).zip(pages) {
            let request = wide(sequence, series, minute);
            let applied = request.apply_to(&store, b"").unwrap();
            assert_eq!((applied.inserted, applied.revised), (series.into(), 0));
            model.add(&request);
            assert_eq!(rows_and_blocks(&folder), expected, "{sequence}");
            model.assert_agrees(&store);
        }
        drop(store);
        model.assert_agrees(&folder.store());
    }
}

#[test]
fn s11_a_late_page_moves_all_recent_points_first() {
    let folder = Folder::new();
    let (store, mut model) = (folder.store_with(EAGER), Model::default());
    for request in [wide(1, 3, 1), wide(4, 3, 2), wide(3, 3, 2), wide(5, 3, 2)] {
        request.apply_to(&store, b"").unwrap();
        model.add(&request);
        model.assert_agrees(&store);
    }
    assert_eq!(rows_and_blocks(&folder), (1, 3));
}

#[test]
fn a_failed_page_moves_no_recent_points() {
    let folder = Folder::new();
    let (store, mut model) = (folder.store_with(EAGER), Model::default());
    for request in [wide(1, 3, 1), wide(2, 3, 2)] {
        request.apply_to(&store, b"before").unwrap();
        model.add(&request);
    }
    // The page has a new series.
    let moves = wide(3, 4, 200);
    let tables = ["recent", "contents", "series", "pages", "states"];
    let statements = tables.map(|table| format!("INSERT ON {table}"));
    for statement in statements.iter().map(String::as_str).chain(["DELETE ON recent"]) {
        folder.execute(&format!(
            "CREATE TRIGGER stop BEFORE {statement} BEGIN SELECT RAISE(ABORT, 'no'); END"
        ));
        for _ in 0..2 {
            moves.apply_to(&store, b"after").unwrap_err();
            model.assert_agrees(&store);
            assert_eq!(rows_and_blocks(&folder), (2, 0), "{statement}");
        }
        folder.execute("DROP TRIGGER stop");
    }
    moves.apply_to(&store, b"after").unwrap();
    model.add(&moves);
    model.assert_agrees(&store);
    assert_eq!(rows_and_blocks(&folder), (1, 3));
}

#[test]
fn an_open_read_keeps_only_chosen_series() {
    let folder = Folder::new();
    let store = folder.store_with(EAGER);
    for (sequence, minute) in [(1, 126), (2, 127), (3, 128)] {
        wide(sequence, 3, minute).apply_to(&store, b"").unwrap();
    }
    assert_eq!(rows_and_blocks(&folder), (1, 3));
    let tags = ["t1", "t2"].map(str::to_owned).to_vec();
    let ids = [None, None, None, None, Some(tags)];
    let two = SeriesFilter { ids, ..SeriesFilter::default() };
    let filter = PointFilter { series: two, ..all(View::LATEST, Flagged::Keep) };
    for (filter, kept, expected) in [
        (all(View::LATEST, Flagged::Keep), vec![1], vec![1]),
        (all(View::LATEST, Flagged::Keep), vec![2, 0, 9], vec![0, 2]),
        (all(View::LATEST, Flagged::Keep), vec![], vec![]),
        // Series outside the filter are not kept.
        (filter, vec![0, 1], vec![1]),
    ] {
        let keeping = || {
            let mut reader = store.read("line", filter.clone()).unwrap();
            let known: Vec<_> = (0..3).map(identity).collect();
            assert_eq!(reader.identities(), known);
            reader.keep_series(&kept);
            reader
        };
        let batch = keeping().next_batch(1_000).unwrap();
        let read: Vec<(u8, i64)> =
            batch.iter().flat_map(rows).map(|(series, minute, _, _)| (series, minute)).collect();
        let points = expected.iter().flat_map(|s| [126, 127, 128].map(|minute| (*s, minute)));
        assert_eq!(read, points.collect::<Vec<_>>());
        assert_eq!(keeping().count_points().unwrap(), read.len() as u64);
    }
}
