//! The whole answer to a question, in order, and the part of it that a page holds.

use std::ops::Range;
use std::sync::Arc;

use super::aggregate::{Row, floor};
use super::identity::Identity;
use super::loaded::Loaded;
use super::options::{PageCounts, PointOrder, ServiceShape};
use super::query::Question;
use super::synth::{Plant, READING};

/// Where the data come from.
#[derive(Debug)]
pub(super) enum Holdings {
    Generated(Plant),
    Loaded(Loaded),
}

/// Every point that a question gets at one moment, in the order of the service.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) series: Vec<Identity>,
    pub(super) rows: Vec<Row>,
    /// The first moment at which the answer is another one.
    next_change: i64,
}

impl Holdings {
    /// Answers as of `view`. `Err` is the sentence for the error reply.
    pub(super) fn answer(&mut self, question: &Question, view: i64) -> Result<Answer, String> {
        let mut answer = Answer { series: Vec::new(), rows: Vec::new(), next_change: i64::MAX };
        match self {
            Self::Generated(plant) => {
                if question.interval % READING != 0 {
                    return Err("aggregationIntervalSeconds is no multiple of 10".to_owned());
                }
                for tag in plant.tags() {
                    if let Some(series) = answer.open(question, &tag.identity) {
                        let change = plant.read(tag, series, question, view, &mut answer.rows);
                        answer.next_change = answer.next_change.min(change);
                    }
                }
            }
            Self::Loaded(loaded) => {
                loaded.check_interval(question)?;
                let identities: Vec<_> = loaded.identities().cloned().collect();
                for identity in identities {
                    if let Some(series) = answer.open(question, &identity) {
                        let change =
                            loaded.read(&identity, series, question, view, &mut answer.rows);
                        answer.next_change = answer.next_change.min(change);
                    }
                }
            }
        }
        Ok(answer)
    }
}

impl Answer {
    /// A place for this series, if the question asks for it.
    fn open(&mut self, question: &Question, identity: &Identity) -> Option<u32> {
        if !question.selection.accepts(identity) {
            return None;
        }
        self.series.push(identity.clone());
        u32::try_from(self.series.len() - 1).ok()
    }

    /// Puts the rows, made series by series, into the order of the service.
    pub(super) fn arrange(&mut self, question: &Question, shape: &ServiceShape) {
        if shape.order == PointOrder::TimeThenSeries {
            // Pages that count envelopes are filled block by block, or each would hold one point.
            let block = match shape.page_counts {
                PageCounts::Points => 1,
                PageCounts::Envelopes => block_width(question, shape),
            };
            self.rows.sort_by_key(|row| (floor(row.timestamp, block), row.series, row.timestamp));
            if block == 1 {
                self.rows.sort_by_key(|row| (row.timestamp, row.series));
            }
        }
    }

    pub(super) fn is_current(&self, now: i64) -> bool {
        now < self.next_change
    }

    /// The rows of the page that begins after `position` items, and the next position, if
    /// anything is left beyond it.
    pub(super) fn page(
        &self,
        position: u64,
        size: u32,
        question: &Question,
        shape: &ServiceShape,
    ) -> (Range<usize>, Option<u64>) {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        let end = position.saturating_add(size as usize);
        let (rows, more) = match shape.page_counts {
            PageCounts::Points => {
                let length = self.rows.len();
                (position.min(length)..end.min(length), end < length)
            }
            PageCounts::Envelopes => {
                let starts = self.envelope_starts(block_width(question, shape));
                let at = |item: usize| starts.get(item).copied().unwrap_or(self.rows.len());
                (at(position)..at(end), end < starts.len())
            }
        };
        (rows, more.then_some(end as u64))
    }

    /// Where envelopes begin: with each series, and with each block of time.
    fn envelope_starts(&self, block: i64) -> Vec<usize> {
        let envelope = |row: &Row| (row.series, floor(row.timestamp, block));
        (0..self.rows.len())
            .filter(|at| *at == 0 || envelope(&self.rows[at - 1]) != envelope(&self.rows[*at]))
            .collect()
    }
}

fn block_width(question: &Question, shape: &ServiceShape) -> i64 {
    question.interval.saturating_mul(i64::from(shape.envelope_points.max(1)))
}

/// The answers given last: a chain asks the same question page after page.
#[derive(Debug, Default)]
pub(super) struct Answers {
    kept: Vec<(Question, i64, Arc<Answer>)>,
}

const ANSWERS_KEPT: usize = 4;

impl Answers {
    /// The answer as of `now`: a kept one while nothing has changed, else a new one.
    pub(super) fn get(
        &mut self,
        holdings: &mut Holdings,
        question: &Question,
        shape: &ServiceShape,
        now: i64,
    ) -> Result<Arc<Answer>, String> {
        self.kept.retain(|(_, made, answer)| *made <= now && answer.is_current(now));
        if let Some((_, _, answer)) = self.kept.iter().find(|(known, ..)| known == question) {
            return Ok(Arc::clone(answer));
        }
        let mut answer = holdings.answer(question, now)?;
        answer.arrange(question, shape);
        let answer = Arc::new(answer);
        if self.kept.len() == ANSWERS_KEPT {
            self.kept.remove(0);
        }
        self.kept.push((question.clone(), now, Arc::clone(&answer)));
        Ok(answer)
    }

    /// The data have changed.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }
}
