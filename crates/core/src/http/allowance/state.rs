//! The state of the daily allowance, and the error of an exhausted one.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowanceState {
    /// Requests counted since the day began, including those with unknown outcome.
    pub used: u64,
    /// The daily allowance, if the user configured it. The service does not report it.
    pub limit: Option<u64>,
    /// Remaining requests today; zero during a pause that the service requested.
    pub left: Option<u64>,
    /// When the count restarts: midnight UTC until the service has shown another time.
    pub resets_at: Timestamp,
    /// Token requests since the day began, including those that were never sent.
    pub token_requests: u64,
    /// Token requests since the hour began.
    pub token_requests_this_hour: u64,
}

/// The error of a request that is not sent because the allowance is exhausted, or the rest of it is
/// reserved.
pub(crate) fn exhausted(state: AllowanceState) -> Error {
    let resets = state.resets_at;
    let message = match state {
        AllowanceState { left: Some(left @ 1..), .. } => format!(
            "the last {left} requests of the daily allowance are reserved for reads that are due \
             before {resets}; no other request is sent before then"
        ),
        AllowanceState { used, limit, .. } => {
            let used = match limit {
                Some(limit) if used >= limit => format!("{used} of {limit} requests"),
                _ => format!("the service refuses more after {used} requests"),
            };
            format!("the daily request allowance is used up: {used}; none is sent before {resets}")
        }
    };
    refused(message)
        .with_hint("Continue after that time, or raise daily_allowance= if it is wrong.")
        .with(|context| context.retry_at = Some(resets))
}

/// The error of a request that is not sent because the allowance was exhausted in the last known
/// day, and nothing shows whether that day has ended.
pub(crate) fn unknown_day(state: AllowanceState) -> Error {
    let AllowanceState { used, resets_at, .. } = state;
    refused(format!(
        "the daily request allowance was used up ({used} requests) in the day that ends at \
         {resets_at}; this machine was started since, and no two clock readings agree whether that \
         day has ended"
    ))
    .with_hint("Set this machine's clock, then continue; or raise daily_allowance= if it is wrong.")
}

fn refused(message: String) -> Error {
    Error::new(Kind::AllowanceExhausted, message).with(|context| context.unsent = true)
}
