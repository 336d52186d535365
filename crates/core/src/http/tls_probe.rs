//! Whether a port that does not answer plain HTTP speaks TLS. A TLS server ends a connection that begins
//! with anything else, by a reset or by an alert that is no HTTP: neither says why.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::base_url::BaseUrl;
use super::names::connect;
use crate::error::{Error, Kind};

/// The longest time for the connection and the first byte.
const LIMIT: Duration = Duration::from_secs(2);
/// The types of TLS records with which a server begins: an alert, a handshake message.
const ALERT: u8 = 0x15;
const HANDSHAKE: u8 = 0x16;

/// A `ClientHello` of TLS 1.2 (RFC 5246 §7.4.1.2), without a name. Any TLS server answers it, one that
/// offers other versions with an alert.
fn client_hello() -> Vec<u8> {
    let message: [&[u8]; 7] = [
        // A record of 67 bytes: a ClientHello of 63 bytes.
        &[HANDSHAKE, 3, 1, 0, 67, 1, 0, 0, 63],
        // TLS 1.2; what should be random, but is no secret here; no session.
        &[3, 3],
        b"siteline asks: is this TLS here?",
        &[0],
        // Two ciphers: ECDHE with RSA or ECDSA, AES-128-GCM, SHA-256. No compression.
        &[0, 4, 0xC0, 0x2F, 0xC0, 0x2B, 1, 0],
        // Extensions of 18 bytes: the curve P-256,
        &[0, 18, 0, 10, 0, 4, 0, 2, 0, 23],
        // signatures by RSA or ECDSA with SHA-256.
        &[0, 13, 0, 6, 0, 4, 4, 1, 4, 3],
    ];
    message.concat()
}

/// The error of a request in plain HTTP, which says so if the port speaks TLS. That is asked over a
/// connection of its own, unless it is `known` that the port does not.
pub(super) async fn explained(error: Error, base: &BaseUrl, known: &AtomicBool) -> Error {
    let may_be_tls = !error.context().unsent
        && matches!(error.kind(), Kind::TransportError | Kind::ProtocolError);
    if !may_be_tls || known.load(Ordering::Relaxed) {
        return error;
    }
    if !speaks_tls(base).await {
        known.store(true, Ordering::Relaxed);
        return error;
    }
    let message = format!("{} speaks TLS, and plain HTTP was sent", base.host_and_port());
    Error::new(Kind::TlsError, message).with_hint("write base_url= with https://")
}

async fn speaks_tls(base: &BaseUrl) -> bool {
    let ask = async {
        let mut stream = connect(base).await?;
        stream.write_all(&client_hello()).await?;
        stream.shutdown().await?;
        stream.read_u8().await
    };
    matches!(tokio::time::timeout(LIMIT, ask).await, Ok(Ok(ALERT | HANDSHAKE)))
}
