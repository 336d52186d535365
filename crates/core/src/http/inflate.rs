//! [`Inflater`]: collects a body, and decompresses it if `Content-Encoding` is gzip.

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::{Decompressor, crc32};

use super::buffers::Buffers;
use crate::error::{Error, Kind, Result};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The first bytes of every member: the magic and the only defined method (RFC 1952 §2.3.1).
const GZIP_MEMBER: [u8; 3] = [0x1f, 0x8b, 8];
const FLAGS: usize = 3;
const FLAG_HEADER_CHECKSUM: u8 = 2;
/// The base-2 logarithm of gzip's largest window.
const WINDOW_BITS: u8 = 15;
const FIRST_CAPACITY: usize = 64 * 1024;
/// Maximum number of members in a body. Each one allocates a window.
const MEMBERS: usize = 64;
/// Another member is allowed for each full this many bytes.
const BYTES_OF_A_MEMBER: usize = 4 * 1024;
/// Maximum size of a gzip body that is decompressed at once, which takes less than half the time of
/// streaming.
const MOST_COLLECTED: usize = 4 << 20;

/// The `Content-Encoding` of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
}

/// A body that is being received. It never exceeds the cap.
pub(super) struct Inflater {
    /// The first two bytes, which must match the encoding.
    head: Vec<u8>,
    raw: usize,
    cap: usize,
    buffers: Buffers,
    sink: BodySink,
}

enum BodySink {
    Plain(Capped),
    Collected(Vec<u8>),
    Stream(GzipStream),
}

impl Inflater {
    /// `announced` is the length in the headers.
    pub(super) fn new(
        encoding: Encoding,
        announced: Option<usize>,
        cap: usize,
        buffers: &Buffers,
    ) -> Self {
        // Reserved memory that is not written costs nothing, so a wrong length is harmless.
        let capacity = announced.unwrap_or(0).min(cap);
        let sink = match encoding {
            Encoding::Identity => BodySink::Plain(Capped::new(cap, buffers, capacity)),
            Encoding::Gzip => {
                BodySink::Collected(buffers.with_capacity(capacity.min(MOST_COLLECTED)))
            }
        };
        let head = Vec::with_capacity(GZIP_MAGIC.len());
        Self { head, raw: 0, cap, buffers: buffers.clone(), sink }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<()> {
        self.raw += chunk.len();
        if self.raw > self.cap {
            return Err(too_large(self.cap));
        }
        if self.head.len() < GZIP_MAGIC.len() {
            let missing = GZIP_MAGIC.len() - self.head.len();
            self.head.extend_from_slice(&chunk[..missing.min(chunk.len())]);
            self.check_magic()?;
        }
        match &mut self.sink {
            BodySink::Plain(out) => out.push(chunk),
            BodySink::Collected(bytes) if bytes.len() + chunk.len() <= MOST_COLLECTED => {
                bytes.extend_from_slice(chunk);
                Ok(())
            }
            BodySink::Collected(bytes) => {
                let mut stream = GzipStream::starting_with(bytes, self.cap, &self.buffers)?;
                stream.push(chunk)?;
                self.sink = BodySink::Stream(stream);
                Ok(())
            }
            BodySink::Stream(stream) => stream.push(chunk),
        }
    }

    fn check_magic(&self) -> Result<()> {
        if self.head.len() < GZIP_MAGIC.len() {
            return Ok(());
        }
        match (&self.sink, self.head == GZIP_MAGIC) {
            (BodySink::Plain(_), true) => Err(wrong_label("is missing, but the body is gzip")),
            (BodySink::Collected(_) | BodySink::Stream(_), false) => {
                Err(wrong_label("is gzip, but the body is not gzip"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn finish(self) -> Result<Bytes> {
        let bytes = match self.sink {
            BodySink::Plain(out) => out.bytes,
            // A reply without a body may have the header too.
            BodySink::Collected(body) if body.is_empty() => body,
            BodySink::Collected(body) => {
                let bytes = match at_once(&body, self.cap, &self.buffers) {
                    Some(bytes) => bytes,
                    None => GzipStream::starting_with(&body, self.cap, &self.buffers)?.finish()?,
                };
                self.buffers.take_back(body);
                bytes
            }
            BodySink::Stream(stream) => stream.finish()?,
        };
        if bytes.starts_with(&GZIP_MAGIC) {
            return Err(wrong_label("is gzip once, but the body is gzip twice"));
        }
        Ok(self.buffers.lend(bytes))
    }
}

/// Decompresses a complete body of one member within the cap. Returns `None` for several members
/// and for a damaged, truncated or too large body; [`GzipStream`] then finds the cause.
fn at_once(body: &[u8], cap: usize, buffers: &Buffers) -> Option<Vec<u8>> {
    // libdeflate decompresses only the first member, and ignores the optional checksum of its
    // header. Without an early exit the compiler vectorizes this search, which makes it ten times
    // as fast.
    let [first, second, third] = GZIP_MEMBER;
    let members = body.get(1..)?.windows(3).fold(0, |found, bytes| {
        let difference = (bytes[0] ^ first) | (bytes[1] ^ second) | (bytes[2] ^ third);
        found | u8::from(difference == 0)
    });
    if members != 0 || body.get(FLAGS)? & FLAG_HEADER_CHECKSUM != 0 {
        return None;
    }
    // A member ends with its checksum and its size, modulo 2^32.
    let (rest, size) = body.split_last_chunk()?;
    let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
    if size == 0 || size > cap {
        return None;
    }
    let mut bytes = buffers.with_length(size);
    let written = Decompressor::new().gzip_decompress(body, &mut bytes).ok()?;
    // libdeflate does not report the end of the member. A match means that nothing follows it.
    let is_last = u32::from_le_bytes(*rest.last_chunk()?) == crc32(&bytes);
    (written == size && is_last).then_some(bytes)
}

/// Decompresses the bytes as they arrive, directly into the output buffer.
struct GzipStream {
    inflate: Decompress,
    /// The current member has ended; another may follow (RFC 1952 §2.2).
    ended: bool,
    members: usize,
    taken: usize,
    out: Capped,
}

impl GzipStream {
    fn starting_with(bytes: &[u8], cap: usize, buffers: &Buffers) -> Result<Self> {
        let inflate = Decompress::new_gzip(WINDOW_BITS);
        let out = Capped::new(cap, buffers, 0);
        let mut stream = Self { inflate, ended: false, members: 1, taken: 0, out };
        stream.push(bytes)?;
        Ok(stream)
    }

    fn push(&mut self, mut rest: &[u8]) -> Result<()> {
        loop {
            if self.ended {
                if rest.is_empty() {
                    return Ok(());
                }
                self.members += 1;
                if self.members > MEMBERS + self.taken / BYTES_OF_A_MEMBER {
                    return Err(truncated("has too many parts"));
                }
                self.inflate = Decompress::new_gzip(WINDOW_BITS);
            }
            self.out.reserve_one();
            let before = self.inflate.total_in();
            let out = &mut self.out.bytes;
            let status = self.inflate.decompress_vec(rest, out, FlushDecompress::None);
            let status = status.map_err(|_| truncated("is damaged"))?;
            if self.out.bytes.len() > self.out.cap {
                return Err(too_large(self.out.cap));
            }
            let taken = usize::try_from(self.inflate.total_in() - before).unwrap_or(rest.len());
            rest = &rest[taken..];
            self.taken += taken;
            self.ended = status == Status::StreamEnd;
            if !self.ended && self.out.bytes.len() < self.out.bytes.capacity() {
                // Free capacity means that zlib has written all output of the consumed input.
                return if rest.is_empty() { Ok(()) } else { Err(truncated("is damaged")) };
            }
        }
    }

    fn finish(self) -> Result<Vec<u8>> {
        if self.ended { Ok(self.out.bytes) } else { Err(truncated("is truncated")) }
    }
}

pub(super) fn wrong_label(what: &str) -> Error {
    Error::new(Kind::ProtocolError, format!("the header Content-Encoding of the reply {what}"))
}

fn truncated(what: &str) -> Error {
    Error::new(Kind::TruncatedBody, format!("the gzip body of the reply {what}"))
}

fn too_large(cap: usize) -> Error {
    Error::new(Kind::BodyTooLarge, format!("the body of the reply is larger than {cap} bytes"))
        .with_hint("request less at once (page_size=), or raise max_body_bytes=")
}

/// A buffer that grows up to a cap.
struct Capped {
    bytes: Vec<u8>,
    cap: usize,
    buffers: Buffers,
}

impl Capped {
    fn new(cap: usize, buffers: &Buffers, capacity: usize) -> Self {
        Self { bytes: buffers.with_capacity(capacity), cap, buffers: buffers.clone() }
    }

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

    /// Reserves at least one byte. At the cap it reserves one byte more, to detect a body that is
    /// too large.
    fn reserve_one(&mut self) {
        if self.bytes.len() == self.bytes.capacity() {
            self.grow(self.bytes.len() + 1, self.cap.saturating_add(1));
        }
    }

    fn grow(&mut self, least: usize, most: usize) {
        let capacity = (self.bytes.capacity() * 2).max(FIRST_CAPACITY).min(most).max(least);
        self.buffers.grow(&mut self.bytes, capacity);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::http::test_server::gzip;

    fn gzip_at(level: u32, text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(text).expect("into memory");
        encoder.finish().expect("into memory")
    }

    fn inflated_at_once(body: &[u8], cap: usize) -> Option<Vec<u8>> {
        at_once(body, cap, &Buffers::default())
    }

    fn streamed(body: &[u8], cap: usize) -> Result<Vec<u8>> {
        GzipStream::starting_with(body, cap, &Buffers::default())?.finish()
    }

    /// Pushes single bytes.
    fn inflate(encoding: Encoding, body: &[u8], cap: usize) -> Result<Bytes> {
        let mut inflater = Inflater::new(encoding, None, cap, &Buffers::default());
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
            let mut inflater =
                Inflater::new(Encoding::Gzip, None, 2 * long.len(), &Buffers::default());
            body.chunks(pieces).for_each(|piece| inflater.push(piece).expect("gzip"));
            assert!(inflater.finish().expect("gzip") == [long.clone(), long.clone()].concat());
        }
    }

    #[test]
    fn only_one_complete_member_is_inflated_at_once() {
        let text = b"[0.123,0.124,0.125,0.126]".repeat(1_000);
        let body = gzip(&text);
        assert_eq!(inflated_at_once(&body, text.len()).as_deref(), Some(&text[..]));
        assert_eq!(inflated_at_once(&body, text.len() - 1), None);
        assert_eq!(inflated_at_once(&body.repeat(2), 2 * text.len()), None);
        assert_eq!(inflated_at_once(&[&body[..], &[0; 512]].concat(), text.len()), None);
        let size = u32::try_from(text.len()).expect("small").to_le_bytes();
        for after in [&size[..], &[b"junk", &size[..]].concat()] {
            let followed = [&body[..], after].concat();
            assert_eq!(inflated_at_once(&followed, text.len()), None, "followed by its size");
            assert!(streamed(&followed, text.len()).is_err());
        }
        assert_eq!(
            inflated_at_once(&gzip_at(0, b"\x1f\x8b\x08"), 100),
            None,
            "it may be another member"
        );
        let mut flagged = body;
        flagged[FLAGS] |= FLAG_HEADER_CHECKSUM;
        flagged.splice(10..10, [0, 0]);
        assert_eq!(inflated_at_once(&flagged, text.len()), None);
        assert!(streamed(&flagged, text.len()).is_err());
    }

    #[test]
    fn a_large_body_is_streamed() {
        let noise = noise(MOST_COLLECTED + 100_000);
        let body = gzip(&noise);
        assert!(body.len() > MOST_COLLECTED);
        let mut inflater =
            Inflater::new(Encoding::Gzip, Some(body.len()), 2 * noise.len(), &Buffers::default());
        for piece in body.chunks(60_000) {
            inflater.push(piece).expect("gzip");
        }
        assert!(matches!(inflater.sink, BodySink::Stream(_)));
        assert!(inflater.finish().expect("gzip") == noise);
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(5);
        std::iter::repeat_with(|| random.u8(..)).take(length).collect()
    }

    proptest! {
        /// Includes bodies that are truncated, damaged, followed by other bytes, or have several
        /// members.
        #[test]
        fn inflating_at_once_and_streaming_give_the_same_bytes(
            texts in prop::collection::vec(("[a-d]{0,300}", 0_u32..10), 1..3),
            damage in prop::option::weighted(0.7, (any::<Index>(), any::<u8>())),
            cut in prop::option::weighted(0.2, any::<Index>()),
            after in prop::collection::vec(any::<u8>(), 0..3),
            cap in 0_usize..1_000,
        ) {
            let mut body: Vec<u8> =
                texts.iter().flat_map(|(text, level)| gzip_at(*level, text.as_bytes())).collect();
            if let Some((at, with)) = &damage {
                let at = at.index(body.len());
                body[at] ^= with;
            }
            if let Some(end) = &cut {
                body.truncate(end.index(body.len()));
            }
            body.extend(&after);
            let streamed = streamed(&body, cap);
            if let Some(bytes) = inflated_at_once(&body, cap) {
                prop_assert_eq!(streamed.expect("inflated at once"), bytes);
            } else {
                let intact = damage.is_none() && cut.is_none() && after.is_empty();
                let is_one = texts.len() == 1 && !texts[0].0.is_empty();
                prop_assert!(!(intact && is_one && streamed.is_ok()));
            }
        }
    }

    #[test]
    fn e1_truncated_gzip_or_a_wrong_checksum_is_a_truncated_body() {
        let body = gzip(b"{\"series\":[]}");
        for end in 2..body.len() {
            assert_eq!(kind(Encoding::Gzip, &body[..end]), Kind::TruncatedBody, "cut at {end}");
        }
        let mut damaged = body.clone();
        let checksum = body.len() - 8;
        damaged[checksum] ^= 1;
        assert_eq!(kind(Encoding::Gzip, &damaged), Kind::TruncatedBody);
    }

    #[test]
    fn h14_a_decompression_bomb_fails_at_the_cap_and_the_buffer_stays_below_it() {
        let bomb = gzip(&vec![b' '; 4_000_000]);
        let error = inflate(Encoding::Gzip, &bomb, 1_000_000).expect_err("a bomb");
        assert_eq!(error.kind(), Kind::BodyTooLarge);
        assert!(inflate(Encoding::Gzip, &gzip(&vec![b' '; 99_999]), 100_000).is_ok());
        assert!(inflate(Encoding::Gzip, &gzip(&vec![b' '; 100_000]), 100_000).is_ok());
        let error = inflate(Encoding::Gzip, &gzip(&vec![b' '; 100_001]), 100_000);
        assert_eq!(error.expect_err("a byte too much").kind(), Kind::BodyTooLarge);
        let error = inflate(Encoding::Identity, &[b' '; 1_001], 1_000).expect_err("too long");
        assert_eq!(error.kind(), Kind::BodyTooLarge);
        let mut out = Capped::new(100_000, &Buffers::default(), 0);
        for _ in 0..100 {
            out.push(&[b' '; 1_000]).expect("below the cap");
            assert!(out.bytes.capacity() <= 100_000);
        }
    }
}

#[cfg(test)]
#[path = "inflate_edge_tests.rs"]
mod edge_tests;
