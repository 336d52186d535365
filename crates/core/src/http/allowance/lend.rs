//! Requests that are counted for other processes: what an agent does for one of its clients, in one
//! step of the ledger.

use jiff::Timestamp;

use super::count::{Count, Terms};
use super::outcome::{Outcome, Reservation};
use super::state::AllowanceState;
use crate::clock::Moment;
use crate::error::Result;

/// One client has at most this part of what is left, so that one does not keep the last requests from
/// the others.
const PART: u64 = 8;

/// What a client of an agent wants, and what it tells.
#[derive(Debug, Default)]
pub struct Wish {
    /// What became of requests that were lent before.
    pub settled: Vec<(Reservation, Outcome)>,
    /// The most requests that are to be lent.
    pub requests: u64,
    /// The requests that must be left after each of them.
    pub must_remain: u64,
}

/// What an agent lends.
#[derive(Debug)]
pub struct Lent {
    /// Requests that are counted; an error if one is wanted and none is left.
    pub requests: Result<Vec<Reservation>>,
    /// What is left after them.
    pub allowance: AllowanceState,
    /// The end of a pause of token requests.
    pub token_pause: Option<Timestamp>,
    /// The service's time.
    pub service_time: Timestamp,
}

impl Count {
    /// Takes into account what became of requests, and counts others.
    pub(super) fn lend(&mut self, terms: Terms, wish: Wish, now: Moment) -> Lent {
        for (reservation, outcome) in wish.settled {
            self.settle(terms, &reservation, outcome, now);
        }
        let requests = self.reserve_some(terms, wish.requests, wish.must_remain, now);
        Lent {
            requests,
            allowance: self.state(terms, now),
            token_pause: self.token_pause(now).map(|(_, until)| until),
            service_time: self.service_time(now),
        }
    }

    fn reserve_some(
        &mut self,
        terms: Terms,
        wanted: u64,
        must_remain: u64,
        now: Moment,
    ) -> Result<Vec<Reservation>> {
        let mut requests = Vec::new();
        let left = self.state(terms, now).left;
        let most = left.map_or(wanted, |left| wanted.min((left / PART).max(1)));
        for _ in 0..most {
            match self.reserve(terms, now, must_remain) {
                Ok(request) => requests.push(request),
                Err(error) if requests.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::http::allowance::test_moments::now;

    fn wish(requests: u64, must_remain: u64) -> Wish {
        Wish { requests, must_remain, ..Wish::default() }
    }

    #[test]
    fn requests_are_counted_when_they_are_lent_and_given_back_when_they_were_not_sent() {
        let (mut count, then) = (Count::default(), now("2026-11-01T12:00:00Z"));
        let lent = count.lend(Terms::default(), wish(16, 0), then);
        assert_eq!(lent.allowance.used, 16);
        let mut settled: Vec<_> = lent
            .requests
            .expect("no limit")
            .into_iter()
            .map(|request| (request, Outcome::Unsent))
            .collect();
        settled.truncate(10);
        let lent = count.lend(Terms::default(), Wish { settled, ..Wish::default() }, then);
        assert_eq!((lent.allowance.used, lent.requests.expect("none").len()), (6, 0));
    }

    #[test]
    fn one_client_gets_a_part_of_what_is_left_and_the_last_one_request_at_a_time() {
        let (mut count, then) = (Count::default(), now("2026-11-01T12:00:00Z"));
        let terms = Terms { limit: Some(20), resets: None };
        let mut lent = Vec::new();
        loop {
            match count.lend(terms, wish(16, 1), then).requests {
                Ok(requests) => lent.push(requests.len()),
                Err(error) => {
                    assert_eq!(error.kind(), Kind::AllowanceExhausted);
                    break;
                }
            }
        }
        assert_eq!(lent.iter().sum::<usize>(), 19);
        assert_eq!((lent[0], lent.last()), (2, Some(&1)));
    }
}
