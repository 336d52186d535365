//! The text of a ledger file: one JSON object, padded to a fixed length. Its first member is the
//! checksum of everything after it.

use serde::{Deserialize, Serialize};

use super::count::Count;

const FORM: u32 = 1;
/// The length of every file. It is less than a page, so one write replaces it.
const LENGTH: usize = 2_560;
/// The length of `{"check":"01234567",`.
const CHECK: usize = 20;

#[derive(Serialize, Deserialize)]
pub(super) struct Contents {
    form: u32,
    pub(super) integration: String,
    pub(super) count: Count,
}

/// The member that every version has.
#[derive(Deserialize)]
struct FileForm {
    form: u32,
}

/// Why a text is not a valid ledger.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TextFault {
    #[error("is damaged")]
    Damaged,
    #[error("was written by a newer siteline (form {0})")]
    Newer(u32),
}

/// Writes a count. The length is the same for every count.
pub(super) fn write(count: &Count, integration: &str) -> serde_json::Result<String> {
    let contents =
        Contents { form: FORM, integration: integration.to_owned(), count: count.clone() };
    let text = serde_json::to_string(&contents)?;
    Ok(sealed(&format!("{:width$}\n", &text[1..], width = LENGTH - CHECK - 1)))
}

/// Adds the checksum to the members after it.
pub(super) fn sealed(members: &str) -> String {
    check(members.as_bytes()) + members
}

fn check(members: &[u8]) -> String {
    format!("{{\"check\":\"{:08x}\",", libdeflater::crc32(members))
}

pub(super) fn read(bytes: &[u8]) -> Result<Contents, TextFault> {
    let (head, members) = bytes.split_at_checked(CHECK).ok_or(TextFault::Damaged)?;
    if head != check(members).as_bytes() {
        return Err(TextFault::Damaged);
    }
    let form = serde_json::from_slice(bytes).map_err(|_| TextFault::Damaged)?;
    match form {
        FileForm { form: FORM } => serde_json::from_slice(bytes).map_err(|_| TextFault::Damaged),
        FileForm { form } => Err(TextFault::Newer(form)),
    }
}
