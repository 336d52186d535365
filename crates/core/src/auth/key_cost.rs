//! Limits the work that decrypting a key file may require. The file itself sets the rounds and the
//! memory. With extreme values the process would run out of memory or never finish.

use pkcs8::der::asn1::ObjectIdentifier;
use pkcs8::der::{Decode as _, Header, Reader as _, SliceReader, Tag};

use super::refusal::refused;
use crate::Result;

/// Maximum rounds of PBKDF2 and PKCS#12. OpenSSL writes 2,048 and siteline 600,000.
const MOST_ROUNDS: u128 = 10_000_000;
/// Maximum memory of scrypt (128 N r), in bytes. OpenSSL writes 16 MiB and reads up to 32 MiB.
const MOST_MEMORY: u128 = 256 * 1024 * 1024;
/// Maximum work of scrypt (N r p), which takes a few seconds.
const MOST_STEPS: u128 = 1 << 23;
/// Maximum nesting of the elements. A normal key has 10 to 20 levels.
const DEEPEST: usize = 64;

const PBKDF2: &str = "1.2.840.113549.1.5.12";
const SCRYPT: &str = "1.3.6.1.4.1.11591.4.11";
/// PBES1 (RFC 8018 §A.3) and the schemes of PKCS#12 (RFC 7292 §C).
const WITH_ROUNDS: [&str; 2] = ["1.2.840.113549.1.5.", "1.2.840.113549.1.12.1."];

/// One DER element.
#[derive(Clone, Copy)]
struct Element<'a> {
    tag: Tag,
    content: &'a [u8],
    whole: &'a [u8],
}

/// Splits the bytes into consecutive DER elements. Returns `None` if they are not valid DER.
fn elements(bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let (mut found, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let whole = SliceReader::new(rest).ok()?.tlv_bytes().ok()?;
        let mut inside = SliceReader::new(whole).ok()?;
        let header = Header::decode(&mut inside).ok()?;
        found.push(Element {
            tag: header.tag(),
            content: inside.read_slice(header.length()).ok()?,
            whole,
        });
        rest = &rest[whole.len()..];
    }
    Some(found)
}

/// Rejects DER if any element in it requires too much work.
pub(super) fn check(der: &[u8]) -> Result<()> {
    check_elements(&elements(der).unwrap_or_default(), 0)?;
    check_mac(der)
}

fn check_elements(all: &[Element<'_>], depth: usize) -> Result<()> {
    if depth > DEEPEST {
        return Err(refused("The key file has too many nested elements.")
            .with_hint("Save the key again with the program that created it."));
    }
    if let [algorithm, parameters, ..] = all
        && algorithm.tag == Tag::ObjectIdentifier
        && let Ok(algorithm) = <ObjectIdentifier>::from_der(algorithm.whole)
    {
        check_algorithm(&algorithm.to_string(), parameters)?;
    }
    for element in all {
        // An octet string may itself contain DER.
        let is_outer = element.tag.is_constructed()
            || element.tag.is_context_specific()
            || element.tag == Tag::OctetString;
        if is_outer && let Some(inner) = elements(element.content) {
            check_elements(&inner, depth + 1)?;
        }
    }
    Ok(())
}

fn check_algorithm(algorithm: &str, parameters: &Element<'_>) -> Result<()> {
    let given = elements(parameters.content).unwrap_or_default();
    let number = |place: usize| given.get(place).and_then(number_of);
    if algorithm == SCRYPT
        && let (Some(n), Some(r), Some(p)) = (number(1), number(2), number(3))
    {
        return check_scrypt(n, r, p);
    }
    let has_rounds = WITH_ROUNDS.iter().any(|family| algorithm.starts_with(family));
    match number(1) {
        Some(rounds) if has_rounds || algorithm == PBKDF2 => check_rounds(rounds),
        _ => Ok(()),
    }
}

fn check_rounds(rounds: u128) -> Result<()> {
    if rounds <= MOST_ROUNDS {
        return Ok(());
    }
    Err(too_much(&format!(
        "requires {rounds} rounds to decrypt the key; at most {MOST_ROUNDS} are accepted"
    )))
}

fn check_scrypt(n: u128, r: u128, p: u128) -> Result<()> {
    let steps = n.saturating_mul(r);
    let memory = steps.saturating_mul(128);
    if memory > MOST_MEMORY {
        let mebibytes = memory / 1024 / 1024;
        return Err(too_much(&format!(
            "requires {mebibytes} MiB of memory (scrypt) to decrypt the key; at most 256 MiB are \
             accepted"
        )));
    }
    if steps.saturating_mul(p) > MOST_STEPS {
        return Err(too_much(&format!(
            "requires too much work to decrypt the key (scrypt with N {n}, r {r}, p {p})"
        )));
    }
    Ok(())
}

/// Checks the rounds of the PKCS#12 checksum (RFC 7292 §4). No key derivation algorithm precedes
/// them, so `check_elements` does not find them.
fn check_mac(der: &[u8]) -> Result<()> {
    let outer = elements(der).unwrap_or_default();
    let members = outer.first().and_then(|outer| elements(outer.content)).unwrap_or_default();
    let mac = members.get(2).and_then(|mac| elements(mac.content)).unwrap_or_default();
    mac.get(2).and_then(number_of).map_or(Ok(()), check_rounds)
}

/// Reads an integer as an unsigned number. A value that does not fit into 128 bits returns
/// `u128::MAX`.
fn number_of(element: &Element<'_>) -> Option<u128> {
    if element.tag != Tag::Integer {
        return None;
    }
    let digits = element.content.iter().skip_while(|byte| **byte == 0).copied();
    let digits: Vec<u8> = digits.take(17).collect();
    if digits.len() > 16 {
        return Some(u128::MAX);
    }
    Some(digits.iter().fold(0, |number, byte| (number << 8) | u128::from(*byte)))
}

fn too_much(what: &str) -> crate::Error {
    refused(format!("The key file {what}.")).with_hint(
        "Encrypt it again with default settings (for PKCS#12 after `openssl pkcs12`): openssl \
         pkcs8 -topk8 -v2 aes-256-cbc -in key.pem -out key-pkcs8.pem",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: u8, content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        assert!(content.len() < 128);
        [&[tag, u8::try_from(content.len()).unwrap()], &content[..]].concat()
    }

    fn number(value: u64) -> Vec<u8> {
        let bytes = value.to_be_bytes();
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(7);
        element(2, &[&[0], &bytes[start..]])
    }

    /// Returns an encrypted key with this key derivation and a dummy content.
    fn encrypted(kdf: &[u8], parameters: &[&[u8]]) -> Vec<u8> {
        let derivation = element(0x30, &[&element(6, &[kdf]), &element(0x30, parameters)]);
        let pbes2 = element(6, &[&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13]]);
        let algorithm = element(0x30, &[&pbes2, &element(0x30, &[&derivation])]);
        element(0x30, &[&algorithm, &element(4, &[b"secret"])])
    }

    const PBKDF2: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 12];
    const SCRYPT: [u8; 9] = [0x2b, 6, 1, 4, 1, 0xda, 0x47, 4, 11];

    #[test]
    fn the_rounds_of_a_key_are_limited() {
        for (rounds, is_accepted) in [
            (1, true),
            (2_048, true),
            (10_000_000, true),
            (10_000_001, false),
            (1 << 31, false),
            (u64::MAX >> 9, false),
        ] {
            let key = encrypted(&PBKDF2, &[&element(4, &[b"salt"]), &number(rounds)]);
            assert_eq!(check(&key).is_ok(), is_accepted, "{rounds}");
        }
        let huge = element(2, &[&[0x7f; 30]]);
        let error = check(&encrypted(&PBKDF2, &[&element(4, &[]), &huge])).unwrap_err();
        assert!(error.to_string().contains("at most 10000000 are accepted"), "{error}");
    }

    #[test]
    fn the_memory_and_the_work_of_scrypt_are_limited() {
        for (n, r, p, is_accepted) in [
            (1 << 14, 8, 1, true),
            (1 << 17, 8, 1, true),
            (1 << 18, 8, 4, true),
            (1 << 18, 8, 5, false),
            (1 << 19, 8, 1, false),
            (1 << 25, 8, 1, false),
            (1 << 14, 65_535, 1, false),
            (1 << 14, 8, 65_535, false),
            (u64::MAX >> 9, 1, 1, false),
        ] {
            let parameters = [element(4, &[b"salt"]), number(n), number(r), number(p)];
            let parameters: Vec<&[u8]> = parameters.iter().map(Vec::as_slice).collect();
            let checked = check(&encrypted(&SCRYPT, &parameters));
            assert_eq!(checked.is_ok(), is_accepted, "{n} {r} {p}");
        }
    }

    #[test]
    fn the_checksum_and_the_schemes_of_pkcs12_are_limited() {
        let bag = |rounds| {
            let scheme = element(6, &[&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 12, 1, 3]]);
            let parameters = element(0x30, &[&element(4, &[b"salt"]), &number(rounds)]);
            let inside = element(0x30, &[&scheme, &parameters]);
            element(0xa0, &[&element(4, &[&element(0x30, &[&inside])])])
        };
        let pfx = |bag: &[u8], rounds| {
            let mac = element(0x30, &[&element(0x30, &[]), &element(4, &[]), &number(rounds)]);
            element(0x30, &[&number(3), &element(0x30, &[bag]), &mac])
        };
        assert!(check(&pfx(&bag(2_048), 2_048)).is_ok());
        assert!(check(&pfx(&bag(1 << 31), 2_048)).is_err());
        assert!(check(&pfx(&bag(2_048), 1 << 31)).is_err());
    }

    #[test]
    fn nested_elements_are_limited() {
        let mut deep = element(0x30, &[]);
        for _ in 0..100 {
            let length = u16::try_from(deep.len()).unwrap();
            let head = match length {
                0..128 => vec![0x30, u8::try_from(length).unwrap()],
                128..256 => vec![0x30, 0x81, u8::try_from(length).unwrap()],
                _ => [&[0x30, 0x82], &length.to_be_bytes()[..]].concat(),
            };
            deep = [head, deep].concat();
        }
        assert!(check(&deep).is_err());
    }
}
