use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use pkcs8::der::Document;

use super::super::tests::KEY;
use std::fs;

use super::*;
use crate::http::test_server::{TestFolder, assert_error};

/// The thumbprint of `tests/keys/pkcs8.pem`, computed with openssl and Python.
const THUMBPRINT: &str = "Glxfsfx2VnL8RGBt3yhYhPZJLrxEDKCG1dl7YD2qatY";
const PASSPHRASE: &[u8] = b"correct-horse-battery";

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/keys/", $name))
    };
}

/// The error for a refused key; checks that it quotes nothing of the key.
fn refusal(bytes: &[u8], passphrase: Option<&[u8]>) -> String {
    let error = PrivateKey::parse(bytes, passphrase).expect_err("refused");
    assert_eq!(error.kind(), Kind::CredentialError);
    let text = format!("{error}\n{error:?}");
    assert_no_part_of(bytes, &text);
    text
}

/// Checks that the message contains no 16 consecutive characters of the key's text.
fn assert_no_part_of(secret: &[u8], text: &str) {
    let secret = String::from_utf8_lossy(secret);
    let lines = secret.lines().filter(|line| line.len() >= 40 && !line.contains(' '));
    for line in lines {
        for start in 0..line.len() - 16 {
            let piece = line.get(start..start + 16);
            assert!(piece.is_none_or(|piece| !text.contains(piece)), "{text}");
        }
    }
}

fn der(pem: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(pem).expect("text");
    let (_, document) =
        Document::from_pem(&text[text.find("-----BEGIN").expect("PEM")..]).expect("PEM");
    document.into_vec()
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

#[test]
fn k1_a_missing_file_a_directory_and_a_huge_file_are_named_by_path() {
    let directory = TestFolder::new();
    let missing = directory.join("absent.pem");
    let error = PrivateKey::load(&missing, None, false).expect_err("refused");
    assert_eq!(error.kind(), Kind::CredentialError);
    assert!(error.to_string().contains("absent.pem") && error.to_string().contains("not exist"));

    assert_error(
        PrivateKey::load(&directory, None, false),
        Kind::CredentialError,
        "is a directory",
    );

    assert_error(
        PrivateKey::load(Path::new("~/key.pem"), None, false),
        Kind::CredentialError,
        "shell",
    );
}

#[test]
fn k1_key_text_is_recognised_and_never_treated_as_a_path() {
    let pem = KEY.to_pkcs8_pem(None).expect("PEM");
    let one_line = pem.replace('\n', "");
    let escaped = pem.replace('\n', "\\n");
    let bare = STANDARD.encode(der(pem.as_bytes()));
    for text in [pem.as_str(), &one_line, &escaped, &bare, "{\"kty\":", "a\nb"] {
        assert!(encoding::is_key_text(text));
    }
    for path in ["key.pem", "/etc/keys/BEGIN.pem", "C:\\keys\\new.pem", "keys/ä.der"] {
        assert!(!encoding::is_key_text(path), "{path}");
    }
}

#[test]
fn k1_the_content_of_a_file_is_never_shown() {
    let directory = TestFolder::new();
    let path = directory.join("key.pem");
    let secret = "hunter2-hunter2-hunter2";
    for content in [secret.to_owned(), format!("{{\"kty\":\"RSA\",\"d\":\"{secret}\",\"n\":{{}}")] {
        fs::write(&path, &content).expect("written");
        let error = PrivateKey::load(&path, None, false).expect_err("refused");
        assert!(error.to_string().contains("key.pem") && !error.to_string().contains("hunter2"));
    }
    let text = "-----BEGIN EC PRIVATE KEY-----\nAAAA";
    let error = PrivateKey::load(Path::new(text), None, false).expect_err("refused");
    assert!(!error.to_string().contains("AAAA"), "{error}");
}

#[test]
fn k2_other_keys_and_certificates_are_named() {
    let cases: [(&[u8], &str); 8] = [
        (fixture!("public.pem"), "a public key"),
        (fixture!("public_pkcs1.pem"), "a public key"),
        (fixture!("certificate.pem"), "a certificate"),
        (fixture!("ec_sec1.pem"), "an EC key"),
        (fixture!("ec_pkcs8.pem"), "an EC key"),
        (fixture!("ed25519.pem"), "an Ed25519 key"),
        (fixture!("rsa_pss.pem"), "restricted to PSS"),
        (br#"{"kty":"EC","crv":"P-256","x":"a","y":"b","d":"c"}"#, "an EC key"),
    ];
    for (bytes, found) in cases {
        let der = bytes.starts_with(b"-----BEGIN").then(|| der(bytes));
        // The SEC 1 form of an EC key begins with its parameters.
        for form in std::iter::once(bytes.to_vec()).chain(der) {
            let text = refusal(&form, None);
            assert!(text.contains("RS256 needs an RSA private key"), "{text}");
            let belongs = found == "a public key" || found == "a certificate";
            assert_eq!(text.contains("Pass the private key that belongs to it."), belongs);
            assert!(text.contains(found) && text.contains("openssl genpkey") != belongs, "{text}");
        }
    }
    for (label, found) in [
        ("NEW CERTIFICATE REQUEST", "a certificate request"),
        ("EC PARAMETERS", "the parameters of an EC key"),
        ("PKCS7", "a PKCS#7 bundle"),
        ("X509 CRL", "a PEM block of another type"),
        ("DSA PRIVATE KEY", "a DSA key"),
    ] {
        let text = format!("-----BEGIN {label}-----\n-----END {label}-----\n");
        assert!(refusal(text.as_bytes(), None).contains(&format!("this is {found}.")), "{label}");
    }
    let public = KEY.public_jwk().to_json();
    assert!(refusal(public.as_bytes(), None).contains("a JWK without d"));
}

#[test]
fn k3_an_encrypted_key_is_decrypted_only_with_its_passphrase() {
    for pem in [&fixture!("encrypted_pbkdf2.pem")[..], fixture!("encrypted_scrypt.pem")] {
        for bytes in [pem.to_vec(), der(pem)] {
            assert!(refusal(&bytes, None).contains("there is no passphrase"));
            for wrong in [&b""[..], b"open sesame", b"correct-horse-battery\n"] {
                let text = refusal(&bytes, Some(wrong));
                assert!(text.contains("could not be decrypted"), "{text}");
                assert!(!text.contains("sesame"), "{text}");
            }
            let key = PrivateKey::parse(&bytes, Some(PASSPHRASE)).expect("opened");
            assert_eq!(key.thumbprint(), THUMBPRINT);
        }
    }
}

#[test]
fn k3_old_encryption_is_refused_with_the_command_that_converts_it() {
    let legacy = refusal(fixture!("encrypted_legacy.pem"), Some(PASSPHRASE));
    assert!(legacy.contains("Proc-Type: 4,ENCRYPTED"), "{legacy}");
    let others: [&[u8]; 3] = [
        fixture!("encrypted_pbes1.pem"),
        fixture!("encrypted_des3.pem"),
        fixture!("encrypted_sha1.pem"),
    ];
    for text in others.map(|bytes| refusal(bytes, Some(PASSPHRASE))).iter().chain([&legacy]) {
        assert!(text.contains("openssl pkcs8 -topk8") && !text.contains("horse"), "{text}");
    }
    assert!(refusal(fixture!("openssh.pem"), None).contains("ssh-keygen -p -m PKCS8"));
}

#[test]
fn k4_a_key_of_1024_bits_is_refused() {
    let text = refusal(fixture!("rsa1024.pem"), None);
    assert!(text.contains("1024 bits") && text.contains("2048"), "{text}");
}

#[test]
fn k5_every_format_of_one_key_loads_with_the_same_kid() {
    let (pkcs8, pkcs1) = (&fixture!("pkcs8.pem")[..], &fixture!("pkcs1.pem")[..]);
    let text = std::str::from_utf8(pkcs8).expect("text");
    let bare = text.split_once(".\n").expect("a first line").1;
    let utf16 = |bytes: fn(u16) -> [u8; 2]| {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
    };
    let base64 = STANDARD.encode(der(pkcs8));
    let forms: Vec<Vec<u8>> = vec![
        pkcs8.to_vec(),
        pkcs1.to_vec(),
        der(pkcs8),
        der(pkcs1),
        [&der(pkcs8)[..], b"\r\n"].concat(),
        fixture!("rsa.jwk.json").to_vec(),
        text.replace('\n', "\r\n").into_bytes(),
        format!("\u{feff}{text}").into_bytes(),
        format!("\n  {}  \n\n", bare.replace('\n', "\n   ")).into_bytes(),
        bare.replace('\n', " ").into_bytes(),
        bare.replace('\n', "").into_bytes(),
        format!("\"{}\"", bare.replace('\n', "\\n")).into_bytes(),
        [&b"friendlyName: Schl\xfcssel\n"[..], pkcs8].concat(),
        [fixture!("certificate.pem"), pkcs8].concat(),
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
        base64.clone().into_bytes(),
        STANDARD.encode(bare).into_bytes(),
    ];
    for (index, form) in forms.iter().enumerate() {
        let key = PrivateKey::parse(form, None).unwrap_or_else(|error| panic!("{index}: {error}"));
        assert_eq!((key.thumbprint(), key.bits()), (THUMBPRINT, 2048), "{index}");
    }
}

#[test]
fn k5_an_invalid_key_is_refused_with_the_reason() {
    let pem = std::str::from_utf8(fixture!("pkcs8.pem")).expect("text");
    let two = [&fixture!("pkcs8.pem")[..], fixture!("pkcs1.pem")].concat();
    let half = &pem[..pem.len() / 2];
    let damaged = pem.replacen("MII", "M*I", 1);
    let cases: [(&[u8], &str); 12] = [
        (b"\x30\x05\x02\x01\x03\x30\x00", "a PKCS#12 bundle"),
        (b"\x30\x06\x02\x01\x01\x04\x01\x00", "an EC key"),
        (b"PuTTY-User-Key-File-3: ssh-rsa", "PuTTY's own format"),
        (b"", "empty"),
        (b" \n", "empty"),
        (b"key.pem\n", "not a private key in a known format"),
        (b"\x30\x03\x02\x01", "not a private key in a known format"),
        (&two, "more than one"),
        (half.as_bytes(), "before its END line"),
        (damaged.as_bytes(), "not base64"),
        (br#"{"keys":[]}"#, "set of keys"),
        (br#"{"kty":"RSA","n":"AQAB","e":"AQAB","d":"AQAB"}"#, "no member p"),
    ];
    for (bytes, expected) in cases {
        let text = refusal(bytes, None);
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn k5_a_key_whose_numbers_do_not_belong_together_is_refused() {
    let jwk = std::str::from_utf8(fixture!("rsa.jwk.json")).expect("text");
    let members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(jwk).expect("JSON");
    for name in ["d", "p", "q", "dp", "dq", "qi"] {
        let mut changed = members.clone();
        let text = changed[name].as_str().expect("text");
        let mut bytes = URL_SAFE_NO_PAD.decode(text).expect("base64url");
        bytes[40] ^= 4;
        changed.insert(name.to_owned(), URL_SAFE_NO_PAD.encode(bytes).into());
        let text = refusal(serde_json::Value::from(changed).to_string().as_bytes(), None);
        assert!(text.contains("do not belong together"), "{name}: {text}");
    }
    let mut der = der(fixture!("pkcs1.pem"));
    der[700] ^= 1;
    assert!(refusal(&der, None).contains("do not belong together"));
}

#[test]
fn k7_the_example_of_rfc_7638_has_the_published_thumbprint_in_every_encoding() {
    let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
    let mut zero = vec![0, 0];
    zero.extend(URL_SAFE_NO_PAD.decode(n).expect("base64url"));
    let padded = base64::engine::general_purpose::URL_SAFE.encode(&zero);
    let forms = [
        format!(r#"{{"kty":"RSA","n":"{n}","e":"AQAB","alg":"RS256","kid":"2011-04-29"}}"#),
        format!(r#"{{"e":"AQAB","n":"{n}==","kty":"RSA"}}"#),
        format!("\u{feff} {{\"kty\":\"RSA\",\"n\":\"{padded}\",\"e\":\"AAEAAQ==\"}}\r\n"),
        format!(r#"{{"kty":"RSA","n":"{}","e":"AQAB"}}"#, URL_SAFE_NO_PAD.encode(&zero)),
    ];
    for form in forms {
        let jwk = PublicJwk::parse(&form).expect("a JWK");
        assert_eq!(jwk.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
        assert_eq!(jwk.encoded(), [n, "AQAB"]);
        assert_eq!(PublicJwk::parse(&jwk.to_json()).expect("a JWK"), jwk);
    }
}

#[test]
fn k7_a_public_jwk_has_the_members_for_enrollment_and_no_private_one() {
    let key = PrivateKey::parse(fixture!("pkcs8.pem"), None).expect("a key");
    let json = key.public_jwk().to_json();
    let start = format!(r#"{{"kty":"RSA","n":"{}","e":"AQAB","#, key.public_jwk().encoded()[0]);
    let end = format!(r#""kid":"{THUMBPRINT}","alg":"RS256","use":"sig"}}"#);
    assert_eq!(json, start + &end);

    let private = std::str::from_utf8(fixture!("rsa.jwk.json")).expect("text");
    assert_error(PublicJwk::parse(private), Kind::CredentialError, "contains the private key");
    let bad = [
        "[]",
        "{",
        "{\"kty\":5}",
        "{}",
        r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#,
        r#"{"kty":"RSA","n":"A+/B","e":"AQAB"}"#,
    ];
    for json in bad.map(str::to_owned).into_iter().chain([json.replace("AQAB", "AQAA")]) {
        let error = PublicJwk::parse(&json).expect_err("refused");
        assert_eq!(error.kind(), Kind::CredentialError, "{json}");
    }
}

#[cfg(unix)]
#[test]
fn k8_a_file_that_others_can_read_gives_a_warning_and_an_error_if_strict() {
    let directory = TestFolder::new();
    let path = directory.join("key.pem");
    fs::write(&path, fixture!("pkcs8.pem")).expect("written");
    for (mode, open) in
        [(0o600, false), (0o400, false), (0o640, true), (0o644, true), (0o602, true)]
    {
        set_mode(&path, mode);
        let loaded = PrivateKey::load(&path, None, false).expect("loaded");
        assert_eq!(loaded.value.thumbprint(), THUMBPRINT);
        assert_eq!(loaded.warnings.len(), usize::from(open), "{mode:o}");
        assert!(loaded.warnings.iter().all(|warning| warning.contains("chmod 600")));
        assert_eq!(PrivateKey::load(&path, None, true).is_err(), open, "{mode:o}");
    }
}

#[cfg(unix)]
#[test]
fn a_saved_key_is_private_also_in_place_of_another() {
    let directory = TestFolder::new();
    let path = directory.join("key.pem");
    KEY.save(&path, None, false).expect("saved");
    let loaded = PrivateKey::load(&path, None, true).expect("loaded");
    assert_eq!(loaded.value.thumbprint(), KEY.thumbprint());
    set_mode(&path, 0o644);
    KEY.save(&path, Some(b"s3cret-pass"), true).expect("saved over it");
    assert!(PrivateKey::load(&path, None, true).is_err());
    assert!(PrivateKey::load(&path, Some(b"s3cret-pass"), true).is_ok());
    let files = fs::read_dir(&*directory).expect("a directory").count();
    assert_eq!(files, 1, "no temporary file is left");

    assert_error(
        KEY.save(&directory.join("no/such/key.pem"), None, false),
        Kind::CredentialError,
        "directory does not exist",
    );
    // Root, who runs the tests in many places, may write everywhere.
    let error = unwritable(&path, &io::ErrorKind::PermissionDenied.into());
    assert!(error.to_string().contains("may not be written by this user"), "{error}");
    assert!(KEY.to_pkcs8_pem(Some(b"")).is_err());
}

mod leaks {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// K1.
        #[test]
        fn no_text_of_a_damaged_key_is_ever_in_a_message(
            at in 0_usize..1_700, byte in any::<u8>(), length in 1_usize..1_783,
        ) {
            for pem in [&fixture!("pkcs8.pem")[..], fixture!("rsa.jwk.json")] {
                let mut bytes = pem[..length.min(pem.len())].to_vec();
                if let Some(damaged) = bytes.get_mut(at) {
                    *damaged = byte;
                }
                if let Err(error) = PrivateKey::parse(&bytes, None) {
                    assert_no_part_of(pem, &format!("{error} {error:?}"));
                }
            }
        }

        /// K5: a changed byte gives the same key or an error, never another key or a panic.
        #[test]
        fn a_changed_byte_never_gives_another_key(at in 0_usize..1_220, flip in 1_u8..=255) {
            for pem in [&fixture!("pkcs1.pem")[..], fixture!("pkcs8.pem")] {
                let mut bytes = der(pem);
                let length = bytes.len();
                bytes[at % length] ^= flip;
                if let Ok(key) = PrivateKey::parse(&bytes, None) {
                    prop_assert_eq!(key.thumbprint(), THUMBPRINT);
                }
            }
        }
    }
}
