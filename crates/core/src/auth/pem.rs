//! The private key in a PEM text.

use zeroize::Zeroizing;

use super::refusal::{not_rsa, refused};
use crate::Result;
use crate::files::{self, Block, decode_base64, unescaped};

/// Returns the DER of the only private key in a PEM text.
pub(super) fn private_key_der(text: &str) -> Result<Zeroizing<Vec<u8>>> {
    let unescaped = unescaped(text);
    let blocks = blocks(&unescaped)?;
    let mut keys = blocks.iter().filter(|block| block.is_private_key());
    let Some(key) = keys.next() else {
        return Err(not_rsa(blocks.first().map_or("a PEM text without a block", described)));
    };
    if keys.next().is_some() {
        return Err(refused("The PEM text contains more than one private key.")
            .with_hint("Keep only the enrolled key."));
    }
    match key.label {
        "EC PRIVATE KEY" => Err(not_rsa("an EC key")),
        "DSA PRIVATE KEY" => Err(not_rsa("a DSA key")),
        _ => der(key),
    }
}

/// Decodes the base64 of a block.
pub(super) fn der(block: &Block<'_>) -> Result<Zeroizing<Vec<u8>>> {
    match block.label {
        "OPENSSH PRIVATE KEY" => Err(refused("The key is in OpenSSH's own format.").with_hint(
            "Convert a copy (the command changes the file in place): ssh-keygen -p -m PKCS8 -f \
             copy-of-key",
        )),
        _ if block.body.contains("Proc-Type:") => Err(refused(
            "The key is encrypted in the legacy way (\"Proc-Type: 4,ENCRYPTED\"), which is weak \
             and not supported.",
        )
        .with_hint(
            "Convert the key once and keep the passphrase: openssl pkcs8 -topk8 -v2 aes-256-cbc \
             -in key.pem -out key-pkcs8.pem",
        )),
        _ => decode_base64(block.body).ok_or_else(|| {
            refused(
                "The PEM text is damaged: the text between its BEGIN and END lines is not base64.",
            )
            .with_hint("Copy the complete file again, unchanged.")
        }),
    }
}

/// The blocks of a text with real line breaks. Fails if the text ends before an END line.
pub(super) fn blocks(text: &str) -> Result<Vec<Block<'_>>> {
    files::blocks(text).ok_or_else(|| {
        refused("The PEM text stops before its END line.")
            .with_hint("Copy the complete text, including the BEGIN and END lines.")
    })
}

fn described(block: &Block<'_>) -> &'static str {
    match block.label {
        "PUBLIC KEY" | "RSA PUBLIC KEY" => "a public key",
        _ if block.is_certificate() => "a certificate",
        "CERTIFICATE REQUEST" | "NEW CERTIFICATE REQUEST" => "a certificate request",
        "EC PARAMETERS" => "the parameters of an EC key",
        "PKCS7" => "a PKCS#7 bundle",
        _ => "a PEM block of another type",
    }
}
