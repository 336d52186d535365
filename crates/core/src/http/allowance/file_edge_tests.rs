//! The name of a ledger, the default ledger, and its errors.

use super::*;

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
    let open = || LocalLedger::open_default(Some(&folder.file()), plant(), Terms::default());
    let ledger = open().expect("no limit");
    let other = || open().expect("no limit");
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
    let failed = |kind: ErrorKind| LedgerFailure::System { action: "opened", error: kind.into() };
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
