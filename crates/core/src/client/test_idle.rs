//! For the tests of other rooms: a client whose service is never asked, and what this thread warned of.

use super::{Client, ClientSettings};
use crate::auth::test_harness;
use crate::http::BaseUrl;

/// A client at noon, of an address where nothing listens.
pub(crate) fn idle_client() -> Client {
    let base = BaseUrl::parse("http://127.0.0.1:9", false).expect("an address");
    let mut settings = ClientSettings::new(base, test_harness::credential());
    settings.clock = test_harness::noon();
    Client::new(settings).expect("settings")
}

/// The warnings of this thread since the previous call; for tests that run on one thread.
pub(crate) fn warnings() -> Vec<String> {
    test_harness::warnings()
}
