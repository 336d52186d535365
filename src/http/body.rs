//! The body of a reply: read within its time limits, inflated within its caps. We inflate by
//! ourselves, because a client library that does it strips the header and hides the cause.

use std::time::Duration;

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use super::failure;
use crate::error::{Error, Kind, Phase, Result};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Any window that gzip knows.
const WINDOW_BITS: u8 = 15;
const FIRST_CAPACITY: usize = 64 * 1024;

/// The limits of one body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes, before and after inflating.
    pub(super) cap: usize,
    /// Longest silence.
    pub(super) idle: Duration,
    /// Bytes that must come ...
    pub(super) window_bytes: usize,
    /// ... in every stretch of this length.
    pub(super) window: Duration,
}

/// Reads a body to its end. The errors carry no status: the caller knows it.
pub(super) async fn read(mut response: Response, limits: Limits) -> Result<Bytes> {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
    let mut inflater = Inflater::new(encoding(response.headers())?, announced, limits.cap);
    while !read_window(&mut response, &mut inflater, limits).await? {}
    inflater.finish()
}

/// Reads until enough bytes for one window have come; true at the end of the body.
async fn read_window(
    response: &mut Response,
    inflater: &mut Inflater,
    limits: Limits,
) -> Result<bool> {
    let enough = async {
        let mut came = 0;
        while came < limits.window_bytes {
            let Ok(chunk) = tokio::time::timeout(limits.idle, response.chunk()).await else {
                return Err(too_slow(format!("nothing of the body came for {:?}", limits.idle)));
            };
            match chunk {
                Ok(Some(chunk)) => {
                    came += chunk.len();
                    inflater.push(&chunk)?;
                }
                Ok(None) => return Ok(true),
                Err(error) => return Err(failure::of_body(error)),
            }
        }
        Ok(false)
    };
    tokio::time::timeout(limits.window, enough).await.unwrap_or_else(|_| {
        let (bytes, window) = (limits.window_bytes, limits.window);
        Err(too_slow(format!("less than {bytes} bytes of the body came in {window:?}")))
    })
}

fn too_slow(message: String) -> Error {
    Error::new(Kind::TransportTimeout, message).with(|context| context.phase = Some(Phase::Body))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
}

/// The one encoding that the headers name. We asked for gzip or none.
fn encoding(headers: &HeaderMap) -> Result<Encoding> {
    let mut found = Encoding::Identity;
    let values = headers.get_all(CONTENT_ENCODING).iter();
    for name in values.flat_map(|value| value.to_str().unwrap_or("(not text)").split(',')) {
        match name.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => {}
            "gzip" | "x-gzip" if found == Encoding::Identity => found = Encoding::Gzip,
            "gzip" | "x-gzip" => return Err(wrong_label("names gzip twice")),
            other => {
                let shown: String = other.escape_debug().take(40).collect();
                return Err(wrong_label(&format!("is {shown:?}; only gzip was asked for")));
            }
        }
    }
    Ok(found)
}

fn wrong_label(what: &str) -> Error {
    Error::new(Kind::Protocol, format!("the header Content-Encoding of the reply {what}"))
}

/// Bytes as they come, inflated where the label says so, never more than the cap.
struct Inflater {
    /// The first two bytes, until both are there: they must agree with the label.
    head: Vec<u8>,
    raw: usize,
    cap: usize,
    sink: Sink,
}

enum Sink {
    Plain(Capped),
    Gzip(Gzip),
}

impl Inflater {
    /// For a body that is announced to have so many bytes.
    fn new(encoding: Encoding, announced: Option<usize>, cap: usize) -> Self {
        let out = |room| Capped { bytes: Vec::with_capacity(room), cap };
        let sink = match encoding {
            // Room that no byte has come to costs no memory, so that a length that lies is harmless.
            Encoding::Identity => Sink::Plain(out(announced.unwrap_or(0).min(cap))),
            Encoding::Gzip => Sink::Gzip(Gzip::new(out(0))),
        };
        Self { head: Vec::with_capacity(GZIP_MAGIC.len()), raw: 0, cap, sink }
    }

    fn push(&mut self, chunk: &[u8]) -> Result<()> {
        self.raw += chunk.len();
        if self.raw > self.cap {
            return Err(too_large(self.cap));
        }
        if self.head.len() < GZIP_MAGIC.len() {
            let missing = GZIP_MAGIC.len() - self.head.len();
            self.head.extend_from_slice(&chunk[..missing.min(chunk.len())]);
            self.check_label()?;
        }
        match &mut self.sink {
            Sink::Plain(out) => out.push(chunk),
            Sink::Gzip(gzip) => gzip.push(chunk),
        }
    }

    fn check_label(&self) -> Result<()> {
        if self.head.len() < GZIP_MAGIC.len() {
            return Ok(());
        }
        match (&self.sink, self.head == GZIP_MAGIC) {
            (Sink::Gzip(_), false) => Err(wrong_label("says gzip, but the body is not gzip")),
            (Sink::Plain(_), true) => Err(wrong_label("is missing, but the body is gzip")),
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<Bytes> {
        let out = match self.sink {
            Sink::Plain(out) => out,
            // A reply without a body may be labelled all the same.
            Sink::Gzip(_) if self.raw == 0 => return Ok(Bytes::new()),
            Sink::Gzip(gzip) if !gzip.ended => return Err(truncated("ends before its end")),
            Sink::Gzip(gzip) => gzip.out,
        };
        if matches!(out.bytes.get(..GZIP_MAGIC.len()), Some(head) if head == GZIP_MAGIC) {
            return Err(wrong_label("says gzip once, but the body is gzip twice"));
        }
        Ok(Bytes::from(out.bytes))
    }
}

/// What is inflated goes straight to where it stays.
struct Gzip {
    inflate: Decompress,
    /// The member at hand is at its end; another may follow (RFC 1952 §2.2).
    ended: bool,
    out: Capped,
}

impl Gzip {
    fn new(out: Capped) -> Self {
        Self { inflate: Decompress::new_gzip(WINDOW_BITS), ended: false, out }
    }

    fn push(&mut self, mut rest: &[u8]) -> Result<()> {
        loop {
            if self.ended {
                if rest.is_empty() {
                    return Ok(());
                }
                self.inflate = Decompress::new_gzip(WINDOW_BITS);
            }
            self.out.make_room();
            let before = self.inflate.total_in();
            let out = &mut self.out.bytes;
            let status = self.inflate.decompress_vec(rest, out, FlushDecompress::None);
            let status = status.map_err(|_| truncated("is damaged"))?;
            if self.out.bytes.len() > self.out.cap {
                return Err(too_large(self.out.cap));
            }
            let taken = usize::try_from(self.inflate.total_in() - before).unwrap_or(rest.len());
            rest = &rest[taken..];
            self.ended = status == Status::StreamEnd;
            if !self.ended && self.out.bytes.len() < self.out.bytes.capacity() {
                // With room left, all that can come of what was taken has come.
                return if rest.is_empty() { Ok(()) } else { Err(truncated("is damaged")) };
            }
        }
    }
}

fn truncated(what: &str) -> Error {
    Error::new(Kind::TruncatedBody, format!("the gzip body of the reply {what}"))
}

fn too_large(cap: usize) -> Error {
    Error::new(Kind::BodyTooLarge, format!("the body of the reply is larger than {cap} bytes"))
        .with_hint("ask for less at once (page_size=), or raise max_body_bytes=")
}

/// A buffer that grows up to its cap.
struct Capped {
    bytes: Vec<u8>,
    cap: usize,
}

impl Capped {
    fn push(&mut self, piece: &[u8]) -> Result<()> {
        let length = self.bytes.len() + piece.len();
        if length > self.cap {
            return Err(too_large(self.cap));
        }
        if length > self.bytes.capacity() {
            self.grow(length, self.cap);
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// Room for a byte at least: at the cap for the one that is too much.
    fn make_room(&mut self) {
        if self.bytes.len() == self.bytes.capacity() {
            self.grow(self.bytes.len() + 1, self.cap.saturating_add(1));
        }
    }

    fn grow(&mut self, least: usize, most: usize) {
        let room = (self.bytes.capacity() * 2).max(FIRST_CAPACITY).min(most).max(least);
        self.bytes.reserve_exact(room - self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("into memory");
        encoder.finish().expect("into memory")
    }

    /// Fed byte by byte, as a network may.
    fn inflate(encoding: Encoding, body: &[u8], cap: usize) -> Result<Bytes> {
        let mut inflater = Inflater::new(encoding, None, cap);
        for byte in body {
            inflater.push(std::slice::from_ref(byte))?;
        }
        inflater.finish()
    }

    fn kind(encoding: Encoding, body: &[u8]) -> Kind {
        inflate(encoding, body, 1_000).expect_err("refused").kind()
    }

    #[test]
    fn gzip_in_one_or_several_members_is_inflated() {
        let body = [gzip(b"{\"a\":"), gzip(b"1}")].concat();
        assert_eq!(inflate(Encoding::Gzip, &body, 1_000).expect("gzip"), "{\"a\":1}");
        assert_eq!(inflate(Encoding::Gzip, b"", 1_000).expect("no body"), "");
        let long: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let body = [gzip(&long), gzip(b""), gzip(&long)].concat();
        for pieces in [1, 7, 65_536, body.len()] {
            let mut inflater = Inflater::new(Encoding::Gzip, None, 2 * long.len());
            body.chunks(pieces).for_each(|piece| inflater.push(piece).expect("gzip"));
            assert!(inflater.finish().expect("gzip") == [long.clone(), long.clone()].concat());
        }
    }

    #[test]
    fn e1_gzip_cut_anywhere_or_with_a_wrong_checksum_is_a_truncated_body() {
        let whole = gzip(b"{\"series\":[]}");
        for end in 2..whole.len() {
            assert_eq!(kind(Encoding::Gzip, &whole[..end]), Kind::TruncatedBody, "cut at {end}");
        }
        let mut damaged = whole.clone();
        let checksum = whole.len() - 8;
        damaged[checksum] ^= 1;
        assert_eq!(kind(Encoding::Gzip, &damaged), Kind::TruncatedBody);
    }

    #[test]
    fn e2_a_label_that_lies_is_a_protocol_error_that_names_the_header() {
        for (encoding, body) in [
            (Encoding::Gzip, b"{\"a\":1}".to_vec()),
            (Encoding::Identity, gzip(b"{}")),
            (Encoding::Gzip, gzip(&gzip(b"{}"))),
        ] {
            let error = inflate(encoding, &body, 1_000).expect_err("a lie");
            assert_eq!(error.kind(), Kind::Protocol);
            assert!(error.to_string().contains("Content-Encoding"), "{error}");
        }
    }

    #[test]
    fn e2_unknown_and_doubled_encodings_are_refused() {
        let named = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, value.parse().expect("a header"));
            encoding(&headers)
        };
        for bad in ["br", "zstd", "gzip, gzip", "gzip, br", "deflate"] {
            let error = named(bad).expect_err(bad);
            assert!(error.to_string().contains("Content-Encoding"), "{error}");
        }
        assert_eq!(named("GZIP").expect("known"), Encoding::Gzip);
        assert_eq!(named("identity").expect("known"), Encoding::Identity);
    }

    #[test]
    fn h14_a_bomb_ends_at_the_cap_and_the_buffer_never_outgrows_it() {
        let bomb = gzip(&vec![b' '; 4_000_000]);
        let error = inflate(Encoding::Gzip, &bomb, 1_000_000).expect_err("a bomb");
        assert_eq!(error.kind(), Kind::BodyTooLarge);
        assert!(inflate(Encoding::Gzip, &gzip(&vec![b' '; 99_999]), 100_000).is_ok());
        assert!(inflate(Encoding::Gzip, &gzip(&vec![b' '; 100_000]), 100_000).is_ok());
        let error = inflate(Encoding::Gzip, &gzip(&vec![b' '; 100_001]), 100_000);
        assert_eq!(error.expect_err("a byte too much").kind(), Kind::BodyTooLarge);
        let error = inflate(Encoding::Identity, &[b' '; 1_001], 1_000).expect_err("too long");
        assert_eq!(error.kind(), Kind::BodyTooLarge);
        let mut out = Capped { bytes: Vec::new(), cap: 100_000 };
        for _ in 0..100 {
            out.push(&[b' '; 1_000]).expect("below the cap");
            assert!(out.bytes.capacity() <= 100_000);
        }
    }
}
