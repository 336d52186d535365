//! Decodes text files written by users. Their editor or shell chose the encoding.

use zeroize::Zeroizing;

/// Decodes UTF-8, or UTF-16 as written by a redirect in `PowerShell`, and removes a byte order
/// mark. Returns `None` if the bytes are not text, such as DER.
pub fn text_of(bytes: &[u8]) -> Option<Zeroizing<String>> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => Some(utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Some(utf16(rest, u16::from_be_bytes)),
        // UTF-16 without a byte order mark: every second byte of ASCII text is zero.
        [one, 0, other, 0, ..] if is_ascii_text([*one, *other]) => {
            Some(utf16(bytes, u16::from_le_bytes))
        }
        [0, one, 0, other, ..] if is_ascii_text([*one, *other]) => {
            Some(utf16(bytes, u16::from_be_bytes))
        }
        _ => {
            let text = std::str::from_utf8(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
            match text {
                Ok(text) => Some(Zeroizing::new(text.to_owned())),
                // Comments around a PEM block may be in any encoding.
                Err(_) if bytes.windows(10).any(|window| window == b"-----BEGIN") => {
                    Some(Zeroizing::new(String::from_utf8_lossy(bytes).into_owned()))
                }
                Err(_) => None,
            }
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Zeroizing<String> {
    let units: Zeroizing<Vec<u16>> =
        Zeroizing::new(bytes.chunks_exact(2).map(|two| unit([two[0], two[1]])).collect());
    Zeroizing::new(String::from_utf16_lossy(&units))
}

fn is_ascii_text(bytes: [u8; 2]) -> bool {
    bytes.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_16_is_a_text_with_and_without_a_mark() {
        let units: Vec<u16> = "- é".encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for bytes in
            [[&b"\xff\xfe"[..], &little].concat(), [&b"\xfe\xff"[..], &big].concat(), little, big]
        {
            assert_eq!(text_of(&bytes).as_deref().map(String::as_str), Some("- é"));
        }
    }
}
