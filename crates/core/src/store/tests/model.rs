//! Compares the store with a naive model: every observation of every point, in any order.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// All page requests, ordered by their numbers.
#[derive(Debug, Default)]
pub(super) struct Model {
    requests: BTreeMap<u64, Request>,
}

/// The last known state of a point: the bits of its value, and whether it is flagged.
type Known = Option<(Option<u64>, bool)>;
/// The value of each point after each request that changed it.
type Histories = BTreeMap<(u8, i64), Vec<(u64, Known)>>;

impl Model {
    pub(super) fn add(&mut self, request: &Request) {
        self.requests.insert(request.sequence, request.clone());
    }

    fn histories(&self) -> Histories {
        let mut histories = Histories::new();
        let brought = self.requests.values().flat_map(|request| &request.points);
        for (series, minute, _) in brought {
            histories.insert((*series, *minute), Vec::new());
        }
        for (point, history) in &mut histories {
            let mut known: Known = None;
            for request in self.requests.values() {
                let before = known;
                let is_it = |brought: &&Point| (brought.0, brought.1) == *point;
                if let Some(point) = request.points.iter().rev().find(is_it) {
                    known = Some((point.2.map(f64::to_bits), false));
                } else if request.is_last && self.missed(request, *point) {
                    known = known.map(|(value, _)| (value, true));
                }
                if known != before {
                    history.push((request.sequence, known));
                }
            }
        }
        histories
    }

    /// Whether no page brought the point since the start of the chain that `last` ended.
    fn missed(&self, last: &Request, point: (u8, i64)) -> bool {
        let since = self.requests.range(last.first..=last.sequence);
        let mut brought = since.flat_map(|(_, page)| &page.points);
        (last.start..last.end).contains(&point.1) && !brought.any(|p| (p.0, p.1) == point)
    }

    pub(super) fn read(&self, view: View, flagged: Flagged) -> Vec<Shown> {
        select(&self.histories(), view, flagged)
    }

    /// Asserts that the store agrees with the model in every view.
    pub(super) fn assert_agrees(&self, store: &Store) {
        let histories = self.histories();
        let past = self.requests.keys().copied().chain([0, 1_000_000]);
        let mut views = vec![View::LATEST];
        views.extend(past.flat_map(|sequence| {
            let between = View::changed_since(sequence).fixed(sequence + 2);
            [View::as_of(sequence), View::changed_since(sequence), between]
        }));
        for view in views {
            for flagged in [Flagged::Keep, Flagged::Drop, Flagged::Only] {
                let shown = select(&histories, view, flagged);
                let read = read(store, all(view, flagged)).unwrap();
                assert_eq!(read, shown, "{view:?} {flagged:?} of {self:#?}");
                assert_parts_agree(&histories, store, view, flagged, &shown);
            }
        }
        store.check(&Watch::default()).unwrap();
    }
}

fn select(histories: &Histories, view: View, flagged: Flagged) -> Vec<Shown> {
    let mut shown = Vec::new();
    for ((series, minute), history) in histories {
        let as_of = |sequence| history.iter().rfind(|(version, _)| *version <= sequence);
        let last = view.until.map_or_else(|| history.last(), as_of);
        let last = last.filter(|last| view.since.is_none_or(|since| last.0 > since));
        let since = view.since.map(as_of);
        let Some((_, Some((value, absent)))) = last else { continue };
        let change = since.map(|before| match before {
            _ if *absent => "withdrawn",
            None | Some((_, None)) => "new",
            Some((_, Some((_, true)))) => "returned",
            Some(_) => "revised",
        });
        if flagged == Flagged::Keep || (flagged == Flagged::Only) == *absent {
            shown.push((*series, *minute, *value, change.map(str::to_owned)));
        }
    }
    shown
}

fn assert_parts_agree(
    histories: &Histories,
    store: &Store,
    view: View,
    flagged: Flagged,
    shown: &[Shown],
) {
    let present: Vec<u8> = histories.keys().map(|point| point.0).collect();
    let (first, last) = (present.first().copied(), present.last().copied());
    for (series, minutes) in [
        (vec![], None),
        (vec![first, last], None),
        (vec![last], Some((1, 512))),
        (vec![], Some((-128, 128))),
    ] {
        let picked: Vec<u8> = series.iter().flatten().copied().collect();
        let ranges = minutes.map(|(from, to)| Range::new(from * MINUTE, to * MINUTE).into());
        let filter = PointFilter {
            ranges: ranges.unwrap_or_else(Ranges::all),
            series: SeriesFilter {
                series: (!picked.is_empty())
                    .then(|| picked.iter().map(|series| ids_of(*series)).collect()),
                ..SeriesFilter::default()
            },
            ..all(view, flagged)
        };
        let expected: Vec<Shown> = shown
            .iter()
            .filter(|row| picked.is_empty() || picked.contains(&row.0))
            .filter(|row| minutes.is_none_or(|(from, to)| (from..to).contains(&row.1)))
            .cloned()
            .collect();
        let count = store.read("line", filter.clone()).unwrap().count_points().unwrap();
        assert_eq!(count, expected.len() as u64, "{view:?} {flagged:?} {filter:?}");
        assert_eq!(read(store, filter.clone()).unwrap(), expected, "{view:?} {flagged:?}");
        assert_eq!(read_whole(store, filter).unwrap(), expected, "{view:?} {flagged:?}");
    }
}

/// Limits that make points recent and move them after a few pages.
pub(super) fn limits() -> impl Strategy<Value = RecentLimits> {
    let small = (1..6_usize, 0..5_usize, 0..5_usize, 0..25_usize);
    let small = small.prop_map(|(few, many, dense, most)| RecentLimits { few, many, dense, most });
    prop_oneof![3 => small, 1 => Just(RecentLimits::default())]
}

/// Requests of interleaved chains of one to three pages, some unfinished, over overlapping ranges.
pub(super) fn requests(series: u8) -> impl Strategy<Value = Vec<Request>> {
    let value =
        prop_oneof![Just(None), (0..2_u8).prop_map(|v| Some(f64::from(v))), Just(Some(-0.0))];
    // Some minutes are in another block, one is before the epoch.
    let minute = prop_oneof![0..6_i64, Just(-1), 510..514_i64];
    let points = prop::collection::vec((0..series, minute, value), 0..7 * usize::from(series) / 3);
    let chain = (prop::collection::vec(points, 1..4), -2..6_i64, 1..600_i64, 0..4_u8);
    let chains = prop::collection::vec(chain, 1..6);
    (chains, prop::collection::vec(0..2_usize, 18)).prop_map(|(mut chains, picks)| {
        // Interleaves the pages of two chains at a time. `firsts` has their first sequence numbers.
        let mut firsts = vec![0; chains.len()];
        let (mut requests, mut picks) = (Vec::new(), picks.into_iter());
        loop {
            let open: Vec<usize> =
                (0..chains.len()).filter(|number| !chains[*number].0.is_empty()).take(2).collect();
            let pick = picks.next().unwrap_or_default().min(open.len().saturating_sub(1));
            let Some(number) = open.get(pick).copied() else { return requests };
            let (pages, start, length, cut) = &mut chains[number];
            let points = pages.remove(0);
            let sequence = requests.len() as u64 + 1;
            let first = if firsts[number] == 0 { sequence } else { firsts[number] };
            firsts[number] = first;
            let (start, end) = (*start, *start + *length);
            let is_last = pages.is_empty() && *cut > 0;
            requests.push(Request { sequence, first, start, end, is_last, points });
        }
    })
}

proptest! {
    #![proptest_config(crate::test_kit::cases(40))]

    #[test]
    fn a_store_agrees_with_the_model(
        requests in prop_oneof![requests(3), requests(9)], limits in limits(), other in limits(),
    ) {
        let folder = Folder::new();
        // Two writers take turns. Each sees the other's changes.
        let stores = [folder.store_with(limits), folder.store_with(other)];
        let (mut model, store) = (Model::default(), &stores[0]);
        let mut known = 0;
        for request in &requests {
            let turn = usize::from(request.sequence % 5 == 0);
            let applied =
                request.apply_to(&stores[turn], &request.sequence.to_le_bytes()).unwrap();
            model.add(request);
            let now = model.read(View::LATEST, Flagged::Keep).len();
            prop_assert_eq!(applied.inserted, (now - known) as u64);
            known = now;
            let mut points: Vec<(u8, i64)> = request.points.iter().map(|p| (p.0, p.1)).collect();
            points.sort_unstable();
            points.dedup();
            let counted = applied.inserted + applied.revised + applied.unchanged;
            prop_assert_eq!(counted, points.len() as u64);
            let state = store.state("line").unwrap();
            prop_assert_eq!(state, Some(request.sequence.to_le_bytes().to_vec()));
            prop_assert_eq!(store.sequence("line").unwrap(), request.sequence);
        }
        model.assert_agrees(store);
        // Applying a page again, as after a lost commit, changes nothing.
        for request in &requests {
            let again = request.apply_to(store, b"again").unwrap();
            prop_assert_eq!((again.inserted, again.revised, again.flagged), (0, 0, 0));
        }
        model.assert_agrees(store);
        drop(stores);
        model.assert_agrees(&folder.store());
    }

    #[test]
    fn s11_a_late_page_overrides_no_newer_page(
        (requests, order) in prop_oneof![requests(3), requests(9)].prop_flat_map(|requests| {
            let order: Vec<usize> = (0..requests.len()).collect();
            (Just(requests), Just(order).prop_shuffle())
        }),
        limits in limits(),
    ) {
        let folder = Folder::new();
        let (store, mut model) = (folder.store_with(limits), Model::default());
        for index in order {
            requests[index].apply_to(&store, b"state").unwrap();
            model.add(&requests[index]);
            let read = read(&store, all(View::LATEST, Flagged::Keep)).unwrap();
            prop_assert_eq!(read, model.read(View::LATEST, Flagged::Keep), "{:#?}", model);
        }
        model.assert_agrees(&store);
    }
}

#[test]
fn s11_a_page_without_seen_points_is_refused() {
    let (_folder, store) = new_store();
    let newest = super::super::seen_log::KEPT + 20;
    for sequence in (2..20).chain(newest..newest + 64) {
        Request::whole(sequence, 0, 9, &[(1, 1, Some(1.0))]).apply_to(&store, b"").unwrap();
    }
    let late = Request::whole(1, 0, 9, &[(1, 1, Some(2.0))]);
    assert_error(late.apply_to(&store, b"x"), Kind::StoreError, "arrived too late");
    assert_eq!(store.state("line").unwrap(), Some(Vec::new()));
    Request::whole(newest - 1, 0, 9, &[(1, 1, Some(2.0))]).apply_to(&store, b"y").unwrap();
    assert_eq!(latest(&store), [(1, 1, Some(1.0_f64.to_bits()), None)]);
    store.check(&Watch::default()).unwrap();
}
