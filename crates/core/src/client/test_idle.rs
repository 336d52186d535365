//! Fixtures for the tests of other modules.

use super::{Client, ClientSettings};
use crate::auth::test_harness;
use crate::http::BaseUrl;

/// A client at noon that must not send a request.
pub(crate) fn idle_client() -> Client {
    let base = BaseUrl::parse("http://127.0.0.1:9", false).expect("an address");
    let mut settings = ClientSettings::new(base, test_harness::credential());
    settings.clock = test_harness::noon();
    Client::new(settings).expect("settings")
}
