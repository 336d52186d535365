//! A tolerant PEM parser. Keys and certificates pass through environment variables, mails and
//! editors, which change or remove line endings, escape them as `\n`, or add other blocks. The
//! parser reads only the BEGIN and END lines and the base64 between them.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

use super::text::text_of;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";
/// Minimum length of bare base64. Shorter text is not a key, and longer text is not a file name.
const SHORTEST_BARE_BASE64: usize = 256;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A PEM block: its label, and the text between its BEGIN and END lines.
pub(crate) struct Block<'a> {
    pub label: &'a str,
    pub body: &'a str,
}

impl Block<'_> {
    /// Whether the block contains a private key of any kind.
    pub(crate) fn is_private_key(&self) -> bool {
        self.label.ends_with("PRIVATE KEY")
    }

    /// Whether the block contains a certificate.
    pub(crate) fn is_certificate(&self) -> bool {
        matches!(self.label, "CERTIFICATE" | "X509 CERTIFICATE" | "TRUSTED CERTIFICATE")
    }
}

/// Whether a text contains a PEM block, even a damaged one.
pub(crate) fn is_pem(text: &str) -> bool {
    text.contains("-----BEGIN")
}

/// Whether a text consists only of base64. Vaults and CI systems store keys this way.
pub(crate) fn is_bare_base64(text: &str) -> bool {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    text.len() >= SHORTEST_BARE_BASE64 && text.chars().all(|c| is_base64(c) || c.is_whitespace())
}

/// Restores line breaks that an environment variable or a JSON file contains in escaped form.
pub(crate) fn unescaped(text: &str) -> Zeroizing<String> {
    Zeroizing::new(text.replace("\\r", "\r").replace("\\n", "\n"))
}

/// Decodes base64 and ignores white space.
pub(crate) fn decode_base64(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut compact = Zeroizing::new(String::with_capacity(text.len()));
    compact.extend(text.chars().filter(|c| !c.is_whitespace()));
    // The decoder requires a multiple of three bytes.
    let mut bytes = Zeroizing::new(vec![0; compact.len() + 3]);
    let length = BASE64.decode_slice(compact.as_bytes(), &mut bytes).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

/// Decodes bare base64. Returns other bytes unchanged.
pub(crate) fn without_base64(bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    let text = text_of(bytes).filter(|text| is_bare_base64(text));
    let decoded = text.and_then(|text| decode_base64(&text));
    decoded.unwrap_or_else(|| Zeroizing::new(bytes.to_vec()))
}

/// Returns the blocks of a text with unescaped line breaks, or `None` if an END line is missing.
pub(crate) fn blocks(text: &str) -> Option<Vec<Block<'_>>> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(BEGIN) {
        let (label, after) = rest[start + BEGIN.len()..].split_once(DASHES)?;
        let end = after.find(END)?;
        blocks.push(Block { label: label.trim(), body: &after[..end] });
        rest = &after[end + END.len()..];
    }
    Some(blocks)
}
