//! A handwritten loop: no token, no retry, no allowance, no merge. One chain of cursors, each body
//! into columns, one Arrow batch of siteline's schema at the end. The first request opens the
//! connection and is not timed.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::builder::{
    Float64Builder, Int64Builder, StringDictionaryBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{ArrayRef, RecordBatch};
use bytes::Bytes;
use reqwest::{Client, redirect, retry};
use siteline_core::data::{parse_instant_in, schema};
use tokio::runtime::Builder;

use crate::page::Page;
use crate::{Outcome, Tally};

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
    let mut columns = Columns {
        ids: [(); 5].map(|()| StringDictionaryBuilder::with_capacity(ROWS, 16, 1 << 10)),
        timestamps: TimestampMicrosecondBuilder::with_capacity(ROWS).with_timezone("UTC"),
        numbers: [(); 3].map(|()| Float64Builder::with_capacity(ROWS)),
        sample_counts: Int64Builder::with_capacity(ROWS),
        day: String::new(),
        midnight: 0,
    };
    let mut address = first.to_owned();
    loop {
        let body = get(&client, &address).await?;
        let page: Page<'_> = sonic_rs::from_slice(&body)?;
        columns.append(&page)?;
        let Some(cursor) = page.next_cursor else { break };
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

struct Columns {
    ids: [StringDictionaryBuilder<Int32Type>; 5],
    timestamps: TimestampMicrosecondBuilder,
    numbers: [Float64Builder; 3],
    sample_counts: Int64Builder,
    /// The day of the last timestamp, because the next one is often of the same day.
    day: String,
    midnight: i64,
}

impl Columns {
    fn append(&mut self, page: &Page<'_>) -> Outcome<()> {
        for one in &page.series {
            let ids = [one.site_id, one.line_id, one.machine_id, one.device_id, one.tag_guid];
            for (column, id) in self.ids.iter_mut().zip(ids) {
                column.append_n(id, one.points.len())?;
            }
            for point in &one.points {
                let instant = self.instant(point.timestamp)?;
                self.timestamps.append_value(instant);
                let numbers = [point.value, point.minimum, point.maximum];
                for (column, number) in self.numbers.iter_mut().zip(numbers) {
                    column.append_option(number);
                }
                self.sample_counts.append_option(point.sample_count);
            }
        }
        Ok(())
    }

    /// Microseconds since 1970 UTC of `2026-09-01T00:00:00Z`, the form of the rendered pages.
    /// siteline also reads other forms, and checks the digits.
    fn instant(&mut self, text: &str) -> Outcome<i64> {
        let (day, time) = text.split_at_checked(10).ok_or("a short timestamp")?;
        if self.day != day {
            self.midnight = parse_instant_in(&format!("{day}T00:00:00Z"), None)?.as_microsecond();
            day.clone_into(&mut self.day);
        }
        let &[_, h, h2, _, m, m2, _, s, s2, _] = time.as_bytes() else {
            return Err("a timestamp in another form".into());
        };
        let [hour, minute, second] = [(h, h2), (m, m2), (s, s2)]
            .map(|(tens, ones)| i64::from(tens) * 10 + i64::from(ones) - 11 * i64::from(b'0'));
        Ok(self.midnight + ((hour * 60 + minute) * 60 + second) * 1_000_000)
    }

    fn finish(mut self) -> Outcome<RecordBatch> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(10);
        for mut column in self.ids {
            arrays.push(Arc::new(column.finish()));
        }
        arrays.push(Arc::new(self.timestamps.finish()));
        for mut column in self.numbers {
            arrays.push(Arc::new(column.finish()));
        }
        arrays.push(Arc::new(self.sample_counts.finish()));
        Ok(RecordBatch::try_new(schema(&[]), arrays)?)
    }
}
