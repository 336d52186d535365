//! Reads arbitrary fields, with the right checksum, as a bookmark. One that is accepted is read back
//! unchanged, and the counts of a chain that goes on from it do not overflow.
#![no_main]

use aws_lc_rs::digest;
use libfuzzer_sys::fuzz_target;
use siteline_core::data::Bookmark;

fuzz_target!(|fields: &[u8]| {
    let _ = Bookmark::from_bytes(fields);
    let mut bytes = [b"SLBM\x03", fields].concat();
    bytes.extend_from_slice(digest::digest(&digest::SHA256, &bytes).as_ref());
    if let Ok(bookmark) = Bookmark::from_bytes(&bytes) {
        assert!(bookmark.pages().checked_add(1 << 62).is_some());
        let written = bookmark.to_bytes();
        let read = Bookmark::from_bytes(&written);
        assert!(read.is_ok_and(|read| read.to_bytes() == written), "another bookmark was written");
        assert!(!format!("{bookmark:?}").is_empty());
    }
});
