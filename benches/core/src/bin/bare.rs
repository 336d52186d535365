//! `bare BASE_URL SET`: a handwritten loop without siteline: no token, no retry, no allowance, no
//! merge. One chain of cursors, each body directly into columns, one Arrow batch of siteline's schema
//! at the end.
//!
//! The first request opens the connection and is not timed. Prints a line of JSON.

use std::error::Error;
use std::io::{self, Write as _};
use std::time::Instant;

use bytes::Bytes;
use reqwest::{Client, redirect, retry};
use siteline_bench::columns::Columns;
use siteline_bench::seeds;
use siteline_bench::tally::Tally;
use tokio::runtime::Builder;

/// Initial capacity: more than the number of points, so that no column is reallocated.
const ROWS: usize = 1 << 20;
const RANGE: &str = "from=2026-09-01T00%3A00%3A00Z&to=2026-10-05T17%3A20%3A00Z";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, set] = arguments.as_slice() else {
        return Err("bare BASE_URL SET".into());
    };
    let first = format!(
        "{}/api/customer/v1/data?siteId={set}&{RANGE}&pageSize=10000",
        base.trim_end_matches('/')
    );
    Builder::new_current_thread().enable_all().build()?.block_on(run(&first))
}

async fn run(first: &str) -> Outcome<()> {
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
    let (mut columns, mut pages, mut bytes) = (Columns::new(ROWS), 0, 0);
    let mut address = first.to_owned();
    loop {
        let body = get(&client, &address).await?;
        (pages, bytes) = (pages + 1, bytes + body.len());
        let Some(cursor) = seeds::read(&body, &mut columns)? else { break };
        address.truncate(first.len());
        address.push_str("&cursor=");
        address.push_str(cursor);
    }
    let batch = columns.finish()?;
    let seconds = began.elapsed().as_secs_f64();
    let Tally { points, sum_value, nulls } = Tally::of_batch(&batch);
    writeln!(
        io::stdout(),
        "{{\"seconds\": {seconds:.6}, \"points\": {points}, \"sum_value\": {sum_value:?}, \
         \"nulls\": {nulls}, \"pages\": {pages}, \"bytes\": {bytes}}}"
    )?;
    Ok(())
}

async fn get(client: &Client, address: &str) -> reqwest::Result<Bytes> {
    client.get(address).send().await?.error_for_status()?.bytes().await
}
