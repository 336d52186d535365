use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::http::allowance::default::DefaultLedger;
use crate::http::allowance::time_of_day::TimeOfDay;

const NOON: &str = "2026-11-01T12:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().expect("a timestamp")
}

/// A temporary folder, removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "siteline-ledger-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::SeqCst)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("ledger.txt")
    }

    /// Opens the ledger as another process would.
    fn open(&self, limit: Option<u64>) -> FileLedger {
        FileLedger::open(&self.file(), plant(), Terms { limit, resets: None }).expect("a ledger")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn plant() -> Integration {
    Integration::new("https://customer.example.com", "subject-1")
}

fn spend(ledger: &dyn Ledger, now: &str, requests: u64) {
    for _ in 0..requests {
        drop(ledger.reserve(at(now), 0).expect("something is left"));
    }
}

fn used(ledger: &dyn Ledger, now: &str) -> u64 {
    ledger.state(at(now)).expect("a state").used
}

#[test]
fn b7_a_request_that_was_counted_and_never_sent_stays_counted() {
    let folder = Folder::new();
    {
        let killed = folder.open(None);
        let reservation = killed.reserve(at(NOON), 0).expect("no limit");
        drop((killed, reservation));
    }
    let next = folder.open(None);
    assert_eq!(used(&next, NOON), 1);
    let unsent = next.reserve(at(NOON), 0).expect("no limit");
    next.give_back(unsent);
    assert_eq!(used(&next, NOON), 1);
}

#[test]
fn b9_threads_with_separate_ledgers_count_every_request_once() {
    let folder = Folder::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| spend(&folder.open(None), NOON, 50));
        }
    });
    assert_eq!(used(&folder.open(None), NOON), 400);
}

#[test]
fn b5_each_client_has_its_own_limit_and_all_share_the_count() {
    let folder = Folder::new();
    spend(&folder.open(None), NOON, 3);
    let frugal = folder.open(Some(4));
    spend(&frugal, NOON, 1);
    assert_eq!(frugal.reserve(at(NOON), 0).expect_err("spent").kind(), Kind::AllowanceExhausted);
    spend(&folder.open(Some(5)), NOON, 1);
    assert_eq!(frugal.state(at(NOON)).expect("a state").left, Some(0));
}

#[test]
fn b8_midnight_and_a_configured_time_of_day_start_a_new_count_in_the_file() {
    let folder = Folder::new();
    spend(&folder.open(None), "2026-11-01T23:59:59Z", 3);
    assert_eq!(used(&folder.open(None), "2026-11-02T00:00:00Z"), 0);
    spend(&folder.open(None), "2026-11-02T00:00:00Z", 2);
    assert_eq!(used(&folder.open(None), "2026-11-01T23:59:59Z"), 2, "no day is opened twice");
    let resets = Some(TimeOfDay::parse("06:00Z").expect("a time"));
    let stated = FileLedger::open(&folder.file(), plant(), Terms { limit: None, resets });
    spend(&stated.expect("a ledger"), "2026-11-02T07:00:00Z", 1);
    assert_eq!(used(&folder.open(None), "2026-11-03T05:59:59Z"), 3, "all processes use it");
    assert_eq!(used(&folder.open(None), "2026-11-03T06:00:00Z"), 0);
}

#[test]
fn b11_a_pin_applies_to_other_processes_until_its_end() {
    let folder = Folder::new();
    let pinned = folder.open(Some(1_000));
    spend(&pinned, NOON, 500);
    pinned.pin_until(at("2026-11-02T05:00:00Z"), at(NOON)).expect("kept");
    drop(pinned);
    let other = folder.open(Some(1_000));
    assert_eq!(other.state(at("2026-11-02T04:59:59Z")).expect("a state").left, Some(0));
    let error = other.reserve(at("2026-11-02T04:59:59Z"), 0).expect_err("pinned");
    assert_eq!(error.context().retry_at, Some(at("2026-11-02T05:00:00Z")));
    spend(&other, "2026-11-02T05:00:00Z", 1);
    let state = folder.open(Some(1_000)).state(at("2026-11-02T05:00:00Z")).expect("a state");
    assert_eq!((state.left, state.resets_at), (Some(999), at("2026-11-03T05:00:00Z")));
}

#[test]
fn t9_a_token_pause_and_token_requests_are_shared() {
    let folder = Folder::new();
    let paused = folder.open(None);
    paused.count_token_request(at(NOON)).expect("counted");
    paused.pause_tokens(at("2026-11-01T12:02:00Z"), at(NOON)).expect("kept");
    let other = folder.open(None);
    assert_eq!(other.token_pause(at(NOON)).expect("a pause"), Some(at("2026-11-01T12:02:00Z")));
    assert_eq!(other.token_pause(at("2026-11-01T12:02:00Z")).expect("none"), None);
    other.count_token_request(at("2026-11-01T12:02:00Z")).expect("counted");
    assert_eq!(paused.state(at(NOON)).expect("a state").token_requests, 2);
}

#[test]
fn b10_s7_any_flipped_bit_is_detected() {
    let folder = Folder::new();
    let ledger = folder.open(Some(1_000));
    spend(&ledger, NOON, 3);
    ledger.pin_until(at("2026-11-02T05:00:00.123456789Z"), at(NOON)).expect("kept");
    let text = fs::read(folder.file()).expect("a file");
    assert!(text.len() < 512, "less than a sector");
    for bit in 0..text.len() * 8 {
        let mut bytes = text.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(text::read(&bytes).err(), Some(TextFault::Damaged), "bit {bit}");
    }
    for length in 1..text.len() {
        assert_eq!(text::read(&text[..length]).err(), Some(TextFault::Damaged), "{length} bytes");
    }
    for other in [b"x".to_vec(), [&text[..], b"\n"].concat(), vec![b'a'; 100_000], vec![0; 512]] {
        fs::write(folder.file(), &other).expect("written");
        let outcomes = [
            ledger.reserve(at(NOON), 0).err(),
            ledger.state(at(NOON)).err(),
            ledger.count_token_request(at(NOON)).err(),
            ledger.token_pause(at(NOON)).err(),
            FileLedger::open(&folder.file(), plant(), Terms::default()).err(),
        ];
        for error in outcomes {
            let error = error.expect("damaged");
            assert_eq!(error.kind(), Kind::StoreCorrupt);
            assert!(error.context().message.contains("ledger.txt") && error.context().unsent);
        }
        assert_eq!(fs::read(folder.file()).expect("a file"), other, "it is not changed");
    }
}

#[test]
fn b10_an_empty_file_is_a_count_of_zero_and_a_missing_one_is_created() {
    let folder = Folder::new();
    fs::write(folder.file(), "").expect("written");
    let ledger = folder.open(None);
    spend(&ledger, NOON, 1);
    assert_eq!(used(&folder.open(None), NOON), 1);
    fs::remove_file(folder.file()).expect("removed");
    assert_eq!(used(&ledger, NOON), 0);
    assert!(!folder.file().exists(), "reading creates no file");
    spend(&ledger, NOON, 1);
    assert_eq!(used(&folder.open(None), NOON), 1);
}

#[test]
fn s8_a_ledger_of_a_newer_version_is_reported_as_such() {
    let folder = Folder::new();
    let body = "siteline ledger, form 7\nanything else\n";
    let text = format!("{body}check {:08x}\n", crc32fast::hash(body.as_bytes()));
    fs::write(folder.file(), &text).expect("written");
    let error = FileLedger::open(&folder.file(), plant(), Terms::default()).expect_err("newer");
    assert_eq!(error.kind(), Kind::StoreError);
    assert!(error.context().message.contains("newer siteline (form 7)"), "{error}");
    assert_eq!(fs::read_to_string(folder.file()).expect("a file"), text);
}

#[test]
fn a_ledger_of_another_integration_is_refused() {
    let folder = Folder::new();
    folder.open(None);
    let other = Integration::new("https://customer.example.com", "subject-2");
    let error = FileLedger::open(&folder.file(), other, Terms::default()).expect_err("another's");
    assert_eq!(error.kind(), Kind::StoreError);
    assert!(error.context().message.contains("another base_url and subject"), "{error}");
}

#[test]
fn s5_if_no_ledger_can_be_created_the_error_names_the_path() {
    let folder = Folder::new();
    let mut wrong = vec![folder.0.join("absent").join("ledger.txt"), folder.0.clone()];
    if cfg!(unix) {
        wrong.push("/dev/null".into());
    }
    for path in wrong {
        let error = FileLedger::open(&path, plant(), Terms::default()).expect_err("no file");
        assert_eq!(error.kind(), Kind::StoreError);
        assert!(error.context().message.contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn a_lock_that_is_not_released_is_an_error_and_nothing_is_counted() {
    let folder = Folder::new();
    let mut ledger = folder.open(None);
    ledger.lock_wait = Duration::from_micros(50);
    let stopped = File::open(folder.file()).expect("the file");
    stopped.lock().expect("the lock");
    for error in [ledger.reserve(at(NOON), 0).err(), ledger.state(at(NOON)).err()] {
        assert_eq!(error.expect("locked").kind(), Kind::StoreBusy);
    }
    stopped.unlock().expect("unlocked");
    assert_eq!(used(&ledger, NOON), 0);
}

#[test]
fn every_count_is_written_with_the_same_length_and_read_back() {
    use crate::http::allowance::count::{Count, Origin, Pause, Tally};
    let times = [None, Some(Timestamp::MIN), Some(Timestamp::MAX), Some(at(NOON))];
    let mut lengths = std::collections::BTreeSet::new();
    for since in times {
        for (number, origin) in
            [(0, Origin::Assumed), (17, Origin::Stated), (u64::MAX, Origin::Learnt)]
        {
            let tally = Tally { since, count: number };
            let pause = since.map(|until| Pause { requested_at: at(NOON), until });
            let count = Count {
                requests: tally,
                token_requests: tally,
                day_begins: TimeOfDay::from_timestamp(since.unwrap_or_default()),
                origin,
                pin: pause,
                token_pause: pause,
            };
            let text = text::write(&count, &plant().0);
            lengths.insert(text.len());
            let Ok(read) = text::read(text.as_bytes()) else { panic!("not read: {text}") };
            assert!(read.count == count && read.integration == plant().0, "{text}");
        }
    }
    assert_eq!(lengths.len(), 1, "{lengths:?}");
}

#[test]
fn the_first_request_creates_the_default_ledger() {
    let folder = Folder::new();
    let state = folder.0.join("state").join("siteline").join(plant().file_name());
    let ledger = DefaultLedger::new(Some(&state), plant(), Terms::default());
    assert_eq!(used(&ledger, NOON), 0);
    assert!(!folder.0.join("state").exists());
    spend(&ledger, NOON, 2);
    let other = DefaultLedger::new(Some(&state), plant(), Terms::default());
    assert_eq!(used(&other, NOON), 2);
    fs::write(&state, "x").expect("written");
    let third = DefaultLedger::new(Some(&state), plant(), Terms::default());
    for error in [ledger.state(at(NOON)).err(), third.state(at(NOON)).err()] {
        assert_eq!(error.expect("damaged").kind(), Kind::StoreCorrupt);
    }
    assert_eq!(third.reserve(at(NOON), 0).expect_err("damaged").kind(), Kind::StoreCorrupt);
}

#[test]
fn if_the_default_file_cannot_be_created_requests_are_counted_in_memory() {
    let folder = Folder::new();
    fs::write(folder.file(), "in the way").expect("written");
    for path in [Some(folder.file().join("ledger.txt")), None] {
        let ledger = DefaultLedger::new(path.as_deref(), plant(), Terms::default());
        assert_eq!(used(&ledger, NOON), 0);
        ledger.count_token_request(at(NOON)).expect("memory");
        spend(&ledger, NOON, 2);
        ledger.give_back(ledger.reserve(at(NOON), 0).expect("memory"));
        let state = ledger.state(at(NOON)).expect("memory");
        assert_eq!((state.used, state.token_requests), (2, 1));
    }
}
