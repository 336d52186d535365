//! [`Proof`]: a client's proof of identity in a token request.

use std::sync::Arc;

use jiff::Timestamp;
use url::form_urlencoded;
use zeroize::Zeroizing;

use super::assertion;
use super::{Credential, ScopeSet};
use crate::error::Result;
use crate::http::ClientCertificate;

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The proof of one client. Every attempt creates its own form from it.
#[derive(Clone, Copy)]
pub(crate) enum Proof<'a> {
    /// A signed assertion.
    Assertion {
        credential: &'a Credential,
        /// The address of the token endpoint.
        token_url: &'a str,
    },
    /// The certificate of the connection (RFC 8705 §2). The token is bound to it.
    Certificate {
        /// The form field that names the integration.
        client_id: &'a str,
        /// The certificate that the connection presents.
        certificate: &'a Arc<ClientCertificate>,
    },
}

impl<'a> Proof<'a> {
    /// Returns an error if the current call cannot create the form.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Self::Assertion { credential, .. } => credential.check_signer(),
            Self::Certificate { .. } => Ok(()),
        }
    }

    /// The certificate that the connection presents.
    pub(super) fn certificate(&self) -> Option<&'a Arc<ClientCertificate>> {
        match self {
            Self::Assertion { .. } => None,
            Self::Certificate { certificate, .. } => Some(certificate),
        }
    }

    /// The form of one token request (§4.1). It contains a new assertion that is issued at `now`.
    pub(super) async fn form(
        &self,
        scopes: &ScopeSet,
        now: Timestamp,
    ) -> Result<Zeroizing<String>> {
        let (grant, scopes) = (("grant_type", "client_credentials"), scopes.to_string());
        let scope = ("scope", scopes.as_str());
        Ok(match self {
            Self::Assertion { credential, token_url } => {
                let assertion = assertion::make(credential, token_url, now).await?;
                let kind = ("client_assertion_type", ASSERTION_TYPE);
                encoded(&[grant, kind, ("client_assertion", &assertion.into_form_value()), scope])
            }
            Self::Certificate { client_id, .. } => {
                encoded(&[grant, ("client_id", client_id), scope])
            }
        })
    }
}

/// Encodes a form. Its buffer never grows, because that would leave a copy of an assertion in
/// memory.
fn encoded(fields: &[(&str, &str)]) -> Zeroizing<String> {
    let longest = fields.iter().map(|(name, value)| name.len() + 3 * value.len() + 2).sum();
    let mut form = form_urlencoded::Serializer::new(String::with_capacity(longest));
    form.extend_pairs(fields);
    Zeroizing::new(form.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_buffer_fits_the_longest_encoding() {
        let form = encoded(&[("scope", "%%"), ("x", "a b")]);
        assert_eq!(*form, "scope=%25%25&x=a+b");
        assert_eq!(form.capacity(), (5 + 3 * 2 + 2) + (1 + 3 * 3 + 2));
    }
}
