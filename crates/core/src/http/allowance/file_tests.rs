use std::fs;

use super::*;
use crate::http::allowance::count::Terms;
use crate::http::allowance::ledger::{Ledger, Outcome};
use crate::http::allowance::local::LocalLedger;
use crate::http::allowance::test_moments::{SILENT, moment, now, reading, timestamp};
use crate::http::test_server::{TestFolder, assert_error};

const NOON: &str = "2026-11-01T12:00:00Z";

struct Folder(TestFolder);

impl Folder {
    fn new() -> Self {
        Self(TestFolder::new())
    }

    fn file(&self) -> PathBuf {
        self.0.join("ledger.txt")
    }

    /// Opens the ledger as another process would.
    fn open(&self, limit: Option<u64>) -> LocalLedger {
        LocalLedger::in_file(&self.file(), plant(), Terms { limit, resets: None })
            .opened()
            .expect("a ledger")
    }
}

fn plant() -> Integration {
    Integration::new("https://customer.example.com", "subject-1")
}

fn is_damaged(bytes: &[u8]) -> bool {
    matches!(contents_of(bytes), Err(LedgerFailure::Damaged))
}

fn named(path: &Path, integration: Integration) -> crate::error::Result<LocalLedger> {
    LocalLedger::in_file(path, integration, Terms::default()).opened()
}

fn in_default_file(path: Option<&Path>) -> LocalLedger {
    let ledger = LocalLedger::in_default_file(path, plant(), Terms::default());
    ledger.opened().expect("no limit")
}

fn spend(ledger: &dyn Ledger, when: &str, requests: u64) {
    for _ in 0..requests {
        let request = ledger.reserve(now(when), 0).expect("something is left");
        ledger.settle(request, SILENT, now(when));
    }
}

fn used(ledger: &dyn Ledger, when: &str) -> u64 {
    ledger.state(now(when)).expect("a state").used
}

#[test]
fn b5_each_client_has_its_own_limit_and_all_share_the_count() {
    let folder = Folder::new();
    spend(&folder.open(None), NOON, 3);
    let frugal = folder.open(Some(4));
    spend(&frugal, NOON, 1);
    assert_eq!(frugal.reserve(now(NOON), 0).expect_err("spent").kind(), Kind::AllowanceExhausted);
    spend(&folder.open(Some(5)), NOON, 1);
    assert_eq!(frugal.state(now(NOON)).expect("a state").left, Some(0));
}

#[test]
fn b10_s7_any_flipped_bit_is_detected() {
    let folder = Folder::new();
    let ledger = folder.open(Some(1_000));
    let length = fs::read(folder.file()).expect("a file").len();
    spend(&ledger, NOON, 3);
    ledger.pause_tokens(Duration::MAX, now(NOON)).expect("kept");
    ledger.pin(Duration::from_nanos(61_200_123_456_789), now(NOON)).expect("kept");
    ledger.observe(reading("2026-11-09T05:00:00Z", now(NOON)), now(NOON));
    let text = fs::read(folder.file()).expect("a file");
    assert_eq!(text.len(), length, "one write replaces it");
    for bit in 0..text.len() * 8 {
        let mut bytes = text.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(is_damaged(&bytes), "bit {bit}");
    }
    for length in 1..text.len() {
        assert!(is_damaged(&text[..length]), "{length} bytes");
    }
    for other in
        [b"x".to_vec(), [&text[..], b"\n"].concat(), vec![b'a'; 100_000], vec![0; 512], Vec::new()]
    {
        fs::write(folder.file(), &other).expect("written");
        let outcomes = [
            ledger.reserve(now(NOON), 0).err(),
            ledger.state(now(NOON)).err(),
            ledger.count_token_request(now(NOON)).err(),
            ledger.token_pause(now(NOON)).err(),
            named(&folder.file(), plant()).err(),
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
fn b10_a_missing_file_is_created() {
    let folder = Folder::new();
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
fn b9_b22_a_new_ledger_is_whole_and_threads_count_every_request_once() {
    let folder = Folder::new();
    let path = folder.file();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| spend(&folder.open(None), NOON, 50));
        }
        // Readers see no file or a complete ledger.
        scope.spawn(|| while !fs::read(&path).is_ok_and(|bytes| contents_of(&bytes).is_ok()) {});
    });
    assert_eq!(used(&folder.open(None), NOON), 400);
    let names: Vec<_> = fs::read_dir(&*folder.0).expect("a folder").collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[cfg(unix)]
#[test]
fn a_new_ledger_is_of_its_owner_alone_and_made_where_a_link_says() {
    use std::os::unix::fs::{MetadataExt as _, symlink};
    let folder = Folder::new();
    spend(&folder.open(None), NOON, 1);
    let metadata = folder.file().metadata().expect("a file");
    assert_eq!((metadata.mode() & 0o777, metadata.nlink()), (0o600, 1));
    // A link to a file that does not exist yet.
    let link = folder.0.join("link");
    symlink("target.txt", &link).expect("a link");
    spend(&named(&link, plant()).expect("a ledger"), NOON, 1);
    assert!(folder.0.join("target.txt").is_file() && link.is_symlink());
}

#[test]
fn b21_s8_a_ledger_of_another_form_is_refused_and_kept() {
    let folder = Folder::new();
    let text = sealed("\"form\":7,\"anything\":\"else\"}\n");
    fs::write(folder.file(), &text).expect("written");
    assert_error(named(&folder.file(), plant()), Kind::StoreError, "newer siteline (form 7)");
    assert_eq!(fs::read_to_string(folder.file()).expect("a file"), text);
}

#[test]
fn a_ledger_of_another_integration_is_refused() {
    let folder = Folder::new();
    folder.open(None);
    let other = Integration::new("https://customer.example.com", "subject-2");
    assert_error(named(&folder.file(), other), Kind::StoreError, "another base_url and subject");
}

#[test]
fn s5_if_no_ledger_can_be_created_the_error_names_the_path() {
    let folder = Folder::new();
    let mut wrong = vec![folder.0.join("absent").join("ledger.txt"), folder.0.to_path_buf()];
    wrong.push(if cfg!(windows) { r"\\.\NUL" } else { "/dev/null" }.into());
    let absent = folder.0.join("absent");
    for path in wrong {
        let error = named(&path, plant()).expect_err("no file");
        let missing = format!("its folder {} does not exist", absent.display());
        let is_absent = path.starts_with(&absent);
        assert_eq!(error.context().message.contains(&missing), is_absent, "{error}");
        assert_eq!(error.kind(), Kind::StoreError);
        assert!(error.context().message.contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn a_lock_that_is_not_released_is_an_error_and_nothing_is_counted() {
    let folder = Folder::new();
    let mut ledger = folder.open(None);
    ledger.file.as_mut().expect("a file").lock_wait = Duration::from_micros(50);
    let stopped = OpenOptions::new().read(true).write(true).open(folder.file()).expect("the file");
    stopped.lock().expect("the lock");
    for error in [ledger.reserve(now(NOON), 0).err(), ledger.state(now(NOON)).err()] {
        assert_eq!(error.expect("locked").kind(), Kind::StoreBusy);
    }
    drop(stopped);
    assert_eq!(used(&ledger, NOON), 0);
}

#[test]
fn the_first_request_creates_the_default_ledger() {
    let folder = Folder::new();
    let state = folder.0.join("state").join("siteline").join(plant().file_name());
    let ledger = in_default_file(Some(&state));
    assert_eq!(used(&ledger, NOON), 0);
    assert!(!folder.0.join("state").exists());
    spend(&ledger, NOON, 2);
    assert_eq!(used(&in_default_file(Some(&state)), NOON), 2);
    fs::write(&state, "x").expect("written");
    let third = in_default_file(Some(&state));
    for error in [ledger.state(now(NOON)).err(), third.state(now(NOON)).err()] {
        assert_eq!(error.expect("damaged").kind(), Kind::StoreCorrupt);
    }
    assert_eq!(third.reserve(now(NOON), 0).expect_err("damaged").kind(), Kind::StoreCorrupt);
}

#[test]
fn if_the_default_file_cannot_be_created_requests_are_counted_in_memory() {
    let folder = Folder::new();
    fs::write(folder.file(), "in the way").expect("written");
    for path in [Some(folder.file().join("ledger.txt")), None] {
        let ledger = in_default_file(path.as_deref());
        assert_eq!(used(&ledger, NOON), 0);
        for _ in 0..2 {
            assert_eq!(ledger.begin_token_request(now(NOON)).expect("memory"), 0, "it is alone");
            ledger.count_token_request(now(NOON)).expect("memory");
        }
        spend(&ledger, NOON, 2);
        let unsent = ledger.reserve(now(NOON), 0).expect("memory");
        ledger.settle(unsent, Outcome::Unsent, now(NOON));
        let state = ledger.state(now(NOON)).expect("memory");
        assert_eq!((state.used, state.token_requests), (2, 2));
    }
}

#[cfg(unix)]
#[test]
fn b10_a_pipe_in_the_place_of_a_ledger_is_an_error_and_nobody_waits() {
    let folder = Folder::new();
    nix::unistd::mkfifo(&folder.file(), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let ledger = LocalLedger::in_file(&folder.file(), plant(), Terms::default());
    for error in [ledger.state(now(NOON)).err(), ledger.reserve(now(NOON), 0).err()] {
        let error = error.expect("no file");
        assert!(error.context().message.contains("not a regular file"), "{error}");
    }
}

#[test]
fn the_ledger_of_an_integration_is_found_again_under_its_name() {
    // The first eight bytes of `printf 'https://customer.example.com\nsubject-1' | sha256sum`.
    assert_eq!(plant().file_name(), "ledger-0c6f867699df4905.txt");
    for (base_url, subject) in
        [("https://customer.example.com", "subject-2"), ("https://other.example.com", "subject-1")]
    {
        assert_ne!(Integration::new(base_url, subject).file_name(), plant().file_name());
    }
}

#[test]
fn another_process_finds_all_that_the_default_ledger_was_told() {
    let folder = Folder::new();
    let other = || in_default_file(Some(&folder.file()));
    let ledger = other();
    // The wall clock is wrong by a day. Two replies show the service's time.
    let off = moment(1, NOON, "2026-11-02T12:00:00Z");
    for _ in 0..2 {
        ledger.observe(reading(NOON, off), off);
    }
    assert_eq!(other().service_time(off).expect("a time"), timestamp(NOON));
    let begun = [&ledger, &other(), &ledger].map(|one| one.begin_token_request(off).expect("kept"));
    assert_eq!(begun, [0, 1, 2]);
    ledger.pause_tokens(Duration::from_secs(60), off).expect("kept");
    let pause = (Duration::from_secs(60), timestamp("2026-11-01T12:01:00Z"));
    assert_eq!(other().token_pause(off).expect("a pause"), Some(pause));
    ledger.pin(Duration::from_secs(2 * 3_600), off).expect("kept");
    let state = other().state(off).expect("a state");
    assert_eq!((state.left, state.resets_at), (Some(0), timestamp("2026-11-01T14:00:00Z")));
}

#[test]
fn s5_an_error_says_whose_the_file_or_its_folder_is_where_permission_is_missing() {
    let folder = Folder::new();
    let ledger = LedgerFile::new(&folder.file(), plant());
    folder.open(None);
    let failed = |kind: ErrorKind| LedgerFailure::System(kind.into());
    let text = ledger.error(&failed(ErrorKind::PermissionDenied)).context().message.clone();
    assert!(text.ends_with(&format!("denied: {}", owner_text(&folder.file()))), "{text}");
    // A folder that may not be entered hides its content, so the error names the folder.
    let hidden = folder.0.join("absent").join("ledger.txt");
    let hidden = LedgerFile::new(&hidden, plant());
    let text = hidden.error(&failed(ErrorKind::PermissionDenied)).context().message.clone();
    let place = format!(" at {}: {}", folder.0.display(), owner_text(&folder.0));
    assert!(text.ends_with(&place), "{text}");
    for other in [failed(ErrorKind::StorageFull), LedgerFailure::Locked] {
        let text = ledger.error(&other).context().message.clone();
        assert!(!text.contains("this process runs as"), "{text}");
    }
    let text = ledger.error(&failed(ErrorKind::StorageFull)).context().message.clone();
    assert!(text.ends_with(&ErrorKind::StorageFull.to_string()), "nothing follows: {text}");
}

#[test]
fn b5_the_error_distinguishes_reserved_from_used_requests() {
    let ledger = LocalLedger::in_memory(Terms { limit: Some(3), resets: None });
    let error = ledger.reserve(now(NOON), 3).expect_err("all are kept");
    assert_eq!(error.kind(), Kind::AllowanceExhausted);
    assert!(
        error.context().message.contains("last 3 requests of the daily allowance are reserved"),
        "{error}"
    );
    drop(ledger.reserve(now(NOON), 2).expect("one is not kept"));
    spend(&ledger, NOON, 2);
    let error = ledger.reserve(now(NOON), 2).expect_err("nothing is left");
    assert!(error.context().message.contains("used up: 3 of 3"), "{error}");
    assert_eq!(error.context().retry_at, Some(timestamp("2026-11-02T00:00:00Z")));
    assert!(error.context().unsent);
    assert_eq!(ledger.state(now(NOON)).expect("memory").left, Some(0));
    let pinned = LocalLedger::in_memory(Terms::default());
    pinned.pin(Duration::from_secs(60), now(NOON)).expect("memory");
    let error = pinned.reserve(now(NOON), 0).expect_err("the service refuses");
    assert!(error.context().message.contains("the service refuses more after 0"), "{error}");
}
