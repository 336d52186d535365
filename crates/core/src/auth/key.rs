//! The RSA private key: generates, loads and saves it, and signs with it. Its `Debug` output
//! contains no secret, and its buffers are zeroed.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::{self, SystemRandom};
use aws_lc_rs::rsa::{KeyPair, KeyPairComponents, KeySize, PublicKeyComponents};
use aws_lc_rs::signature::RSA_PKCS1_SHA256;
use futures_util::future::BoxFuture;
use pkcs8::der::SecretDocument;
use pkcs8::pkcs5::pbes2;
use pkcs8::{LineEnding, PrivateKeyInfoRef};
use zeroize::Zeroizing;

use super::Checked;
use super::encoding::{self, Components};
use super::jwk::{PublicJwk, canonical};
use super::key_file::{self, absolute_hint, display_path};
use super::refusal::{parsed, refused};
use crate::files;
use crate::lock::Mutex;
use crate::system;
use crate::{Error, Kind, Result};

/// Iterations of PBKDF2 with SHA-256 in saved files. scrypt would be stronger, but OpenSSL does not
/// read scrypt of that strength.
const ITERATIONS: u32 = 600_000;

/// Signs with RS256: a raw RSASSA-PKCS1-v1_5 signature with SHA-256 over the given bytes.
pub trait Signer: Send + Sync {
    /// Signs the bytes of the encoded header and claims.
    fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>>;
}

/// A pending signature. Dropping the future cancels it.
pub type SignFuture = BoxFuture<'static, Result<Vec<u8>>>;

/// An asynchronous [`Signer`]: user code that runs on an event loop.
pub trait AsyncSigner: Send + Sync {
    /// Whether the current call can await a signature. Called before a token exchange.
    fn check(&self) -> Result<()>;

    /// Signs the bytes of the encoded header and claims.
    ///
    /// The future returns [`Kind::ClosedError`] if the event loop ended or the code was cancelled.
    /// Another caller that waits for the token then signs.
    fn sign(&self, signing_input: Vec<u8>) -> SignFuture;
}

/// An RSA private key of 2048 to 8192 bits. Cheap to clone; `Debug` shows its size and thumbprint.
#[derive(Clone)]
pub struct PrivateKey(Arc<KeyMaterial>);

struct KeyMaterial {
    pair: KeyPair,
    public: PublicJwk,
}

impl PrivateKey {
    /// Generates a key of 2048, 3072 or 4096 bits. This takes up to a few seconds.
    pub fn generate(bits: u32) -> Result<Self> {
        let size = match bits {
            2048 => KeySize::Rsa2048,
            3072 => KeySize::Rsa3072,
            4096 => KeySize::Rsa4096,
            _ => {
                return Err(refused(format!("A key of {bits} bits cannot be generated."))
                    .with_hint("bits= must be 2048, 3072 (the default) or 4096."));
            }
        };
        let pair = KeyPair::generate(size).and_then(|pair| pair.as_der()).map_err(|_| {
            Error::new(Kind::InternalError, "The cryptographic library could not generate a key.")
        })?;
        Self::parse(pair.as_ref(), None)
    }

    /// The key of all sandboxes of this process, generated at first use, because that takes longer
    /// than most tests. It exists only in memory, and each sandbox enrolls it under its own
    /// subject.
    pub fn of_sandboxes() -> Result<Self> {
        static KEY: Mutex<Option<PrivateKey>> = Mutex::new(None);
        let mut cached = KEY.lock();
        if let Some(key) = &*cached {
            return Ok(key.clone());
        }
        Ok(cached.insert(Self::generate(2_048)?).clone())
    }

    /// Loads a key file in any format of [`PrivateKey::parse`].
    ///
    /// If other users can read the file, this returns a warning, or an error if `strict`. Not
    /// checked on Windows.
    ///
    /// # Errors
    /// [`Kind::CredentialError`] with the path and without the content: for a file that is missing,
    /// a directory, unreadable or over 1 MiB, and for the errors of [`PrivateKey::parse`].
    pub fn load(path: &Path, passphrase: Option<&[u8]>, strict: bool) -> Result<Checked<Self>> {
        let (bytes, open_mode) = key_file::read("private key", path)?;
        let warnings = key_file::check_mode(path, open_mode, strict)?;
        let value =
            Self::parse(&bytes, passphrase).map_err(|error| key_file::placed(path, error))?;
        Ok(Checked { value, warnings })
    }

    /// Reads a key from bytes: PEM (PKCS#8, encrypted PKCS#8, PKCS#1), the same in DER, or a JWK.
    /// Accepts a byte order mark, any line endings, and surrounding white space.
    ///
    /// The passphrase is ignored if the key is not encrypted.
    ///
    /// # Errors
    /// [`Kind::CredentialError`] that names the format found and how to convert it.
    pub fn parse(bytes: &[u8], passphrase: Option<&[u8]>) -> Result<Self> {
        let Components { n, e, d, p, q, dp, dq, qi } =
            parsed(|| encoding::read(bytes, passphrase))?;
        // The size and the public part are checked first, because these errors are more specific.
        let public = PublicJwk::from_numbers(&n, &e)?;
        // from_components requires the public numbers without leading zeros, and checks that all
        // numbers match.
        let (n, e) = (canonical(&n), canonical(&e));
        let pair = KeyPair::from_components(&KeyPairComponents {
            public_key: PublicKeyComponents { n, e },
            d: d.as_slice(),
            p: p.as_slice(),
            q: q.as_slice(),
            dP: dp.as_slice(),
            dQ: dq.as_slice(),
            qInv: qi.as_slice(),
        })
        .map_err(|_| {
            refused("The numbers of this RSA key do not belong together.")
                .with_hint("The key is damaged or was assembled by hand. Use the original.")
        })?;
        Ok(Self(Arc::new(KeyMaterial { pair, public })))
    }

    pub fn bits(&self) -> u32 {
        self.0.public.bits()
    }

    /// The public key, to enroll.
    pub fn public_jwk(&self) -> PublicJwk {
        self.0.public.clone()
    }

    /// The RFC 7638 thumbprint of the public key, used as `kid`.
    pub fn thumbprint(&self) -> &str {
        self.0.public.thumbprint()
    }

    /// The key as PKCS#8 PEM, encrypted with PBES2 (PBKDF2 with SHA-256, AES-256-CBC) if there is a
    /// passphrase. OpenSSL and all common tools read both forms.
    pub fn to_pkcs8_pem(&self, passphrase: Option<&[u8]>) -> Result<Zeroizing<String>> {
        if passphrase.is_some_and(<[u8]>::is_empty) {
            return Err(refused("The passphrase is empty.")
                .with_hint("Omit it to save the key unencrypted, readable only by you."));
        }
        let failed = || Error::new(Kind::InternalError, "The private key could not be encoded.");
        let der = self.0.pair.as_der().map_err(|_| failed())?;
        let (label, document) = match passphrase {
            None => ("PRIVATE KEY", SecretDocument::try_from(der.as_ref()).map_err(|_| failed())?),
            Some(passphrase) => {
                let document = encrypted(der.as_ref(), passphrase).ok_or_else(failed)?;
                ("ENCRYPTED PRIVATE KEY", document)
            }
        };
        document.to_pem(label, LineEnding::LF).map_err(|_| failed())
    }

    /// Saves the key as PKCS#8 PEM (see [`PrivateKey::to_pkcs8_pem`]) with mode 600.
    ///
    /// With `overwrite` an existing file is replaced atomically. A full disk leaves it unchanged.
    pub fn save(&self, path: &Path, passphrase: Option<&[u8]>, overwrite: bool) -> Result<()> {
        let text = self.to_pkcs8_pem(passphrase)?;
        let written = if !overwrite && path.symlink_metadata().is_ok() {
            Err(io::ErrorKind::AlreadyExists.into())
        } else {
            files::write_whole(path, text.as_bytes(), overwrite)
        };
        written.map_err(|error| unwritable(path, &error))
    }
}

impl Signer for PrivateKey {
    fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>> {
        let mut signature = vec![0; self.0.pair.public_modulus_len()];
        self.0
            .pair
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signing_input, &mut signature)
            .map_err(|_| Error::new(Kind::InternalError, "The private key could not sign."))?;
        Ok(signature)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(RSA {} bits, thumbprint={})", self.bits(), self.thumbprint())
    }
}

fn encrypted(pkcs8: &[u8], passphrase: &[u8]) -> Option<SecretDocument> {
    let (mut salt, mut vector) = ([0; 16], [0; 16]);
    rand::fill(&mut salt).ok()?;
    rand::fill(&mut vector).ok()?;
    let parameters =
        pbes2::Parameters::generate_pbkdf2_sha256_aes256cbc(ITERATIONS, &salt, vector).ok()?;
    PrivateKeyInfoRef::try_from(pkcs8).ok()?.encrypt_with_params(parameters, passphrase).ok()
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    let (what, hint) = match error.kind() {
        io::ErrorKind::AlreadyExists => (
            "exists already, and a lost enrolled key cannot be recovered",
            "Choose another name, or pass overwrite=True.".to_owned(),
        ),
        io::ErrorKind::NotFound => {
            ("cannot be written: its directory does not exist", absolute_hint(path))
        }
        io::ErrorKind::PermissionDenied if cfg!(windows) => (
            "may not be written by this user, or is open in another program",
            "Choose your own directory, or close the file there.".to_owned(),
        ),
        io::ErrorKind::PermissionDenied => {
            ("may not be written by this user", "Choose your own directory.".to_owned())
        }
        _ => ("could not be written", format!("The system reports: {}.", system::reason(error))),
    };
    refused(format!("{} {what}.", display_path(path))).with_hint(hint).passing_as(error)
}

#[cfg(test)]
mod tests;
