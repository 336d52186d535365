//! Reads the outer elements of DER, which identify the contents of a file.

use pkcs8::der::{Decode as _, Header, Reader as _, SliceReader, Tag};

/// Returns the first DER element if only white space follows it, such as a line break added by an
/// editor. Trimming the bytes before parsing could remove a byte of a key.
pub(crate) fn first_element(bytes: &[u8]) -> Option<&[u8]> {
    let element = leading_element(bytes)?;
    bytes[element.len()..].iter().all(u8::is_ascii_whitespace).then_some(element)
}

/// Returns the first DER element if it is a SEQUENCE. Any bytes may follow it.
pub(crate) fn leading_element(bytes: &[u8]) -> Option<&[u8]> {
    let mut reader = SliceReader::new(bytes).ok()?;
    let is_sequence = Tag::peek(&reader).ok()? == Tag::Sequence;
    if is_sequence { reader.tlv_bytes().ok() } else { None }
}

/// Splits bytes into consecutive DER elements.
pub(crate) fn elements(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let element = SliceReader::new(bytes).ok()?.tlv_bytes().ok()?;
        found.push(element);
        bytes = &bytes[element.len()..];
    }
    Some(found)
}

/// Returns the members of a constructed element.
pub(crate) fn members(der: &[u8]) -> Option<Vec<&[u8]>> {
    let mut reader = SliceReader::new(der).ok()?;
    let header = Header::decode(&mut reader).ok()?;
    elements(reader.read_slice(header.length()).ok()?)
}

/// Returns the tags of the members of the outer SEQUENCE. They identify the format.
pub(crate) fn member_tags(der: &[u8]) -> Option<Vec<Tag>> {
    let members = members(leading_element(der)?)?.into_iter();
    members.map(|member| Tag::peek(&SliceReader::new(member).ok()?).ok()).collect()
}
