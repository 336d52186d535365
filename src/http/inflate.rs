//! [`Inflater`]: the bytes of a body as they come, inflated where its label says so.

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::{Decompressor, crc32};

use super::buffers::Buffers;
use crate::error::{Error, Kind, Result};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// How every member begins: the magic, and the one method there is (RFC 1952 §2.3.1).
const GZIP_MEMBER: [u8; 3] = [0x1f, 0x8b, 8];
const FLAGS: usize = 3;
const FLAG_HEADER_CHECKSUM: u8 = 2;
/// Any window that gzip knows.
const WINDOW_BITS: u8 = 15;
const FIRST_CAPACITY: usize = 64 * 1024;
/// A gzip body up to here is held until it is whole, and inflated in one go: in less than half the
/// time that it takes as it comes.
const MOST_HELD: usize = 4 << 20;

/// What a body is labelled as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
}

/// Bytes as they come, inflated where the label says so, never more than the cap.
pub(super) struct Inflater {
    /// The first two bytes, until both are there: they must agree with the label.
    head: Vec<u8>,
    raw: usize,
    cap: usize,
    buffers: Buffers,
    sink: Sink,
}

enum Sink {
    Plain(Capped),
    Held(Vec<u8>),
    Stream(Stream),
}

impl Inflater {
    /// For a body that is announced to have so many bytes.
    pub(super) fn new(
        encoding: Encoding,
        announced: Option<usize>,
        cap: usize,
        buffers: &Buffers,
    ) -> Self {
        // Room that no byte has come to costs no memory, so that a length that lies is harmless.
        let room = announced.unwrap_or(0).min(cap);
        let sink = match encoding {
            Encoding::Identity => Sink::Plain(Capped::new(cap, buffers, room)),
            Encoding::Gzip => Sink::Held(buffers.with_room(room.min(MOST_HELD))),
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
            self.check_label()?;
        }
        match &mut self.sink {
            Sink::Plain(out) => out.push(chunk),
            Sink::Held(held) if held.len() + chunk.len() <= MOST_HELD => {
                held.extend_from_slice(chunk);
                Ok(())
            }
            Sink::Held(held) => {
                let mut stream = Stream::of(held, self.cap, &self.buffers)?;
                stream.push(chunk)?;
                self.sink = Sink::Stream(stream);
                Ok(())
            }
            Sink::Stream(stream) => stream.push(chunk),
        }
    }

    fn check_label(&self) -> Result<()> {
        if self.head.len() < GZIP_MAGIC.len() {
            return Ok(());
        }
        match (&self.sink, self.head == GZIP_MAGIC) {
            (Sink::Plain(_), true) => Err(wrong_label("is missing, but the body is gzip")),
            (Sink::Held(_) | Sink::Stream(_), false) => {
                Err(wrong_label("says gzip, but the body is not gzip"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn finish(self) -> Result<Bytes> {
        let bytes = match self.sink {
            Sink::Plain(out) => out.bytes,
            // A reply without a body may be labelled all the same.
            Sink::Held(held) if held.is_empty() => held,
            Sink::Held(held) => {
                let bytes = match at_once(&held, self.cap, &self.buffers) {
                    Some(bytes) => bytes,
                    None => Stream::of(&held, self.cap, &self.buffers)?.finish()?,
                };
                self.buffers.take_back(held);
                bytes
            }
            Sink::Stream(stream) => stream.finish()?,
        };
        if bytes.starts_with(&GZIP_MAGIC) {
            return Err(wrong_label("says gzip once, but the body is gzip twice"));
        }
        Ok(self.buffers.lend(bytes))
    }
}

/// A whole body of one member within the cap, or `None`: it may be several, damaged, cut or too
/// large, and [`Stream`] tells which.
fn at_once(body: &[u8], cap: usize, buffers: &Buffers) -> Option<Vec<u8>> {
    // Only the first member is inflated here: where another could begin, nothing is left out. Nor
    // is the checksum looked at that a header may have.
    let another = memchr::memmem::find(body.get(1..)?, &GZIP_MEMBER);
    if another.is_some() || body.get(FLAGS)? & FLAG_HEADER_CHECKSUM != 0 {
        return None;
    }
    // The last things in a member are its checksum and its size, modulo 2^32.
    let (rest, size) = body.split_last_chunk()?;
    let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
    if size == 0 || size > cap {
        return None;
    }
    let mut bytes = buffers.of_length(size);
    let came = Decompressor::new().gzip_decompress(body, &mut bytes).ok()?;
    // Where the member ends is not told: at these two, unless something follows it.
    let is_last = u32::from_le_bytes(*rest.last_chunk()?) == crc32(&bytes);
    (came == size && is_last).then_some(bytes)
}

/// Inflates as the bytes come, straight to where they stay.
struct Stream {
    inflate: Decompress,
    /// The member at hand is at its end; another may follow (RFC 1952 §2.2).
    ended: bool,
    out: Capped,
}

impl Stream {
    /// Of a body that begins with `held`.
    fn of(held: &[u8], cap: usize, buffers: &Buffers) -> Result<Self> {
        let inflate = Decompress::new_gzip(WINDOW_BITS);
        let mut stream = Self { inflate, ended: false, out: Capped::new(cap, buffers, 0) };
        stream.push(held)?;
        Ok(stream)
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

    fn finish(self) -> Result<Vec<u8>> {
        if self.ended { Ok(self.out.bytes) } else { Err(truncated("ends before its end")) }
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
        .with_hint("ask for less at once (page_size=), or raise max_body_bytes=")
}

/// A buffer that grows up to its cap.
struct Capped {
    bytes: Vec<u8>,
    cap: usize,
    buffers: Buffers,
}

impl Capped {
    fn new(cap: usize, buffers: &Buffers, room: usize) -> Self {
        Self { bytes: buffers.with_room(room), cap, buffers: buffers.clone() }
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

    /// Room for a byte at least: at the cap for the one that is too much.
    fn make_room(&mut self) {
        if self.bytes.len() == self.bytes.capacity() {
            self.grow(self.bytes.len() + 1, self.cap.saturating_add(1));
        }
    }

    fn grow(&mut self, least: usize, most: usize) {
        let room = (self.bytes.capacity() * 2).max(FIRST_CAPACITY).min(most).max(least);
        self.buffers.make_room(&mut self.bytes, room);
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

    fn gzip_at(level: u32, text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(text).expect("into memory");
        encoder.finish().expect("into memory")
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        gzip_at(6, text)
    }

    fn whole(body: &[u8], cap: usize) -> Option<Vec<u8>> {
        at_once(body, cap, &Buffers::default())
    }

    fn as_it_comes(body: &[u8], cap: usize) -> Result<Vec<u8>> {
        Stream::of(body, cap, &Buffers::default())?.finish()
    }

    /// Fed byte by byte, as a network may.
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
    fn one_whole_member_is_inflated_at_once_and_nothing_else() {
        let text = b"[0.123,0.124,0.125,0.126]".repeat(1_000);
        let body = gzip(&text);
        assert_eq!(whole(&body, text.len()).as_deref(), Some(&text[..]));
        assert_eq!(whole(&body, text.len() - 1), None);
        assert_eq!(whole(&body.repeat(2), 2 * text.len()), None);
        assert_eq!(whole(&[&body[..], &[0; 512]].concat(), text.len()), None);
        let size = u32::try_from(text.len()).expect("small").to_le_bytes();
        for after in [&size[..], &[b"junk", &size[..]].concat()] {
            let followed = [&body[..], after].concat();
            assert_eq!(whole(&followed, text.len()), None, "followed by its size");
            assert!(as_it_comes(&followed, text.len()).is_err());
        }
        assert_eq!(whole(&gzip_at(0, b"\x1f\x8b\x08"), 100), None, "it could be another");
        for end in 0..body.len() {
            assert_eq!(whole(&body[..end], text.len()), None, "cut at {end}");
        }
        let mut flagged = body;
        flagged[FLAGS] |= FLAG_HEADER_CHECKSUM;
        flagged.splice(10..10, [0, 0]);
        assert_eq!(whole(&flagged, text.len()), None);
        assert!(as_it_comes(&flagged, text.len()).is_err());
    }

    #[test]
    fn a_body_too_long_to_be_held_is_inflated_as_it_comes() {
        let noise = noise(MOST_HELD + 100_000);
        let body = gzip(&noise);
        assert!(body.len() > MOST_HELD);
        let mut inflater =
            Inflater::new(Encoding::Gzip, Some(body.len()), 2 * noise.len(), &Buffers::default());
        for piece in body.chunks(60_000) {
            inflater.push(piece).expect("gzip");
        }
        assert!(matches!(inflater.sink, Sink::Stream(_)));
        assert!(inflater.finish().expect("gzip") == noise);
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(5);
        std::iter::repeat_with(|| random.u8(..)).take(length).collect()
    }

    proptest! {
        /// What is done to a body does not matter: cut, damaged, repeated, followed by something.
        #[test]
        fn what_is_inflated_at_once_is_what_comes_as_it_comes(
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
            let came = as_it_comes(&body, cap);
            if let Some(bytes) = whole(&body, cap) {
                prop_assert_eq!(came.expect("inflated at once"), bytes);
            } else {
                let sound = damage.is_none() && cut.is_none() && after.is_empty();
                let is_one = texts.len() == 1 && !texts[0].0.is_empty();
                prop_assert!(!(sound && is_one && came.is_ok()));
            }
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
            assert_eq!(error.kind(), Kind::ProtocolError);
            assert!(error.to_string().contains("Content-Encoding"), "{error}");
        }
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
        let mut out = Capped::new(100_000, &Buffers::default(), 0);
        for _ in 0..100 {
            out.push(&[b' '; 1_000]).expect("below the cap");
            assert!(out.bytes.capacity() <= 100_000);
        }
    }
}
