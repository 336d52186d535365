//! Tests the file formats for certificates, and files that users pass by mistake.

use super::*;

const CERTIFICATE: &str = include_str!("../../../../tests/keys/certificate.pem");
const KEY: &[u8] = include_bytes!("../../../../tests/keys/pkcs8.pem");

fn der() -> Vec<u8> {
    read(CERTIFICATE.as_bytes()).expect("a certificate")[0].to_vec()
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).expect("short").to_be_bytes();
    let length: &[u8] = match (high, low) {
        (0, 0..0x80) => &[low],
        (0, _) => &[0x81, low],
        _ => &[0x82, high, low],
    };
    [&[tag], length, content].concat()
}

/// Returns a `SignedData` with these certificates and no signature, like `openssl crl2pkcs7
/// -nocrl`.
fn pkcs7(certificates: &[u8]) -> Vec<u8> {
    let data = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01];
    let signed = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
    let inside = [
        &[0x02, 0x01, 0x01, 0x31, 0x00][..],
        &element(0x30, &data),
        &element(0xa0, certificates),
        &[0x31, 0x00],
    ]
    .concat();
    let content = element(0xa0, &element(0x30, &inside));
    element(0x30, &[&signed[..], &content].concat())
}

fn block(label: &str, der: &[u8]) -> Vec<u8> {
    use base64::Engine as _;
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n").into_bytes()
}

fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(unit).collect()
}

#[test]
fn certificates_are_read_in_each_form() {
    use base64::Engine as _;
    let der = der();
    let text = format!("Certificate:\n    Subject: O = Plant Ä\n{CERTIFICATE}\ntrailing text");
    let bare = base64::engine::general_purpose::STANDARD.encode(&der);
    let trusted = [&der[..], &[0x30, 0x04, 0x30, 0x02, 0x05, 0x00]].concat();
    let with_mark = format!("\u{feff}{CERTIFICATE}");
    for (form, bytes) in [
        ("a byte order mark", with_mark.clone().into_bytes()),
        ("UTF-16 LE", utf16(&with_mark, u16::to_le_bytes)),
        ("UTF-16 BE", utf16(&with_mark, u16::to_be_bytes)),
        ("UTF-16 without a mark", utf16(CERTIFICATE, u16::to_le_bytes)),
        ("CRLF", CERTIFICATE.replace('\n', "\r\n").into_bytes()),
        ("CR", CERTIFICATE.replace('\n', "\r").into_bytes()),
        ("escaped line breaks", CERTIFICATE.replace('\n', "\\n").into_bytes()),
        ("text around", text.into_bytes()),
        ("Latin-1 around", [b"Stra\xdfe\n", CERTIFICATE.as_bytes()].concat()),
        ("a key before it", [KEY, CERTIFICATE.as_bytes()].concat()),
        ("DER", der.clone()),
        ("bare base64", bare.into_bytes()),
        ("TRUSTED CERTIFICATE", block("TRUSTED CERTIFICATE", &trusted)),
        ("X509 CERTIFICATE", block("X509 CERTIFICATE", &der)),
        ("PKCS#7", pkcs7(&der)),
        ("PKCS#7 in PEM", block("PKCS7", &pkcs7(&der))),
    ] {
        let found = read(&bytes).unwrap_or_else(|why| panic!("{form}: {why:?}"));
        assert_eq!(found, [CertificateDer::from(der.clone())], "{form}");
    }
    let two = [&der[..], &der].concat();
    for (form, bytes) in
        [("DER", two.clone()), ("PEM", CERTIFICATE.repeat(2).into_bytes()), ("PKCS#7", pkcs7(&two))]
    {
        assert_eq!(read(&bytes).map(|all| all.len()), Ok(2), "{form}");
    }
}

#[test]
fn what_is_no_bundle_of_certificates_is_named() {
    let key = decode_base64(blocks(std::str::from_utf8(KEY).unwrap()).unwrap()[0].body).unwrap();
    let cut = &CERTIFICATE[..CERTIFICATE.len() / 2];
    for (bytes, why) in [
        (&b""[..], "is empty"),
        (b" \r\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (KEY, "contains a private key and no certificate"),
        (&key, "contains a private key and no certificate"),
        (cut.as_bytes(), "stops within a certificate, before its END line"),
        (b"<!DOCTYPE html><p>Log in</p>", "contains no certificate in a known form"),
        (b"\xfe\xed\xfe\xed\0\0\0\x02", "contains no certificate in a known form"),
        (b"0\x03\x02\x01\x05", "contains no certificate in a known form"),
        (&block("CERTIFICATE", b"\x30\x01\x05"), "contains a certificate that cannot be read"),
        (&block("CERTIFICATE REQUEST", b"0"), "contains no certificate in a known form"),
        (&pkcs7(b""), "contains no certificate in a known form"),
        (
            &element(0x30, &[&[0x02, 1, 3][..], &element(0x30, b"")].concat()),
            "contains no certificate in a known form",
        ),
    ] {
        assert_eq!(read(bytes).map_err(|unusable| unusable.why), Err(why));
        assert_eq!(readable(bytes).map_err(|unusable| unusable.why), Err(why));
    }
}

#[test]
fn one_damaged_certificate_spoils_only_a_bundle() {
    let damaged = block("CERTIFICATE", b"\x30\x01\x05");
    let all = [damaged.as_slice(), CERTIFICATE.as_bytes()].concat();
    assert_eq!(read(&all).unwrap_err(), DAMAGED);
    assert_eq!(readable(&all).map(|found| found.len()), Ok(1));
}
