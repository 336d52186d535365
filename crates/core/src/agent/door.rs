//! [`Door`]: decides by system user, certificate or secret whether a peer may send requests.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use hyper::header::{HOST, HeaderMap, HeaderValue};
use zeroize::Zeroizing;

use super::message::{HEADER, SECRET_HEADER, VERSION};
#[cfg(unix)]
use super::routes::refusal;
use crate::error::{Error, Kind, Result};

/// The checks that a request must pass before the agent answers it.
pub(super) struct Door {
    pub(super) hosts: Vec<String>,
    /// Users other than the agent's own.
    #[cfg(unix)]
    pub(super) allowed_users: Vec<u32>,
    pub(super) secret: Option<Zeroizing<String>>,
}

impl Door {
    /// Returns whether the system user of the peer is allowed.
    #[cfg(unix)]
    pub(super) fn lets_in(&self, stream: &tokio::net::UnixStream) -> bool {
        let own_user = nix::unistd::Uid::effective().as_raw();
        let is_allowed = |user| user == own_user || self.allowed_users.contains(&user);
        stream.peer_cred().is_ok_and(|peer| is_allowed(peer.uid()))
    }

    /// Rejects requests without siteline's header (for example from a browser), for another host
    /// name, or without the secret.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<()> {
        let header = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
        let refused = |what: &str| Err(Error::new(Kind::ConfigError, what));
        if header(HEADER) != Some(VERSION.as_bytes()) {
            return refused("the request lacks siteline's header, or has it in another version");
        }
        let host = header(HOST.as_str()).unwrap_or_default();
        if !self.hosts.iter().any(|host_name| host_name.as_bytes().eq_ignore_ascii_case(host)) {
            return refused("the agent does not accept the host name of the request (Host)");
        }
        let received = header(SECRET_HEADER).unwrap_or_default();
        match &self.secret {
            Some(secret) if verify_slices_are_equal(secret.as_bytes(), received).is_err() => {
                refused("the agent requires a secret: set SITELINE_AGENT_SECRET as it printed it")
            }
            _ => Ok(()),
        }
    }
}

/// The complete HTTP response for a user who is not allowed.
#[cfg(unix)]
pub(super) fn other_user() -> Vec<u8> {
    let why = "the agent belongs to another user and does not allow this one (--allow-uid)";
    let (status, body) = refusal(&Error::new(Kind::ConfigError, why));
    let head = format!(
        "HTTP/1.1 {status} Conflict\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}
