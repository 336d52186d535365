//! Keys and credentials, as Python sees them.

pub(crate) mod credential;
mod key_place;
mod passphrase;
pub(crate) mod private_key;
mod signer;
