//! A handwritten loop: no token, no retry, no allowance, no merge. One chain of cursors, each body
//! directly into columns, one Arrow batch of siteline's schema at the end. The first request opens
//! the connection and is not timed.

use std::time::Instant;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use bytes::Bytes;
use reqwest::{Client, redirect, retry};
use tokio::runtime::Builder;

use crate::columns::Columns;
use crate::{Outcome, Tally, seeds};

/// Initial capacity: more than the number of points, so that no column is reallocated.
const ROWS: usize = 1 << 20;
const RANGE: &str = "from=2026-09-01T00%3A00%3A00Z&to=2026-10-05T17%3A20%3A00Z";
/// The column of the value.
const VALUE: usize = 6;

pub(crate) fn run(base: &str, set: &str) -> Outcome<String> {
    let first = format!("{base}/api/customer/v1/data?siteId={set}&{RANGE}&pageSize=10000");
    Builder::new_current_thread().enable_all().build()?.block_on(chain(&first))
}

async fn chain(first: &str) -> Outcome<String> {
    // The same settings as siteline's client.
    let client = Client::builder()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .no_proxy()
        .tls_certs_only([])
        .build()?;
    get(&client, first).await?;
    let began = Instant::now();
    let mut columns = Columns::new(ROWS);
    let mut address = first.to_owned();
    loop {
        let body = get(&client, &address).await?;
        let Some(cursor) = seeds::read(&body, &mut columns)? else { break };
        address.truncate(first.len());
        address.push_str("&cursor=");
        address.push_str(cursor);
    }
    let batch = columns.finish()?;
    let seconds = began.elapsed().as_secs_f64();
    let mut tally = Tally::default();
    tally.extend(batch.column(VALUE).as_primitive::<Float64Type>());
    let Tally { points, sum, nulls } = tally;
    Ok(format!(
        r#"{{"seconds": {seconds:.6}, "rows": {points}, "sum of value": {sum:?}, "nulls of value": {nulls}}}"#
    ))
}

async fn get(client: &Client, address: &str) -> reqwest::Result<Bytes> {
    client.get(address).send().await?.error_for_status()?.bytes().await
}
