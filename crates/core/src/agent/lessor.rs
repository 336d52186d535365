//! [`Lessor`]: what an agent needs of the client that has the key and the ledger.

use futures_util::future::BoxFuture;

use crate::auth::{AccessToken, ScopeSet};
use crate::clock::Clock;
use crate::error::Result;
use crate::http::Ledger;

/// Has the key and the count that others use.
pub trait Lessor: Send + Sync {
    /// The address of the service.
    fn base_url(&self) -> String;

    /// The subject of the credential.
    fn subject(&self) -> String;

    /// The scopes that may be asked for.
    fn scopes(&self) -> ScopeSet;

    /// The clock of the count.
    fn clock(&self) -> &Clock;

    /// Counts the requests.
    fn ledger(&self) -> &dyn Ledger;

    /// A token for these scopes, after it is certain that a request may be sent that leaves so many;
    /// `None` for a request that is not counted.
    fn token<'a>(
        &'a self,
        scopes: &'a ScopeSet,
        must_remain: Option<u64>,
    ) -> BoxFuture<'a, Result<AccessToken>>;

    /// Drops the token for these scopes, if it has this digest.
    fn refuse(&self, scopes: &ScopeSet, digest: &str);
}
