//! Limits the work that decrypting a key file may require. The file itself sets the rounds and the
//! memory. With extreme values the process would run out of memory or never finish.

use pkcs8::der::asn1::AnyRef;
use pkcs8::der::{Decode as _, Encode as _, SliceReader, Tagged as _};
use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::{Kdf, PBES2_OID, Parameters, ScryptParams};
use zeroize::Zeroizing;

use super::encoding::unknown_encryption;
use super::refusal::refused;
use crate::Result;

/// Maximum rounds of PBKDF2. OpenSSL writes 2,048 and siteline 600,000.
const MOST_ROUNDS: u32 = 10_000_000;
/// Maximum memory of scrypt (128 N r), in bytes. OpenSSL writes 16 MiB and reads up to 32 MiB.
const MOST_MEMORY: u64 = 256 * 1024 * 1024;
/// Maximum work of scrypt (N r p), which takes a few seconds.
const MOST_STEPS: u64 = 1 << 23;

/// The beginning of the names of all PBES1 encryptions of PKCS#12 (RFC 7292, appendix C).
const PBES1: &[u8] = b"\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01";
/// Maximum number of encrypted parts and keys of a PKCS#12 file. OpenSSL writes two, and other tools
/// three.
const MOST_PARTS: usize = 4;

/// Rejects an encryption that requires too much work. PBES1 has at most 65,535 rounds.
pub(super) fn check(encryption: &EncryptionScheme) -> Result<()> {
    match encryption.pbes2().map(|parameters| &parameters.kdf) {
        Some(Kdf::Pbkdf2(kdf)) if kdf.iteration_count > MOST_ROUNDS => Err(too_much(&format!(
            "{} rounds to decrypt the key; at most {MOST_ROUNDS} are accepted",
            kdf.iteration_count
        ))),
        Some(Kdf::Scrypt(kdf)) => check_scrypt(kdf),
        _ => Ok(()),
    }
}

/// Rejects a PKCS#12 file that requires too much work. With the passphrase this also searches its
/// parts with PBES2, whose keys are encrypted again. `p12_keystore` limits the rounds of each PBES1
/// and of the MAC.
pub(super) fn check_all(der: &[u8], passphrase: Option<&[u8]>) -> Result<()> {
    let ends = |name: &[u8]| -> Vec<usize> {
        let found = der.windows(name.len()).zip(name.len()..).filter(|(found, _)| *found == name);
        found.map(|(_, end)| end).collect()
    };
    let with_pbes2 = ends(&PBES2_OID.to_der().unwrap_or_default());
    if with_pbes2.len() + ends(PBES1).len() > MOST_PARTS {
        return Err(too_much("too many parts to be decrypted"));
    }
    for end in with_pbes2 {
        let Ok(mut rest) = SliceReader::new(&der[end..]) else { continue };
        let Ok(parameters) = Parameters::decode(&mut rest) else { continue };
        check(&parameters.clone().into())?;
        // An encrypted part has a tag of its context. An encrypted key is an OCTET STRING.
        let part = AnyRef::decode(&mut rest).ok().filter(|part| part.tag().is_context_specific());
        let Some((part, passphrase)) = part.zip(passphrase) else { continue };
        if let Ok(plain) = parameters.decrypt(passphrase, part.value()).map(Zeroizing::new) {
            check_all(&plain, None)?;
        }
    }
    Ok(())
}

fn check_scrypt(kdf: &ScryptParams) -> Result<()> {
    // The library panics at 0 and refuses the others.
    if !kdf.cost_parameter.is_power_of_two() {
        return Err(unknown_encryption());
    }
    let steps = kdf.cost_parameter.saturating_mul(kdf.block_size.into());
    let memory = steps.saturating_mul(128);
    if memory > MOST_MEMORY {
        let mebibytes = memory / 1024 / 1024;
        return Err(too_much(&format!(
            "{mebibytes} MiB of memory (scrypt) to decrypt the key; at most 256 MiB are accepted"
        )));
    }
    if steps.saturating_mul(kdf.parallelization.into()) > MOST_STEPS {
        return Err(too_much("too much work to decrypt the key (scrypt)"));
    }
    Ok(())
}

fn too_much(what: &str) -> crate::Error {
    refused(format!("The key file requires {what}.")).with_hint(
        "Encrypt it again with default settings: openssl pkcs8 -topk8 -v2 aes-256-cbc -in key.pem \
         -out key-pkcs8.pem",
    )
}

#[cfg(test)]
mod tests {
    use pkcs8::pkcs5::pbes2::{EncryptionScheme as Cipher, Pbkdf2Params};

    use super::*;

    fn checked(kdf: Kdf) -> Result<()> {
        check(&Parameters { kdf, encryption: Cipher::Aes256Cbc { iv: [0; 16] } }.into())
    }

    #[test]
    fn the_rounds_of_a_key_are_limited() {
        for (rounds, is_accepted) in [(1, true), (10_000_000, true), (10_000_001, false)] {
            let kdf = Pbkdf2Params::hmac_sha256(rounds, b"salt").expect("parameters");
            assert_eq!(checked(kdf.into()).is_ok(), is_accepted, "{rounds}");
        }
        let kdf = Pbkdf2Params::hmac_sha256(20_000_000, b"salt").expect("parameters");
        let error = checked(kdf.into()).expect_err("too many").to_string();
        assert!(error.contains("at most 10000000 are accepted"), "{error}");
    }

    #[test]
    fn the_memory_and_the_work_of_scrypt_are_limited() {
        for (cost_parameter, block_size, parallelization, is_accepted) in [
            (1 << 14, 8, 1, true),
            (1 << 17, 8, 1, true),
            (1 << 18, 8, 4, true),
            (1 << 18, 8, 5, false),
            (1 << 19, 8, 1, false),
            (1 << 25, 8, 1, false),
            (1 << 14, 65_535, 1, false),
            (1 << 14, 8, 65_535, false),
            (u64::MAX, 1, 1, false),
            (0, 8, 1, false),
            (12_345, 8, 1, false),
        ] {
            let salt = b"salt"[..].try_into().expect("a salt");
            let key_length = None;
            let kdf =
                ScryptParams { salt, cost_parameter, block_size, parallelization, key_length };
            let case = format!("{cost_parameter} {block_size} {parallelization}");
            assert_eq!(checked(kdf.into()).is_ok(), is_accepted, "{case}");
        }
    }
}
