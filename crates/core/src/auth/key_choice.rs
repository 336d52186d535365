//! The arguments that name the key of a credential: a private key, or a signer and its public key.

use crate::{Error, Kind, Result};

const TWO_WAYS: &str = "Pass private_key= (a path, PEM text, bytes, a JWK or a PrivateKey), or for a \
                        key that stays in a vault signer= with public_jwk=. Is an environment \
                        variable unset?";

/// Where the key of a credential is.
pub enum KeyChoice<K, S, P> {
    /// In memory: the source of a private key.
    Private(K),
    /// Elsewhere: a signer, and the public key that was enrolled.
    Signer(S, P),
}

impl<K, S, P> KeyChoice<K, S, P> {
    /// The source, if the arguments name exactly one.
    ///
    /// # Errors
    /// `CredentialError` for no source, for two, and for arguments that do not belong to it.
    pub fn of_arguments(
        (private_key, signer, public_jwk): (Option<K>, Option<S>, Option<P>),
        has_passphrase: bool,
        has_password_command: bool,
    ) -> Result<Self> {
        let (message, hint) = match (private_key, signer, public_jwk) {
            (Some(_), Some(_), _) => {
                ("A credential has private_key or signer, not both.", TWO_WAYS)
            }
            (None, None, _) => {
                ("A credential needs private_key or signer; both are missing or None.", TWO_WAYS)
            }
            (Some(_), None, Some(_)) => (
                "public_jwk belongs to signer; a private key contains its public key.",
                "Omit public_jwk; read it from credential.public_jwk.",
            ),
            (Some(_), None, None) if has_passphrase && has_password_command => (
                "passphrase and password_command are both given.",
                "Omit one: it is ambiguous which to use.",
            ),
            (Some(private_key), None, None) => return Ok(Self::Private(private_key)),
            (None, Some(_), _) if has_passphrase || has_password_command => (
                "passphrase and password_command belong to private_key.",
                "A signer needs neither: omit them.",
            ),
            (None, Some(_), None) => (
                "A signer needs public_jwk, the public key that was enrolled.",
                "Its thumbprint is the kid, and each signature is verified with it.",
            ),
            (None, Some(signer), Some(public_jwk)) => return Ok(Self::Signer(signer, public_jwk)),
        };
        Err(Error::new(Kind::CredentialError, message).with_hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The source that was chosen, or the first words of the error. `arguments` are the letters of those
    /// that are given: `k`ey, `s`igner, `j`wk, `p`assphrase, `c`ommand.
    fn chosen(arguments: &str) -> String {
        let given = |letter| arguments.contains(letter).then_some(letter);
        let source = (given('k'), given('s'), given('j'));
        let choice = KeyChoice::of_arguments(source, given('p').is_some(), given('c').is_some());
        match choice {
            Ok(KeyChoice::Private(key)) => key.to_string(),
            Ok(KeyChoice::Signer(signer, jwk)) => format!("{signer}{jwk}"),
            Err(error) => {
                assert_eq!(error.kind(), Kind::CredentialError);
                error.context().message.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn exactly_one_source_is_named_with_the_arguments_that_belong_to_it() {
        for (arguments, expected) in [
            ("k", "k"),
            ("kp", "k"),
            ("kc", "k"),
            ("kpc", "passphrase and password_command"),
            ("kj", "public_jwk belongs to"),
            ("ks", "A credential has"),
            ("", "A credential needs"),
            ("j", "A credential needs"),
            ("sj", "sj"),
            ("s", "A signer needs"),
            ("sjp", "passphrase and password_command"),
            ("sjc", "passphrase and password_command"),
            ("sjpc", "passphrase and password_command"),
        ] {
            assert_eq!(chosen(arguments), expected, "{arguments:?}");
        }
    }
}
