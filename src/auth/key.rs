//! The RSA private key: made, loaded, saved, and used to sign. It cannot be printed, and what of
//! it passes through memory here is wiped.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::{self, SystemRandom};
use aws_lc_rs::rsa::{KeyPair, KeyPairComponents, KeySize, PublicKeyComponents};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256};
use futures_util::future::BoxFuture;
use pkcs8::der::SecretDocument;
use pkcs8::pkcs5::pbes2;
use pkcs8::{LineEnding, PrivateKeyInfo};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::components::Components;
use super::encoding;
use super::jwk::PublicJwk;
use super::refusal::refused;
use crate::{Error, Kind, Result};

/// Larger files are no key files; `/dev/zero` is endless.
const LARGEST_FILE: u64 = 1024 * 1024;
/// Longer paths may be a secret that was put in the wrong place.
const LONGEST_SHOWN_PATH: usize = 400;
/// Iterations of PBKDF2 with SHA-256 in saved files; scrypt would be stronger, but OpenSSL refuses
/// to read scrypt of that strength.
const ITERATIONS: u32 = 600_000;

/// Makes RS256 signatures: RSASSA-PKCS1-v1_5 with SHA-256 over the bytes given, raw.
pub trait Signer: Send + Sync {
    /// Signs the bytes of the encoded header and claims (§2.1).
    ///
    /// # Errors
    /// [`Kind::CredentialError`] where no signature can be had.
    fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>>;
}

/// A signature that is awaited. Dropped, nobody wants it any more.
pub type SignFuture = BoxFuture<'static, Result<Vec<u8>>>;

/// As [`Signer`], for signatures that are awaited: code of the user's that runs on an event loop.
pub trait AsyncSigner: Send + Sync {
    /// Whether the call under way can await a signature. Asked before a token exchange begins.
    ///
    /// # Errors
    /// [`Kind::ConfigError`] where it cannot.
    fn check(&self) -> Result<()>;

    /// Signs the bytes of the encoded header and claims (§2.1).
    ///
    /// The future gives [`Kind::ClosedError`] where the event loop ended or the code was cancelled: one
    /// who waits for the same token then signs anew. Otherwise as [`Signer::sign`].
    fn sign(&self, signing_input: Vec<u8>) -> SignFuture;
}

/// An RSA private key of 2048 to 8192 bits. Cheap to clone; prints as its size and thumbprint.
#[derive(Clone)]
pub struct PrivateKey(Arc<KeyMaterial>);

struct KeyMaterial {
    pair: KeyPair,
    public: PublicJwk,
}

/// A key from a file, and what is odd about the file.
#[derive(Debug)]
pub struct Loaded {
    /// The key.
    pub key: PrivateKey,
    /// Sentences that become Python warnings.
    pub warnings: Vec<String>,
}

impl PrivateKey {
    /// Makes a new key of 2048, 3072 or 4096 bits. Takes from a tenth of a second to some seconds.
    ///
    /// # Errors
    /// [`Kind::CredentialError`] for another size.
    pub fn generate(bits: u32) -> Result<Self> {
        let size = match bits {
            2048 => KeySize::Rsa2048,
            3072 => KeySize::Rsa3072,
            4096 => KeySize::Rsa4096,
            _ => {
                return Err(refused(format!("A key of {bits} bits cannot be made."))
                    .with_hint("bits= is 2048, 3072 (the default) or 4096."));
            }
        };
        let pair = KeyPair::generate(size).map_err(|_| {
            Error::new(Kind::InternalError, "The cryptographic library could not make a key.")
        })?;
        Self::from_pair(pair)
    }

    /// Loads a key file in any of the forms of [`PrivateKey::parse`].
    ///
    /// A file that other users of the machine can read is loaded with a warning, or refused where
    /// `strict` (K8; not checked on Windows).
    ///
    /// # Errors
    /// [`Kind::CredentialError`] naming the path, never the content: for a file that is missing, a
    /// directory, not readable or over 1 MiB, and all that [`PrivateKey::parse`] refuses.
    pub fn load(path: &Path, passphrase: Option<&[u8]>, strict: bool) -> Result<Loaded> {
        let (bytes, openness) = read_file(path).map_err(|error| unreadable(path, &error))?;
        let bytes = bytes.ok_or_else(|| {
            refused(format!("{} is over 1 MiB: no key file is that large.", shown(path)))
        })?;
        let mut warnings = Vec::new();
        if let Some(mode) = openness {
            let message =
                format!("Other users can read the key file {} (mode {mode:03o}).", shown(path));
            let hint = "Close it with chmod 600; if strangers use this machine, enroll a new key.";
            if strict {
                return Err(refused(message).with_hint(hint));
            }
            warnings.push(format!("{message} {hint}"));
        }
        let key = Self::parse(&bytes, passphrase).map_err(|error| {
            error.with(|context| context.message = format!("{}: {}", shown(path), context.message))
        })?;
        Ok(Loaded { key, warnings })
    }

    /// Reads a key from bytes: PEM (PKCS#8, encrypted PKCS#8, PKCS#1), the same in DER, or a JWK;
    /// with a byte order mark, other line ends and white space around. All give the same key.
    ///
    /// A passphrase for a key that is not encrypted is not used.
    ///
    /// # Errors
    /// [`Kind::CredentialError`], saying what was found instead and how to convert it.
    pub fn parse(bytes: &[u8], passphrase: Option<&[u8]>) -> Result<Self> {
        let Components { n, e, d, p, q, dp, dq, qi } = encoding::read(bytes, passphrase)?;
        // The size and the public part first: they have better words for what is wrong.
        let public = PublicJwk::from_numbers(&n, &e)?;
        // from_components wants the public numbers without leading zeros; it checks that all
        // belong together.
        let n = &n[n.iter().take_while(|&&octet| octet == 0).count()..];
        let e = &e[e.iter().take_while(|&&octet| octet == 0).count()..];
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
                .with_hint("The key is damaged or was put together by hand; take the original.")
        })?;
        Ok(Self(Arc::new(KeyMaterial { pair, public })))
    }

    /// True for text that is a key or was meant to be one: with a BEGIN line, a line break, a JSON
    /// object, or long base64. Such text is never taken for a path, nor shown (K1).
    #[must_use]
    pub fn looks_like_key_text(text: &str) -> bool {
        encoding::is_key_text(text)
    }

    fn from_pair(pair: KeyPair) -> Result<Self> {
        let public = PublicJwk::from_pkcs1(pair.public_key().as_ref())?;
        Ok(Self(Arc::new(KeyMaterial { pair, public })))
    }

    /// The size of the modulus.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.0.public.bits()
    }

    /// The public key, to enroll.
    #[must_use]
    pub fn public_jwk(&self) -> PublicJwk {
        self.0.public.clone()
    }

    /// RFC 7638 thumbprint of the public key: the `kid`.
    #[must_use]
    pub fn thumbprint(&self) -> &str {
        self.0.public.thumbprint()
    }

    /// The key as PKCS#8 PEM text; encrypted (PBES2: PBKDF2 with SHA-256, AES-256-CBC) where a
    /// passphrase is given. OpenSSL and every other common tool reads both.
    ///
    /// # Errors
    /// [`Kind::CredentialError`] for an empty passphrase.
    pub fn to_pkcs8_pem(&self, passphrase: Option<&[u8]>) -> Result<Zeroizing<String>> {
        if passphrase.is_some_and(<[u8]>::is_empty) {
            return Err(refused("The passphrase is empty.")
                .with_hint("Leave it out to save the key unencrypted, readable by you alone."));
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

    /// Saves the key as PKCS#8 PEM (see [`PrivateKey::to_pkcs8_pem`]), readable by its owner alone
    /// from the first byte on (mode 600).
    ///
    /// With `overwrite` the new file takes the place of an old one in one step: a full disk leaves
    /// the old one whole.
    ///
    /// # Errors
    /// [`Kind::CredentialError`] naming the path: it exists and `overwrite` was not asked for, or it
    /// cannot be written.
    pub fn save(&self, path: &Path, passphrase: Option<&[u8]>, overwrite: bool) -> Result<()> {
        let text = self.to_pkcs8_pem(passphrase)?;
        let written = if overwrite {
            let beside = beside(path);
            write_new(&beside, text.as_bytes()).and_then(|()| {
                fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))
            })
        } else {
            write_new(path, text.as_bytes())
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
    let parameters = pbes2::Parameters::pbkdf2_sha256_aes256cbc(ITERATIONS, &salt, &vector).ok()?;
    PrivateKeyInfo::try_from(pkcs8).ok()?.encrypt_with_params(parameters, passphrase).ok()
}

/// The bytes of a file (`None` over the largest size), and its mode where others may use it.
type FileRead = (Option<Zeroizing<Vec<u8>>>, Option<u32>);

fn read_file(path: &Path) -> io::Result<FileRead> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // Room for all of it at once: a vector that grows leaves copies behind.
    let room = usize::try_from(metadata.len().min(LARGEST_FILE)).unwrap_or(0) + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    let is_too_large = bytes.len() as u64 > LARGEST_FILE;
    Ok(((!is_too_large).then_some(bytes), openness(&metadata)))
}

#[cfg(unix)]
fn openness(metadata: &fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o777;
    (mode & 0o066 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn openness(_metadata: &fs::Metadata) -> Option<u32> {
    None
}

/// Writes a file that must not exist yet, and leaves none behind if that fails.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .inspect_err(|_| drop(fs::remove_file(path)))
}

/// A name in the same directory that nobody else uses.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", Uuid::new_v4().simple()));
    path.with_file_name(name)
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let (what, hint) = match error.kind() {
        io::ErrorKind::NotFound => ("does not exist", absolute_hint(path)),
        io::ErrorKind::IsADirectory => {
            ("is a directory", "Give the path of the key file in it.".to_owned())
        }
        io::ErrorKind::PermissionDenied => (
            "may not be read by this user",
            "It belongs to the user who made it; run as that user, or give this one a copy."
                .to_owned(),
        ),
        _ => ("could not be read", format!("The system says: {}.", error.kind())),
    };
    refused(format!("The private key file {} {what}.", shown(path))).with_hint(hint)
}

fn absolute_hint(path: &Path) -> String {
    if is_hidden(path) {
        return "Pass the text of a key as text, not as a path.".to_owned();
    }
    if path.starts_with("~") {
        return "A ~ is replaced by the shell, not here: give the whole path.".to_owned();
    }
    match std::path::absolute(path) {
        Ok(absolute) if absolute != path => format!("Looked for {}.", shown(&absolute)),
        _ => "Look at its directory and name.".to_owned(),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    let (what, hint) = match error.kind() {
        io::ErrorKind::AlreadyExists => (
            "exists already, and an enrolled key that is lost cannot be had back",
            "Choose another name, or pass overwrite=True.".to_owned(),
        ),
        io::ErrorKind::NotFound => {
            ("cannot be written: its directory does not exist", absolute_hint(path))
        }
        io::ErrorKind::PermissionDenied => {
            ("may not be written by this user", "Choose a directory of your own.".to_owned())
        }
        _ => ("could not be written", format!("The system says: {}.", error.kind())),
    };
    refused(format!("{} {what}.", shown(path))).with_hint(hint)
}

/// A path with what could garble a terminal escaped; one that may be a key in the wrong place is
/// not shown.
fn shown(path: &Path) -> String {
    if is_hidden(path) {
        format!("({} bytes that look like no path)", path.as_os_str().len())
    } else {
        format!("{:?}", path.to_string_lossy())
    }
}

fn is_hidden(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.len() > LONGEST_SHOWN_PATH || encoding::is_key_text(&text)
}

#[cfg(test)]
mod tests;
