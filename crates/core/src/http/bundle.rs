//! Reads the certificates in a file, in each of the usual file formats.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_cert::der::Tag;

use crate::error::{Error, Kind};
use crate::files::{
    Block, blocks, decode_base64, elements, first_element, is_pem, leading_element, member_tags,
    members, text_of, unescaped, without_base64,
};

const FORMS: &str = "The file must be PEM, DER or PKCS#7 (.p7b). Convert PKCS#12: openssl pkcs12 \
-in ca.p12 -nokeys -out ca.pem; and a Java key store: keytool -exportcert -rfc -file ca.pem.";
const COPY_AGAIN: &str = "Copy the complete file again, unchanged.";

/// Why a file cannot be used as a bundle. `why` completes a sentence about the file; `hint` is
/// advice for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnusableBundle {
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
const NOTHING: UnusableBundle = unusable("contains no certificate in a known form", FORMS);
const DAMAGED: UnusableBundle = unusable("contains a certificate that cannot be read", COPY_AGAIN);

impl UnusableBundle {
    /// The error for `what`, which names the file.
    pub(crate) fn error(self, kind: Kind, what: &str) -> Error {
        Error::new(kind, format!("{what} {}.", self.why)).with_hint(self.hint)
    }
}

/// Returns all certificates, at least one.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, UnusableBundle> {
    let found = found_in(bytes)?;
    let mut store = RootCertStore::empty();
    for certificate in &found {
        store.add(certificate.clone()).map_err(|_| DAMAGED)?;
    }
    if found.is_empty() { Err(NOTHING) } else { Ok(found) }
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
    let bytes = without_base64(bytes);
    match text_of(&bytes) {
        Some(text) if is_pem(&text) => in_pem(&text),
        _ => in_der(&bytes),
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
            found.push(certificate(leading_element(&der).ok_or(DAMAGED)?));
        } else if matches!(block.label, "PKCS7" | "CMS") {
            found.extend(in_pkcs7(&decode_base64(block.body).ok_or(DAMAGED)?)?);
        }
    }
    if found.is_empty() && blocks.iter().any(Block::is_private_key) { Err(KEY) } else { Ok(found) }
}

fn in_der(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, UnusableBundle> {
    use Tag::{BitString, Integer, OctetString, Sequence};
    let first = leading_element(bytes).ok_or(NOTHING)?;
    match member_tags(first).as_deref() {
        Some([Sequence, Sequence, BitString]) => {
            let one = first_element(bytes).map(|only| vec![only]);
            let all = one.or_else(|| elements(bytes)).ok_or(DAMAGED)?;
            Ok(all.into_iter().map(certificate).collect())
        }
        Some([Tag::ObjectIdentifier, ..]) => in_pkcs7(first),
        Some(
            [Integer, Sequence, OctetString, ..]
            | [Integer, Integer, Integer, ..]
            | [Sequence, OctetString],
        ) => Err(KEY),
        _ => Err(NOTHING),
    }
}

fn certificate(der: &[u8]) -> CertificateDer<'static> {
    der.to_vec().into()
}

/// Returns the certificates of a `SignedData` (RFC 5652 §5.1). Its signatures are not verified.
fn in_pkcs7(der: &[u8]) -> Result<Vec<CertificateDer<'static>>, UnusableBundle> {
    let set = certificate_set(der).ok_or(DAMAGED)?.into_iter();
    // The set may also contain other kinds of certificates, such as attribute certificates.
    let certificates = set.filter(|element| leading_element(element).is_some());
    Ok(certificates.map(certificate).collect())
}

/// Returns the members of `certificates [0]`, which is optional and follows version,
/// digestAlgorithms and encapContentInfo.
fn certificate_set(der: &[u8]) -> Option<Vec<&[u8]>> {
    let content = *members(der)?.get(1)?;
    let signed_data = members(members(content)?.first()?)?;
    match signed_data.get(3) {
        Some(certificates) if certificates.starts_with(&[0xa0]) => members(certificates),
        _ => Some(Vec::new()),
    }
}

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
