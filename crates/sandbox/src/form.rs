//! Decodes URL-encoded names and values strictly: a service that accepts bad encoding hides errors
//! of its clients.

/// Decodes `name=value&name=value` (`+` is a space), in order. `Err` is the reason.
pub(super) fn decode(text: &str) -> Result<Vec<(String, String)>, String> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').ok_or("a parameter without \"=\"")?;
            Ok((decode_part(name)?, decode_part(value)?))
        })
        .collect()
}

fn decode_part(text: &str) -> Result<String, String> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'+' => b' ',
            b'%' => match (hex(rest.next()), hex(rest.next())) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => return Err("a % that is not followed by two hexadecimal digits".to_owned()),
            },
            0x21..=0x7e => octet,
            _ => return Err("a character that must be percent-encoded".to_owned()),
        });
    }
    String::from_utf8(octets).map_err(|_| "text that is not UTF-8".to_owned())
}

fn hex(octet: Option<u8>) -> Option<u8> {
    u8::try_from(char::from(octet?).to_digit(16)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded_in_order_and_bad_encoding_is_refused() {
        let pairs = decode("a=1&b=%C3%A4+%2B&a=").expect("pairs");
        let expected = [("a", "1"), ("b", "ä +"), ("a", "")];
        assert_eq!(pairs, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        for bad in ["a=%zz", "a=%4", "a", "a=\u{e4}", "a=%ff"] {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }
}
