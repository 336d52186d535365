//! Checks whether a log belongs to the store's file. If one of them was replaced or renamed,
//! `SQLite` would still apply the log.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::path::Path;

use super::commit_mark::{CommitMark, NOTHING, PLACES};

const DATABASE: &[u8] = b"SQLite format 3\0";
/// Its last bit selects the byte order of the checksums.
const LOG: u32 = 0x377F_0682;
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// The last commit in a file, without its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileMark {
    /// The file is empty or has no table yet.
    Nothing,
    Commit(CommitMark),
    /// The file is not a store, or the page is damaged. After a power loss, the log has a copy.
    Unreadable,
}

impl FileMark {
    pub(super) fn read(mut file: &File) -> io::Result<Self> {
        let mut header = Vec::new();
        file.rewind()?;
        file.by_ref().take(100).read_to_end(&mut header)?;
        let length = file.metadata()?.len();
        if length == 0 {
            return Ok(Self::Nothing);
        }
        let Some(size) = page_size(&header) else { return Ok(Self::Unreadable) };
        if length <= size as u64 {
            return Ok(Self::Nothing);
        }
        let mut pages = Vec::new();
        file.rewind()?;
        file.take(u64::from(*PLACES.end()) * size as u64).read_to_end(&mut pages)?;
        let mark = pages.chunks_exact(size).skip(1).find_map(CommitMark::on_page);
        Ok(mark.map_or(Self::Unreadable, Self::Commit))
    }
}

fn page_size(header: &[u8]) -> Option<usize> {
    if header.len() < 100 || !header.starts_with(DATABASE) {
        return None;
    }
    match u16::from_be_bytes([header[16], header[17]]) {
        1 => Some(1 << 16),
        size if size >= 512 && size.is_power_of_two() => Some(size.into()),
        _ => None,
    }
}

/// Whether a log contains commits of another file.
pub(super) fn is_foreign(file: &File, log: &Path) -> io::Result<bool> {
    let log = match File::open(log) {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let Some(commits) = Commits::read(BufReader::with_capacity(1 << 16, log))? else {
        return Ok(false);
    };
    let belongs = match (FileMark::read(file)?, commits.first) {
        (FileMark::Unreadable, _) => true,
        (FileMark::Nothing, first) => {
            first.map_or(file.metadata()?.len() > 0, |first| first.parent == NOTHING)
        }
        (FileMark::Commit(mark), first) => {
            commits.ids.contains(&mark.id) || first.is_some_and(|first| first.parent == mark.id)
        }
    };
    Ok(!belongs)
}

#[derive(Debug, Default)]
struct Commits {
    first: Option<CommitMark>,
    ids: HashSet<i64>,
}

impl Commits {
    /// Reads a log up to its last complete commit, as `SQLite` does. A log is written again from its
    /// start, so after a power loss a commit may contain the mark of an earlier log.
    fn read(mut log: impl Read) -> io::Result<Option<Self>> {
        let mut header = [0; LOG_HEADER];
        if !fill(&mut log, &mut header)? {
            return Ok(None);
        }
        let (magic, size) = (number(&header, 0), number(&header, 8) as usize);
        let is_log = magic & !1 == LOG && size.is_power_of_two();
        if !is_log || !(512..=1 << 16).contains(&size) {
            return Ok(None);
        }
        let word = if magic & 1 == 1 { u32::from_be_bytes } else { u32::from_le_bytes };
        let mut sums = checksum([0; 2], &header[..24], word);
        let (mut found, mut open) = (None::<Self>, None);
        let mut frame = vec![0; FRAME_HEADER + size];
        // Frames of an earlier log have other random numbers, and so other checksums.
        while fill(&mut log, &mut frame)? && frame[8..16] == header[16..24] {
            sums = checksum(checksum(sums, &frame[..8], word), &frame[FRAME_HEADER..], word);
            if sums != [number(&frame, 16), number(&frame, 20)] {
                break;
            }
            if PLACES.contains(&number(&frame, 0)) {
                // If a commit wrote the page twice, its last version counts.
                open = CommitMark::on_page(&frame[FRAME_HEADER..]).or(open);
            }
            if number(&frame, 4) != 0 {
                let (commits, last) = (found.get_or_insert_default(), open.take());
                commits.first = commits.first.or(last);
                commits.ids.extend(last.map(|mark| mark.id));
            }
        }
        Ok(found)
    }
}

/// Continues the checksum of a log.
fn checksum(sums: [u32; 2], bytes: &[u8], word: fn([u8; 4]) -> u32) -> [u32; 2] {
    bytes
        .as_chunks()
        .0
        .iter()
        .fold(sums, |[one, two], bytes| [two, one.wrapping_add(two).wrapping_add(word(*bytes))])
}

/// Returns false if the file ends first.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn number(bytes: &[u8], place: usize) -> u32 {
    bytes[place..].first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
