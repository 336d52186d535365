//! The name of a ledger, the default ledger, what its errors say, and older forms.

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
    let open = || DefaultLedger::new(Some(&folder.file()), plant(), Terms::default());
    let ledger = open().expect("no limit");
    let other = || open().expect("no limit");
    // The wall clock is a day off: two replies show the service's time.
    let off = moment(1, NOON, "2026-11-02T12:00:00Z");
    for _ in 0..2 {
        ledger.observe(reading(NOON, off), off);
    }
    assert_eq!(other().service_time(off).expect("a time"), at(NOON));
    let begun = [&ledger, &other(), &ledger].map(|one| one.begin_token_request(off).expect("kept"));
    assert_eq!(begun, [0, 1, 2]);
    ledger.pause_tokens(Duration::from_secs(60), off).expect("kept");
    let pause = (Duration::from_secs(60), at("2026-11-01T12:01:00Z"));
    assert_eq!(other().token_pause(off).expect("a pause"), Some(pause));
    ledger.pin(Duration::from_secs(2 * 3_600), off).expect("kept");
    let state = other().state(off).expect("a state");
    assert_eq!((state.left, state.resets_at), (Some(0), at("2026-11-01T14:00:00Z")));
}

#[test]
fn s5_an_error_says_whose_the_file_or_its_folder_is_where_permission_is_missing() {
    let folder = Folder::new();
    let ledger = folder.open(None);
    let failed = |kind: ErrorKind| {
        LedgerFailure::File(FileFailure::System { action: "opened", error: kind.into() })
    };
    let text = ledger.error(&failed(ErrorKind::PermissionDenied)).context().message.clone();
    assert!(text.ends_with(&format!("denied: {}", owner_text(&folder.file()))), "{text}");
    // What is in a folder that may not be entered is not seen: the folder is named.
    let hidden = folder.0.join("absent").join("ledger.txt");
    let hidden = FileLedger::unopened(&hidden, plant(), Terms::default());
    let text = hidden.error(&failed(ErrorKind::PermissionDenied)).context().message.clone();
    let place = format!(" at {}: {}", folder.0.display(), owner_text(&folder.0));
    assert!(text.ends_with(&place), "{text}");
    for other in [failed(ErrorKind::StorageFull), FileFailure::Locked.into()] {
        let text = ledger.error(&other).context().message.clone();
        assert!(!text.contains("this process runs as"), "{text}");
    }
    let text = ledger.error(&failed(ErrorKind::StorageFull)).context().message.clone();
    assert!(text.ends_with(&ErrorKind::StorageFull.to_string()), "nothing follows: {text}");
}

#[test]
fn s5_a_ledger_that_cannot_be_opened_for_another_reason_than_its_absence_is_not_made() {
    let folder = Folder::new();
    fs::write(folder.file(), "in the way").expect("written");
    let path = folder.file().join("ledger.txt");
    let error = FileLedger::open(&path, plant(), Terms::default()).expect_err("no folder");
    assert!(error.context().message.ends_with("not a directory"), "{error}");
}

#[test]
fn b21_the_requests_of_a_used_up_ledger_of_the_first_form_are_of_its_day() {
    let folder = Folder::new();
    let body = format!(
        "siteline ledger, form 1\n\
         integration {}\n\
         requests                   25 since 2026-11-01T00:00:00Z             \n\
         tokens                      3 since 2026-11-01T00:00:00Z             \n\
         days begin 00:00:00Z assumed\n\
         no request before -                                 said -                                \n\
         no token before   -                                 said -                                \n",
        plant().0
    );
    let text = format!("{body}check {:08x}\n", libdeflater::crc32(body.as_bytes()));
    fs::write(folder.file(), text).expect("written");
    let ledger = folder.open(Some(25));
    let morning = now("2026-11-02T09:00:00Z");
    let asks = ledger.reserve(morning, 0).expect("it asks");
    ledger.settle(asks, SILENT, morning);
    assert_eq!(used(&ledger, "2026-11-02T09:00:00Z"), 1, "the one that asked");
}

/// As siteline 0.2.0 wrote it, but for blanks at the ends of lines: five requests of twenty have no reply that shows their day.
const THIRD_FORM: &str = "siteline ledger, form 3
integration 0123456789abcdef
requests                   20 since 2026-11-01T00:00:00Z
tokens                      1 since 2026-11-01T00:00:00Z
days begin 00:00:00Z assumed
no request before -                                 said -
no token before   -                                 said -
before                      0 since -
serials                   20 day                    0 before                    0 placed                   15
early                   18 open                    2 old                   20 uncertain                    0
clock read    2026-11-01T12:00:00Z              start 00000000000000000000000000000001 at        1793534400000
other -                                 start 00000000000000000000000000000000 at                    0
doubtful -                                 start 00000000000000000000000000000000 at                    0
asked -                                 start 00000000000000000000000000000000 at                    0
hour                        1 since 2026-11-01T12:00:00Z
starts                      1 since 2026-11-01T12:00:00Z
";

#[test]
fn b21_a_ledger_of_the_second_or_third_form_goes_on_and_is_written_anew() {
    let second =
        THIRD_FORM[..THIRD_FORM.find("hour ").expect("a line")].replace("form 3", "form 2");
    for body in [THIRD_FORM, &second] {
        let folder = Folder::new();
        let body = body.replace("0123456789abcdef", &plant().0);
        let text = format!("{body}check {:08x}\n", libdeflater::crc32(body.as_bytes()));
        fs::write(folder.file(), text).expect("written");
        let ledger = folder.open(Some(25));
        assert_eq!(used(&ledger, NOON), 20);
        ledger.count_token_request(now(NOON)).expect("counted");
        let state = folder.open(None).state(now(NOON)).expect("a state");
        assert_eq!(state.token_requests_this_hour, if body.contains("form 3") { 2 } else { 1 });
        // The service's clock is stepped: those five may be of the new day.
        for _ in 0..2 {
            ledger.observe(reading("2026-11-02T09:00:00Z", now(NOON)), now(NOON));
        }
        assert_eq!(used(&ledger, NOON), 5);
        let text = fs::read_to_string(folder.file()).expect("text");
        assert!(text.starts_with("siteline ledger, form 4\n"), "{text}");
    }
}
