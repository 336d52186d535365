//! The discovery request for the names of series in a read. It is sent together with the first
//! page. If it fails or is slow, the read continues without names.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Shared, WeakShared};
use tokio::time::timeout;

use super::background::BackgroundTask;
use super::send::Client;
use crate::error::Result;
use crate::http::Deadline;
use crate::lock::Mutex;
use crate::store::Store;

/// How long a store uses stored names.
pub(crate) const DAY: Duration = Duration::from_secs(86_400);
/// How long a read waits for the discovery response after its last page.
const PATIENCE: Duration = Duration::from_secs(5);

/// A discovery request of several reads. Dropping the last reference aborts it.
type NameRequest = Shared<BackgroundTask<()>>;

pub(super) type NamesInFlight = Mutex<Option<WeakShared<BackgroundTask<()>>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamesFor {
    Nothing,
    Labels,
    /// The store keeps the names for a day.
    Store,
}

pub struct ReadNames {
    client: Client,
    wanted: NamesFor,
    request: Mutex<Option<NameRequest>>,
}

impl ReadNames {
    /// Sends no request yet.
    #[must_use]
    pub fn new(client: Client, wanted: NamesFor) -> Self {
        Self { client, wanted, request: Mutex::default() }
    }

    /// Requests discovery in the background if it is due. Called within the runtime.
    pub fn begin(&self) {
        let mut request = self.request.lock();
        if request.is_none() {
            *request = self.request_if_due();
        }
    }

    /// The discovery request in flight, or a new one; `None` if the process is exiting.
    fn request_if_due(&self) -> Option<NameRequest> {
        // Until this lock is held, another read may receive the response.
        let mut in_flight = self.client.names_in_flight().lock();
        if !self.is_due() {
            return None;
        }
        if let Some(request) = in_flight.as_ref().and_then(WeakShared::upgrade) {
            return Some(request);
        }
        let client = self.client.clone();
        // The client stores the response or the error.
        let ask = async move { drop(client.discover(None).await) };
        let request = BackgroundTask::start(&*self.client.settings().spawner, ask)?.shared();
        *in_flight = request.downgrade();
        Some(request)
    }

    pub fn is_settled(&self) -> bool {
        self.request.lock().is_none() && !self.is_due()
    }

    fn is_due(&self) -> bool {
        let (listed, now) = (self.client.listed(), self.client.time().clock().monotonic());
        match self.wanted {
            NamesFor::Nothing => false,
            NamesFor::Labels => listed.is_due(now, self.client.seen()),
            NamesFor::Store => listed.is_older(now, DAY),
        }
    }

    /// Waits briefly for the response. Returns whether names are missing for a reason that was not
    /// reported yet.
    pub async fn settle(&self, deadline: Deadline) -> bool {
        // A page may have contained a series that is new to the client.
        self.begin();
        let request = self.request.lock().clone();
        let Some(request) = request else { return false };
        let limit = deadline.remaining(self.client.time().clock());
        let patience = limit.map_or(PATIENCE, |left| left.min(PATIENCE));
        if timeout(patience, request).await.is_err() {
            self.client.give_up_names("no reply arrived before the read ended".to_owned());
        }
        self.abort();
        self.client.listed().is_new_failure()
    }

    /// Aborts the request, unless another read waits for it.
    pub fn abort(&self) {
        drop(self.request.lock().take());
    }
}

/// Names are requested at most once a day.
pub fn names_are_due(client: &Client, store: &Store) -> Result<bool> {
    let day = DAY.as_micros().try_into().unwrap_or(i64::MAX);
    let asked_at = store.names_asked_at(&client.origin())?;
    Ok(asked_at.is_none_or(|at| client.now().as_microsecond() >= at.saturating_add(day)))
}

/// Saves the latest discovery response in the store, or the reason why there is none.
pub fn keep_names(client: &Client, store: &Store) -> Result<()> {
    let listed = client.listed();
    let (raw, refusal) = (listed.raw(), listed.refusal());
    let found = match (&raw, refusal) {
        (Some((body, shape)), None) => Ok((&body[..], shape.as_ref())),
        (_, refusal) => Err(refusal.unwrap_or_else(|| "discovery was not read".to_owned())),
    };
    store.keep_names(&client.origin(), client.now(), found)
}
