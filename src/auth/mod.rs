//! Keys and credentials, as Python sees them.

pub(crate) mod argument;
pub(crate) mod credential;
mod key_place;
pub(crate) mod mutual_tls;
mod passphrase;
pub(crate) mod private_key;
mod signer;
