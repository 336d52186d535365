//! Reads arbitrary bytes as a block of a store: a few of them cannot ask for much memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siteline_core::store::block_times;

fuzz_target!(|bytes: &[u8]| {
    if let Some(times) = block_times(bytes) {
        assert!(times.len() <= (1 << 20) + 64 * bytes.len());
        assert!(times.is_sorted());
    }
});
