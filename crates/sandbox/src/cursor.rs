//! Cursors: encrypted positions (§4.4). A cursor contains the number of items that were sent so
//! far. All other parameters and the subject are authenticated with it, so that a cursor of another
//! query cannot be opened. All cursors are different, and all need URL-encoding.

use aws_lc_rs::aead::{AES_256_GCM, Aad, RandomizedNonceKey};
use aws_lc_rs::{aead::Nonce, rand};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::SandboxError;

/// The start of each cursor: characters that a careless client encodes wrongly or loses.
const PREFIX: &str = "~&%";
const NONCE_LENGTH: usize = 12;
const POSITION_LENGTH: usize = 8;

pub(super) struct CursorSeal(RandomizedNonceKey);

impl CursorSeal {
    pub(super) fn new() -> Result<Self, SandboxError> {
        let failed = |_| SandboxError::new("no random bytes for the cursor key");
        let mut key = [0_u8; 32];
        rand::fill(&mut key).map_err(failed)?;
        RandomizedNonceKey::new(&AES_256_GCM, &key).map(Self).map_err(failed)
    }

    /// `None` only if the cryptographic library fails.
    pub(super) fn seal(&self, position: u64, binding: &[u8]) -> Option<String> {
        loop {
            let mut octets = position.to_be_bytes().to_vec();
            // One more octet makes base64 add padding.
            octets.push(0);
            let nonce = self.0.seal_in_place_append_tag(Aad::from(binding), &mut octets).ok()?;
            let sealed = [nonce.as_ref().as_slice(), &octets].concat();
            let text = STANDARD.encode(sealed);
            // Every cursor must have characters with a special meaning in a URL.
            if text.contains('+') && text.contains('/') {
                return Some(format!("{PREFIX}{text}"));
            }
        }
    }

    /// Returns `None` for a cursor of another sandbox, query or subject, and for a changed one.
    pub(super) fn open(&self, cursor: &str, binding: &[u8]) -> Option<u64> {
        let sealed = STANDARD.decode(cursor.strip_prefix(PREFIX)?).ok()?;
        let (nonce, octets) = sealed.split_at_checked(NONCE_LENGTH)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut octets = octets.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::from(binding), &mut octets).ok()?;
        let position = plain.get(..POSITION_LENGTH)?;
        position.try_into().ok().map(u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_cursors_are_the_same_and_all_need_encoding() {
        let seal = CursorSeal::new().expect("a seal");
        let cursors: std::collections::HashSet<_> =
            (0..100).map(|_| seal.seal(42, b"").expect("a cursor")).collect();
        assert_eq!(cursors.len(), 100);
        assert!(cursors.iter().all(|cursor| "~&%+/=".chars().all(|c| cursor.contains(c))));
    }
}
