//! One page of the data endpoint (§4.3, §4.4): the query, the position in its cursor, the page as
//! the data stand at this moment, and the cursor to the next one.

use jiff::Timestamp;

use super::answer::{Answer, Holdings};
use super::fault::{Act, Endpoint};
use super::options::{PageCounts, ServiceShape};
use super::query::{DataQuery, Defaults};
use super::render::{self, PageView};
use super::reply::Reply;
use super::service::Service;

impl Service {
    pub(super) fn data_page(
        &mut self,
        query: &str,
        subject: &str,
        now: Timestamp,
        faults: &[Act],
    ) -> Reply {
        let defaults = Defaults { now, interval_seconds: self.default_interval_seconds() };
        let query = match DataQuery::parse(query, &self.options, &defaults) {
            Ok(query) => query,
            Err(detail) => return self.refuse(Endpoint::Data, 400, "invalid_request", &detail),
        };
        let binding = query.binding(subject);
        let cursor = query.cursor.as_ref();
        let Some(position) = cursor.map_or(Some(0), |it| self.seal.open(it, &binding)) else {
            let detail = "the cursor is not valid for this query";
            return self.refuse(Endpoint::Data, 400, "invalid_cursor", detail);
        };
        let shape = self.options.shape.clone();
        let question = &query.question;
        let asked = now.as_microsecond();
        let answer = match self.answers.get(&mut self.holdings, question, &shape, asked) {
            Ok(answer) => answer,
            Err(detail) => return self.refuse(Endpoint::Data, 400, "invalid_request", &detail),
        };
        let (mut rows, mut next) = answer.page(position, query.page_size, question, &shape);
        if faults.iter().any(|act| matches!(act, Act::EmptyPage)) {
            (rows, next) = (0..0, Some(position));
        }
        let sealed = next.map(|next| self.seal.seal(next, &binding));
        if matches!(sealed, Some(None)) {
            return self.refuse(Endpoint::Data, 500, "server_error", "no random bytes");
        }
        let next = self.cursor_under_faults(sealed.flatten(), &query, &binding, faults);
        self.stats.points_sent += rows.len() as u64;
        let envelopes = envelopes(&answer, rows, question.interval, &shape);
        let view =
            PageView { answer: &answer, envelopes: &envelopes, next_cursor: next.as_deref() };
        Reply::json(200, render::page(&view, &shape))
    }

    pub(super) fn default_interval_seconds(&self) -> u32 {
        let loaded = match &self.holdings {
            Holdings::Loaded(loaded) => loaded.default_interval_seconds(),
            Holdings::Generated(_) => None,
        };
        loaded.unwrap_or(self.options.default_interval_seconds)
    }

    /// The cursor to send; it is also kept, for faults that give an old one once more.
    fn cursor_under_faults(
        &mut self,
        mut next: Option<String>,
        query: &DataQuery,
        binding: &[u8],
        faults: &[Act],
    ) -> Option<String> {
        let given = self.given.entry(binding.to_vec()).or_default();
        if query.cursor.is_none() {
            given.clear();
        }
        for act in faults {
            match act {
                Act::RepeatCursor if query.cursor.is_some() => next.clone_from(&query.cursor),
                Act::CycleCursors(back) => {
                    let old = given.len().checked_sub(*back).and_then(|at| given.get(at));
                    next = old.cloned().or(next);
                }
                _ => {}
            }
        }
        match &next {
            Some(next) => given.push(next.clone()),
            // The chain is at its end: nobody asks for its cursors any more.
            None => {
                self.given.remove(binding);
            }
        }
        next
    }
}

/// The rows of a page by envelope: one for each series on it, or the ones that the page counts.
fn envelopes(
    answer: &Answer,
    rows: std::ops::Range<usize>,
    interval: i64,
    shape: &ServiceShape,
) -> Vec<Vec<usize>> {
    let block = interval.saturating_mul(i64::from(shape.envelope_points.max(1)));
    let mut envelopes: Vec<Vec<usize>> = Vec::new();
    let mut place_of = std::collections::HashMap::new();
    for at in rows {
        let row = &answer.rows[at];
        let part = match shape.page_counts {
            PageCounts::Points => 0,
            PageCounts::Envelopes => super::aggregate::floor(row.timestamp, block),
        };
        let place = *place_of.entry((row.series, part)).or_insert(envelopes.len());
        if place == envelopes.len() {
            envelopes.push(Vec::new());
        }
        envelopes[place].push(at);
    }
    envelopes
}
