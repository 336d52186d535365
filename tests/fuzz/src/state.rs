//! Reads arbitrary text, with the right checksum, as the state of a feed. One that is accepted is the same
//! after it was written and read again, and what is asked of it does not panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siteline_core::sync::FeedState;

fuzz_target!(|line: &str| {
    let _ = FeedState::from_bytes(line.as_bytes());
    let sealed = format!("{line}\ncrc32 {:08x}\n", libdeflater::crc32(line.as_bytes()));
    if let Ok(state) = FeedState::from_bytes(sealed.as_bytes()) {
        assert!(state.sequence().checked_add(1 << 32).is_some());
        let _ = (state.settled_through(), state.unfinished_chains(), format!("{state:?}"));
        let again = FeedState::from_bytes(&state.to_bytes()).expect("what was written is read");
        assert!(again == state, "another state was written");
    }
});
