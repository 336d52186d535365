//! A [`Scan`] is a recipe: a query, how to decode its pages, and where to begin. It makes no
//! request until it is read. [`Scan::pages`] starts a new chain each time; [`Scan::collect`] reads
//! one chain to its end and merges it (§4.4, §4.5.3).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::client::Client;
use crate::data::chain::Chain;
use crate::data::cursor::Bookmark;
use crate::data::decode::DecodeSettings;
use crate::data::merge::{Merged, Merger};
use crate::data::page::Page;
use crate::data::query::Query;
use crate::error::{Error, Result};

/// How a scan is read, besides its query.
#[derive(Debug, Clone, Default)]
pub struct ReadSettings {
    /// Stop with an error after so many pages of one chain; never quietly.
    pub max_pages: Option<u64>,
    /// Bounds one read from its first request to its last, waits and token exchange included.
    pub deadline: Option<Duration>,
    /// Keep each page's body as it came.
    pub keep_raw: bool,
}

/// A read that has not happened yet. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Scan {
    client: Client,
    query: Query,
    decode: Arc<DecodeSettings>,
    settings: ReadSettings,
    begin: Option<Bookmark>,
    onto: Option<Arc<Table>>,
}

/// What one whole read gave: every point once, by its highest version, in canonical order.
#[derive(Debug)]
pub struct Table {
    /// The points and what was merged on the way.
    pub merged: Merged,
    /// Where the points come from.
    pub provenance: Provenance,
}

/// Where numbers come from.
#[derive(Debug, Clone)]
pub struct Provenance {
    /// The query, printable.
    pub query: Query,
    /// The service's host.
    pub host: String,
    /// The service's time when the read began.
    pub read_at: Timestamp,
    /// Pages read.
    pub pages: u64,
}

/// A read that failed half way: why, where to go on, and what had been read and paid for.
#[derive(Debug)]
pub struct ReadFailure {
    /// Why.
    pub error: Error,
    /// Where [`Scan::resume`] goes on; `None` where nothing had been read.
    pub bookmark: Option<Bookmark>,
    /// What had been read, merged; `None` where it was handed out page by page.
    pub partial: Option<Table>,
}

impl From<Error> for ReadFailure {
    fn from(error: Error) -> Self {
        Self { error, bookmark: None, partial: None }
    }
}

impl Scan {
    /// A recipe for reading `query` through `client`.
    #[must_use]
    pub fn new(
        client: Client,
        query: Query,
        decode: DecodeSettings,
        settings: ReadSettings,
    ) -> Self {
        Self { client, query, decode: Arc::new(decode), settings, begin: None, onto: None }
    }

    /// The query, immutable.
    #[must_use]
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// The client that reads it.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The same scan going on from `bookmark`; `onto` is what had been read up to there, and is
    /// merged in by [`Scan::collect`].
    ///
    /// # Errors
    /// `BookmarkError` if the bookmark belongs to another query, host or subject.
    pub fn resume(&self, bookmark: Bookmark, onto: Option<Arc<Table>>) -> Result<Self> {
        bookmark.check(&self.client.origin(), &self.query)?;
        Ok(Self { begin: Some(bookmark), onto, ..self.clone() })
    }

    /// A new chain over the query, page by page as they were read.
    ///
    /// # Errors
    /// `BookmarkError` as in [`Scan::resume`].
    pub fn pages(&self) -> Result<Pages> {
        let decode = Arc::clone(&self.decode);
        let mut chain = match &self.begin {
            None => Chain::new(self.query.clone(), decode, self.client.origin()),
            Some(bookmark) => {
                Chain::resume(self.query.clone(), decode, self.client.origin(), bookmark)?
            }
        };
        chain.set_max_pages(self.settings.max_pages);
        chain.keep_raw(self.settings.keep_raw);
        let clock = self.client.time().clock();
        let until = self.settings.deadline.map(|deadline| clock.monotonic() + deadline);
        Ok(Pages {
            client: self.client.clone(),
            chain: Mutex::new(chain),
            until,
            provenance: Provenance {
                query: self.query.clone(),
                host: self.client.host(),
                read_at: self.client.time().now(),
                pages: 0,
            },
        })
    }

    /// Reads the whole, merged. What was read before a failure travels in the failure.
    ///
    /// # Errors
    /// [`ReadFailure`] with whatever ended the chain.
    pub async fn collect(&self) -> Result<Table, ReadFailure> {
        let pages = self.pages()?;
        let mut merger = Merger::new(&self.decode.extra_columns);
        let mut provenance = pages.provenance.clone();
        if let Some(onto) = &self.onto {
            merger.push_merged(&onto.merged)?;
            provenance.pages = onto.provenance.pages;
        }
        loop {
            match pages.next().await {
                Ok(Some(page)) => {
                    provenance.pages += 1;
                    merger.push(page)?;
                }
                Ok(None) => return Ok(Table { merged: merger.finish()?, provenance }),
                Err(mut failure) => {
                    failure.partial = merger.finish().ok().map(|merged| Table { merged, provenance });
                    return Err(failure);
                }
            }
        }
    }
}

/// One chain being followed. Shared by whoever asks: each page is given once.
#[derive(Debug)]
pub struct Pages {
    client: Client,
    chain: Mutex<Chain>,
    until: Option<Duration>,
    provenance: Provenance,
}

impl Pages {
    /// The next page, or `None` after the last.
    ///
    /// # Errors
    /// [`ReadFailure`] with a bookmark; the chain stays where it was.
    pub async fn next(&self) -> Result<Option<Page>, ReadFailure> {
        let mut chain = self.chain.lock().await;
        match chain.next(&self.client.fetcher(self.until)).await {
            Ok(page) => Ok(page),
            Err(error) => Err(ReadFailure { error, bookmark: chain.bookmark(), partial: None }),
        }
    }

    /// Where the pages come from.
    #[must_use]
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }
}
