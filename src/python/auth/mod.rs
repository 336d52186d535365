//! Keys and credentials, as Python sees them.

pub(crate) mod credential;
mod passphrase;
pub(crate) mod private_key;
mod signer;
