//! JSON Web Keys (RFC 7517, 7518): the public key to enroll, its thumbprint (RFC 7638), and private
//! keys in JWK format.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

use super::encoding::{Components, Secret};
use super::refusal::{not_rsa, refused};
use crate::Result;

/// Base64url as in RFC 7515. The padding that some tools add is accepted.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Minimum size of an RSA key (RFC 7518 §3.3).
const FEWEST_BITS: u32 = 2048;
const MOST_BITS: u32 = 8192;

/// An RSA public key. It is enrolled, and verifies every signature. The canonical form makes the
/// thumbprints of equal keys equal in every format.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PublicJwk(Arc<Numbers>);

#[derive(PartialEq, Eq, Hash)]
struct Numbers {
    n: Vec<u8>,
    e: Vec<u8>,
    thumbprint: String,
}

/// The members that enrollment requires, in this order.
#[derive(Serialize)]
struct Enrolled<'a> {
    kty: &'static str,
    n: String,
    e: String,
    kid: &'a str,
    alg: &'static str,
    #[serde(rename = "use")]
    usage: &'static str,
}

impl PublicJwk {
    /// Reads a public JWK. Accepts padded base64url and leading zero octets. Ignores its `kid`:
    /// siteline's `kid` is the thumbprint.
    pub fn parse(json: &str) -> Result<Self> {
        let members = Members::parse(json)?;
        if members.is_private() {
            return Err(refused(
                "This JWK contains the private key, but only the public key is expected.",
            )
            .with_hint("Remove all members except kty, n and e, or pass it as the private key."));
        }
        Self::from_numbers(&number("n", members.n)?, &number("e", members.e)?)
    }

    /// The public key with this modulus and exponent, big-endian.
    pub(super) fn from_numbers(n: &[u8], e: &[u8]) -> Result<Self> {
        let (n, e) = (canonical(n).to_vec(), canonical(e).to_vec());
        check_size(bits_of(&n))?;
        check_numbers(&n, &e)?;
        let [encoded_n, encoded_e] = [&n, &e].map(|number| URL_SAFE_NO_PAD.encode(number));
        // RFC 7638 hashes these members, in alphabetical order.
        let hashed = format!(r#"{{"e":"{encoded_e}","kty":"RSA","n":"{encoded_n}"}}"#);
        let thumbprint = URL_SAFE_NO_PAD.encode(digest(&SHA256, hashed.as_bytes()));
        Ok(Self(Arc::new(Numbers { n, e, thumbprint })))
    }

    /// The JWK to enroll: `kty`, `n`, `e`, `kid` (the thumbprint), `alg` and `use`.
    pub fn to_json(&self) -> String {
        // Cannot fail, because all members are strings.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// `n` and `e` in base64url without padding.
    pub(crate) fn encoded(&self) -> [String; 2] {
        [URL_SAFE_NO_PAD.encode(&self.0.n), URL_SAFE_NO_PAD.encode(&self.0.e)]
    }

    /// RFC 7638 thumbprint with SHA-256, in base64url without padding: 43 characters.
    pub fn thumbprint(&self) -> &str {
        &self.0.thumbprint
    }

    pub fn bits(&self) -> u32 {
        bits_of(&self.0.n)
    }

    pub(crate) fn signature_length(&self) -> usize {
        self.0.n.len()
    }

    /// Whether this is an RS256 signature (RSASSA-PKCS1-v1_5 with SHA-256) of the message.
    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        RsaPublicKeyComponents { n: &self.0.n, e: &self.0.e }
            .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            .is_ok()
    }
}

impl Serialize for PublicJwk {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let [n, e] = self.encoded();
        let kid = self.thumbprint();
        Enrolled { kty: "RSA", n, e, kid, alg: "RS256", usage: "sig" }.serialize(serializer)
    }
}

impl fmt::Debug for PublicJwk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicJwk(RSA {} bits, thumbprint={})", self.bits(), self.thumbprint())
    }
}

/// The numbers of a private JWK.
pub(super) fn read_private(json: &str) -> Result<Components> {
    let members = Members::parse(json)?;
    if !members.is_private() {
        return Err(not_rsa("a public key (a JWK without d)"));
    }
    let n = number("n", members.n)?;
    Ok(Components {
        e: number("e", members.e)?.to_vec(),
        d: number("d", members.d)?,
        p: number("p", members.p)?,
        q: number("q", members.q)?,
        dp: number("dp", members.dp)?,
        dq: number("dq", members.dq)?,
        qi: number("qi", members.qi)?,
        n: n.to_vec(),
    })
}

/// The supported members of a JWK, wiped when they are dropped. Others (`kid`, `x5c`, ...) are ignored.
#[derive(Deserialize)]
struct Members {
    kty: Option<Zeroizing<String>>,
    n: Option<Zeroizing<String>>,
    e: Option<Zeroizing<String>>,
    d: Option<Zeroizing<String>>,
    p: Option<Zeroizing<String>>,
    q: Option<Zeroizing<String>>,
    dp: Option<Zeroizing<String>>,
    dq: Option<Zeroizing<String>>,
    qi: Option<Zeroizing<String>>,
    oth: Option<IgnoredAny>,
    keys: Option<IgnoredAny>,
}

impl Members {
    fn parse(json: &str) -> Result<Self> {
        let json = json.trim_start_matches('\u{feff}').trim();
        if !json.starts_with('{') {
            return Err(refused("This is not a JWK: a JSON object was expected."));
        }
        // The parser's message quotes the input, so only the position is shown.
        let members: Self = serde_json::from_str(json).map_err(|error| {
            refused(format!(
                "This is not a JWK: the JSON object has an error at line {}, column {} (truncated, \
                 not JSON, a duplicate member, or a member that is not text).",
                error.line(),
                error.column(),
            ))
        })?;
        members.check_type()?;
        Ok(members)
    }

    fn check_type(&self) -> Result<()> {
        if self.keys.is_some() {
            return Err(refused("This is a set of keys (a JWK Set), not a key.")
                .with_hint("Pass the object in its `keys` that matches the enrolled public key."));
        }
        if self.oth.is_some() {
            return Err(not_rsa("an RSA key with more than two primes"));
        }
        match self.kty.as_ref().map(|kty| kty.as_str()) {
            Some("RSA") => Ok(()),
            Some("EC") => Err(not_rsa("an EC key")),
            Some("OKP") => Err(not_rsa("an Ed25519 or similar key (a JWK of type OKP)")),
            Some("oct") => Err(not_rsa("a shared secret (a JWK of type oct)")),
            Some(_) => Err(not_rsa("a JWK of another type")),
            None => Err(refused("This is not a JWK: the JSON object has no member kty.")),
        }
    }

    fn is_private(&self) -> bool {
        let members = [&self.d, &self.p, &self.q, &self.dp, &self.dq, &self.qi];
        members.into_iter().any(Option::is_some)
    }
}

fn number(name: &str, text: Option<Zeroizing<String>>) -> Result<Secret> {
    let text = text.ok_or_else(|| {
        refused(format!("The JWK has no member {name}."))
            .with_hint("A public RSA JWK has n and e; a private one also d, p, q, dp, dq and qi.")
    })?;
    // The decoder requires a multiple of three bytes.
    let mut bytes = Zeroizing::new(vec![0; text.len() + 3]);
    let length = BASE64URL.decode_slice(text.as_bytes(), &mut bytes).map_err(|_| {
        refused(format!("The member {name} of the JWK is not base64url."))
            .with_hint("Base64url has - and _ instead of + and /, and no line breaks.")
    })?;
    bytes.truncate(length);
    Ok(bytes)
}

/// Removes leading zero octets.
pub(super) fn canonical(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|&&octet| octet == 0).count();
    &number[zeros..]
}

fn bits_of(canonical: &[u8]) -> u32 {
    let octets = u32::try_from(canonical.len()).unwrap_or(u32::MAX);
    octets.saturating_mul(8) - canonical.first().map_or(0, |octet| octet.leading_zeros())
}

/// Checks that the numbers form a valid RSA key. The library checks this when it reads the encoded
/// form.
fn check_numbers(n: &[u8], e: &[u8]) -> Result<()> {
    let encoded = RsaPublicKeyComponents { n, e }.as_der();
    if encoded.is_ok_and(|der| aws_lc_rs::rsa::PublicKey::from_der(der.as_ref()).is_ok()) {
        return Ok(());
    }
    Err(refused("The modulus and exponent are not a valid RSA public key.")
        .with_hint("Compare them with the enrolled key. The exponent is nearly always AQAB."))
}

fn check_size(bits: u32) -> Result<()> {
    if (FEWEST_BITS..=MOST_BITS).contains(&bits) {
        return Ok(());
    }
    Err(refused(format!("The RSA key has {bits} bits; {FEWEST_BITS} to {MOST_BITS} are accepted."))
        .with_hint("Create a key with siteline.PrivateKey.generate() and enroll its public JWK."))
}
