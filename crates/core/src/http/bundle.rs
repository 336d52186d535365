//! Reads the certificates in a file, in each of the usual file formats.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::asn1::{ContextSpecific, ObjectIdentifier};
use x509_cert::der::{Decode as _, Reader, SliceReader, Tag};

use crate::files::{
    Block, blocks, decode_base64, first_element, is_bare_base64, is_pem, leading_element,
    member_tags, text_of, unescaped,
};

/// `id-signedData` (RFC 5652 §5.1), the content type of a .p7b file.
const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const FORMS: &str = "The file must be PEM, DER or PKCS#7 (.p7b).";
const COPY_AGAIN: &str = "Copy the complete file again, unchanged.";

/// Why a file cannot be used as a bundle. `why` completes a sentence about the file; `hint` is
/// advice for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnusableBundle {
    pub(super) why: &'static str,
    pub(super) hint: &'static str,
}

const fn unusable(why: &'static str, hint: &'static str) -> UnusableBundle {
    UnusableBundle { why, hint }
}

const EMPTY: UnusableBundle =
    unusable("is empty", "Check the file or variable of the certificates.");
const KEY: UnusableBundle = unusable(
    "contains a private key and no certificate",
    "Pass the certificate. The key stays with its server.",
);
const NOTHING: UnusableBundle = unusable("contains no certificate", FORMS);
const DAMAGED: UnusableBundle = unusable("contains a certificate that cannot be read", COPY_AGAIN);

/// Returns all certificates, at least one.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, UnusableBundle> {
    let found = found_in(bytes)?;
    let mut store = RootCertStore::empty();
    for certificate in &found {
        store.add(certificate.clone()).map_err(|_| DAMAGED)?;
    }
    if found.is_empty() { Err(NOTHING) } else { Ok(found) }
}

/// Returns all certificates, at least one.
///
/// # Errors
/// The reason as the rest of a sentence, if there is no certificate or any certificate cannot be
/// read.
pub(crate) fn certificates(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    read(bytes).map_err(|unusable| unusable.why)
}

/// Returns the certificates that can be read, at least one. In PEM, damaged certificates are
/// skipped.
pub(super) fn readable(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, UnusableBundle> {
    if let Ok(found) = read(bytes) {
        return Ok(found);
    }
    let mut found: Vec<_> = match text_of(bytes).filter(|text| is_pem(text)) {
        Some(text) => CertificateDer::pem_slice_iter(text.as_bytes()).flatten().collect(),
        None => found_in(bytes)?,
    };
    let mut store = RootCertStore::empty();
    found.retain(|certificate| store.add(certificate.clone()).is_ok());
    if found.is_empty() { Err(read(bytes).err().unwrap_or(NOTHING)) } else { Ok(found) }
}

fn found_in(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, UnusableBundle> {
    let is_nothing = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    if bytes.iter().all(is_nothing) || matches!(bytes, b"\xef\xbb\xbf" | b"\xff\xfe" | b"\xfe\xff")
    {
        return Err(EMPTY);
    }
    let Some(text) = text_of(bytes) else { return in_der(bytes) };
    if is_pem(&text) {
        return in_pem(&text);
    }
    if is_bare_base64(&text) {
        let inner = decode_base64(&text).ok_or(NOTHING)?;
        return match text_of(&inner) {
            Some(text) if is_pem(&text) => in_pem(&text),
            _ => in_der(&inner),
        };
    }
    match text.trim_start().as_bytes() {
        [b'<', ..] => Err(unusable(
            "is a web page",
            "Download the certificate itself. The page may be a login or a file viewer.",
        )),
        _ => in_der(bytes),
    }
}

fn in_pem(text: &str) -> Result<Vec<CertificateDer<'static>>, UnusableBundle> {
    let text = unescaped(text);
    let cut_short = unusable("stops within a certificate, before its END line", COPY_AGAIN);
    let blocks = blocks(&text).ok_or(cut_short)?;
    let mut found = Vec::new();
    for block in &blocks {
        if block.is_certificate() {
            let der = decode_base64(block.body).ok_or(DAMAGED)?;
            // `TRUSTED CERTIFICATE` contains OpenSSL's trust settings after the certificate.
            found.push(certificate(leading_element(&der).ok_or(DAMAGED)?)?);
        } else if matches!(block.label, "PKCS7" | "CMS") {
            found.extend(in_pkcs7(&decode_base64(block.body).ok_or(DAMAGED)?)?);
        }
    }
    match blocks.first() {
        Some(block) if found.is_empty() => Err(other(block)),
        _ => Ok(found),
    }
}

fn other(block: &Block<'_>) -> UnusableBundle {
    match block.label {
        _ if block.is_private_key() => KEY,
        "PUBLIC KEY" | "RSA PUBLIC KEY" => unusable(
            "contains a public key and no certificate",
            "Pass the CA certificate, or the service's certificate.",
        ),
        "CERTIFICATE REQUEST" | "NEW CERTIFICATE REQUEST" => unusable(
            "contains a certificate request and no certificate",
            "Pass the certificate that the CA issued for it.",
        ),
        _ => NOTHING,
    }
}

fn in_der(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, UnusableBundle> {
    use Tag::{BitString, Integer, OctetString, Sequence};
    let first = leading_element(bytes).ok_or(match bytes {
        [0xfe, 0xed, 0xfe, 0xed, ..] => unusable(
            "is a Java key store",
            "Convert it: keytool -exportcert -rfc -keystore store.jks -file ca.pem",
        ),
        _ => NOTHING,
    })?;
    match member_tags(first).as_deref() {
        Some([Sequence, Sequence, BitString]) => several(bytes),
        Some([Tag::ObjectIdentifier, ..]) => in_pkcs7(first),
        Some(
            [Integer, Sequence, OctetString, ..]
            | [Integer, Integer, Integer, ..]
            | [Sequence, OctetString],
        ) => Err(KEY),
        Some([Integer, Sequence] | [Integer, Sequence, Sequence]) => Err(unusable(
            "is a PKCS#12 file (.p12, .pfx)",
            "Convert it: openssl pkcs12 -in ca.p12 -nokeys -out ca.pem",
        )),
        _ => Err(NOTHING),
    }
}

/// Reads consecutive certificates in DER.
fn several(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, UnusableBundle> {
    let (mut found, mut rest) = (Vec::new(), bytes);
    loop {
        let element = first_element(rest).or_else(|| leading_element(rest)).ok_or(DAMAGED)?;
        found.push(certificate(element)?);
        rest = &rest[element.len()..];
        if rest.iter().all(u8::is_ascii_whitespace) {
            return Ok(found);
        }
    }
}

fn certificate(der: &[u8]) -> Result<CertificateDer<'static>, UnusableBundle> {
    CertificateInner::<Raw>::from_der(der).map_err(|_| DAMAGED)?;
    Ok(der.to_vec().into())
}

/// Returns the certificates of a `SignedData` (RFC 5652 §5.1). Its signatures are not verified.
fn in_pkcs7(der: &[u8]) -> Result<Vec<CertificateDer<'static>>, UnusableBundle> {
    let set = certificate_set(der).map_err(|_| DAMAGED)?.unwrap_or_default();
    let (mut found, mut rest) = (Vec::new(), set.as_slice());
    while !rest.is_empty() {
        let mut reader = SliceReader::new(rest).map_err(|_| DAMAGED)?;
        let element = reader.tlv_bytes().map_err(|_| DAMAGED)?;
        // The set may also contain other kinds of certificates, such as attribute certificates.
        if leading_element(element).is_some() {
            found.push(certificate(element)?);
        }
        rest = &rest[element.len()..];
    }
    if found.is_empty() { Err(NOTHING) } else { Ok(found) }
}

/// Returns the content of `certificates [0]`, or `None` if it is absent.
fn certificate_set(der: &[u8]) -> x509_cert::der::Result<Option<Vec<u8>>> {
    let mut reader = SliceReader::new(der)?;
    reader.sequence(|info| {
        let kind = ObjectIdentifier::decode(info)?;
        if kind != SIGNED_DATA {
            info.tlv_bytes()?;
            return Ok(None);
        }
        let content = ContextSpecific::<x509_cert::der::Any>::decode(info)?.value;
        let mut inside = SliceReader::new(content.value())?;
        // version, digestAlgorithms, encapContentInfo
        for _ in 0..3 {
            inside.tlv_bytes()?;
        }
        if inside.is_finished() || !Tag::peek(&inside)?.is_context_specific() {
            return Ok(None);
        }
        let set = inside.tlv_bytes()?;
        let mut set = SliceReader::new(set)?;
        let header = x509_cert::der::Header::decode(&mut set)?;
        Ok(Some(set.read_slice(header.length())?.to_vec()))
    })
}

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
