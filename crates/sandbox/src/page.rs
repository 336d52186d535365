//! One page of the data endpoint (§4.3, §4.4): parses the query, decrypts the position in its
//! cursor, and gives the current points and the cursor of the next page.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;

use super::aggregation::floor;
use super::body::{self, Page};
use super::fault::{Effect, Endpoint};
use super::options::{Options, PageCounts};
use super::query::{DataQuery, Defaults, PointQuery};
use super::reply::Reply;
use super::service::Service;
use super::snapshot::{DataSource, Snapshot, block_width};

impl Service {
    pub(super) fn data_page(
        &mut self,
        query: &str,
        subject: &str,
        now: Timestamp,
        effects: &[Effect],
    ) -> Reply {
        let options = Arc::clone(&self.options);
        let defaults = Defaults { now, interval_seconds: self.default_interval_seconds() };
        let query = match DataQuery::parse(query, &options, &defaults) {
            Ok(query) => query,
            Err(detail) => return self.refuse(Endpoint::Data, 400, "invalid_request", &detail),
        };
        let binding = query.binding(subject);
        let cursor = query.cursor.as_ref();
        let Some(position) = cursor.map_or(Some(0), |it| self.seal.open(it, &binding)) else {
            let detail = "the cursor is not valid for this query";
            return self.refuse(Endpoint::Data, 400, "invalid_cursor", detail);
        };
        let points = &query.points;
        let snapshot = self.snapshots.get(&self.source, points, &options, now.as_microsecond());
        let snapshot = match snapshot {
            Ok(snapshot) => snapshot,
            Err(detail) => return self.refuse(Endpoint::Data, 400, "invalid_request", &detail),
        };
        let (mut rows, mut next) = snapshot.page(position, query.page_size, points, &options);
        if effects.iter().any(|effect| matches!(effect, Effect::EmptyPage)) {
            (rows, next) = (0..0, Some(position));
        }
        let sealed = next.map(|next| self.seal.seal(next, &binding));
        if matches!(sealed, Some(None)) {
            return self.refuse(Endpoint::Data, 500, "server_error", "no random bytes");
        }
        let next = self.issue_cursor(sealed.flatten(), &query, &binding, effects);
        self.stats.points_sent += rows.len() as u64;
        let envelopes = envelopes(&snapshot, rows, points, &options);
        let page =
            Page { snapshot: &snapshot, envelopes: &envelopes, next_cursor: next.as_deref() };
        Reply::json(200, body::page(&page, &options))
    }

    pub(super) fn default_interval_seconds(&self) -> u32 {
        let loaded = match &self.source {
            DataSource::Loaded(dataset) => dataset.default_interval_seconds(),
            DataSource::Generated(_) => None,
        };
        loaded.unwrap_or(self.options.default_interval_seconds)
    }

    /// The cursor to send. It is kept for effects that send an old cursor again.
    fn issue_cursor(
        &mut self,
        mut next: Option<String>,
        query: &DataQuery,
        binding: &[u8],
        effects: &[Effect],
    ) -> Option<String> {
        let issued = self.issued_cursors.entry(binding.to_vec()).or_default();
        if query.cursor.is_none() {
            issued.clear();
        }
        for effect in effects {
            match effect {
                Effect::RepeatCursor if query.cursor.is_some() => next.clone_from(&query.cursor),
                Effect::CycleCursors(back) => {
                    let old = issued.len().checked_sub(*back).and_then(|at| issued.get(at));
                    next = old.cloned().or(next);
                }
                _ => {}
            }
        }
        match &next {
            Some(next) => issued.push(next.clone()),
            // The chain has ended: its cursors are not needed any more.
            None => {
                self.issued_cursors.remove(binding);
            }
        }
        next
    }
}

/// The rows of a page by envelope: one for each series, or for each series and block of time if
/// pages count envelopes.
fn envelopes(
    snapshot: &Snapshot,
    rows: Range<usize>,
    query: &PointQuery,
    options: &Options,
) -> Vec<Vec<usize>> {
    let mut envelopes: Vec<Vec<usize>> = Vec::new();
    let mut index_of = HashMap::new();
    for at in rows {
        let row = &snapshot.rows[at];
        let block = match options.page_counts {
            PageCounts::Points => 0,
            PageCounts::Envelopes => floor(row.timestamp, block_width(query, options)),
        };
        let index = *index_of.entry((row.series, block)).or_insert(envelopes.len());
        if index == envelopes.len() {
            envelopes.push(Vec::new());
        }
        envelopes[index].push(at);
    }
    envelopes
}
