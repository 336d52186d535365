//! Reads arbitrary bytes as a private key, with a passphrase and without: PEM, DER or JWK. No error holds a
//! part of what was read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siteline_core::auth::PrivateKey;

/// Shorter parts of an input, such as the name of a PEM label, may be quoted.
const QUOTED: usize = 48;

fuzz_target!(|bytes: &[u8]| {
    for passphrase in [None, Some(&b"correct horse"[..])] {
        match PrivateKey::parse(bytes, passphrase) {
            Ok(key) => assert!((2_048..=8_192).contains(&key.bits())),
            Err(error) => {
                let text = error.to_string();
                let mut parts =
                    bytes.windows(QUOTED).filter_map(|part| std::str::from_utf8(part).ok());
                assert!(!parts.any(|part| text.contains(part)), "the error quotes the input");
            }
        }
    }
});
