//! [`Components`]: the result of parsing a key of any format.

use zeroize::Zeroizing;

/// The numbers of an RSA private key, big-endian (RFC 8017, A.1.2).
pub(super) struct Components {
    pub(super) n: Vec<u8>,
    pub(super) e: Vec<u8>,
    pub(super) d: Secret,
    pub(super) p: Secret,
    pub(super) q: Secret,
    pub(super) dp: Secret,
    pub(super) dq: Secret,
    pub(super) qi: Secret,
}

/// Bytes that are wiped when they are dropped.
pub(super) type Secret = Zeroizing<Vec<u8>>;
