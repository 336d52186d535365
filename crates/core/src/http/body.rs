//! Reads the body of a reply within its time limits and checks its encoding. reqwest's own
//! decompression is off: it removes the header and hides the cause of a failure.

use bytes::Bytes;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use super::buffers::Buffers;
use super::failure;
use super::inflate::{Encoding, Inflater, wrong_label};
use super::transport_settings::TransportSettings;
use crate::error::{Error, Kind, Phase, Result};

/// The encodings that an error message may name.
const ENCODINGS: [&str; 6] = ["br", "zstd", "deflate", "compress", "x-compress", "dcz"];

/// Reads a body to its end and adds its bytes to `total`. A body has at most `cap` bytes, before and
/// after decompression. The caller adds the status to an error.
pub(super) async fn read(
    mut response: Response,
    cap: usize,
    settings: &TransportSettings,
    buffers: &Buffers,
    total: &mut u64,
) -> Result<Bytes> {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
    let mut inflater = Inflater::new(encoding(response.headers())?, announced, cap, buffers);
    while !read_window(&mut response, &mut inflater, settings, total).await? {}
    inflater.finish()
}

/// Reads until enough bytes for one window have arrived; true at the end of the body.
async fn read_window(
    response: &mut Response,
    inflater: &mut Inflater,
    settings: &TransportSettings,
    total: &mut u64,
) -> Result<bool> {
    let TransportSettings { idle_timeout, throughput_bytes, throughput_window, .. } = settings;
    let enough = async {
        let mut received = 0;
        while received < *throughput_bytes {
            let Ok(chunk) = tokio::time::timeout(*idle_timeout, response.chunk()).await else {
                return Err(too_slow(format!("no data of the body arrived for {idle_timeout:?}")));
            };
            match chunk {
                Ok(Some(chunk)) => {
                    received += chunk.len();
                    *total += chunk.len() as u64;
                    inflater.push(&chunk)?;
                }
                Ok(None) => return Ok(true),
                Err(error) => return Err(failure::from_body(error)),
            }
        }
        Ok(false)
    };
    tokio::time::timeout(*throughput_window, enough).await.unwrap_or_else(|_| {
        Err(too_slow(format!(
            "less than {throughput_bytes} bytes of the body arrived in {throughput_window:?}"
        )))
    })
}

fn too_slow(message: String) -> Error {
    Error::new(Kind::TransportTimeout, message).with(|context| context.phase = Some(Phase::Body))
}

/// The encoding that the headers name. Requests accept only gzip.
fn encoding(headers: &HeaderMap) -> Result<Encoding> {
    let mut found = Encoding::Identity;
    let values = headers.get_all(CONTENT_ENCODING).iter();
    for name in values.flat_map(|value| value.to_str().unwrap_or("(not text)").split(',')) {
        match name.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => {}
            "gzip" | "x-gzip" if found == Encoding::Identity => found = Encoding::Gzip,
            "gzip" | "x-gzip" => return Err(wrong_label("names gzip twice")),
            other => {
                // A header may contain anything, so only usual names are shown.
                let shown = ENCODINGS.iter().find(|known| **known == other);
                let shown = shown.unwrap_or(&"an unusual name");
                return Err(wrong_label(&format!("is {shown}; only gzip was requested")));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::{StreamExt as _, stream};
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    #[tokio::test]
    async fn h4_a_period_ends_with_the_bytes_that_it_needs() {
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken);
        let pieces = stream::iter(0..5).map(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b' '; 10])))
        });
        let body = reqwest::Body::wrap(StreamBody::new(pieces));
        let mut response = Response::from(hyper::Response::new(body));
        let hour = Duration::from_secs(3_600);
        let settings = TransportSettings {
            idle_timeout: hour,
            throughput_bytes: 20,
            throughput_window: hour,
            ..TransportSettings::default()
        };
        let mut inflater = Inflater::new(Encoding::Identity, None, 1_000, &Buffers::default());
        // Each read gets the whole time limit for twenty bytes.
        for (pieces, bytes, ends) in [(2, 20, false), (4, 20, false), (5, 10, true)] {
            let mut total = 0;
            let read = read_window(&mut response, &mut inflater, &settings, &mut total);
            let ended = read.await.expect("a body");
            assert_eq!((taken.load(Ordering::Relaxed), total, ended), (pieces, bytes, ends));
        }
        assert_eq!(inflater.finish().expect("a body").len(), 50);
    }
}
