//! [`Connection`]: a client's connection to its agent. Each call opens its own connection, so
//! nothing is open between calls, forks are safe, and code that cannot await can call.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig, ClientConnection, StreamOwned};
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::address::Place;
use super::message::{AgentFailure, AgentRequest, greeting};
use super::trust::ClientTls;
use crate::error::{Error, Kind, Result, Secret};
use crate::http::{handshake_problem, may_be_refusal};
use crate::lock::Mutex;
use crate::system;

/// Maximum length of a response, in bytes.
const LONGEST_ANSWER: u64 = 1 << 20;
/// Timeout for connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// Timeout for a place in the queue of a Unix socket.
#[cfg(unix)]
const QUEUE: Duration = Duration::from_secs(1);

pub(super) struct Connection {
    pub(super) place: Place,
    tls: ClientTls,
    /// Created by the first call, so that no file is read before it.
    config: Mutex<Option<Arc<ClientConfig>>>,
}

trait AgentStream: Read + Write {}
impl<T: Read + Write> AgentStream for T {}

impl Connection {
    pub(super) fn new(place: Place, tls: ClientTls) -> Self {
        Self { place, tls, config: Mutex::default() }
    }

    /// Sends a request and returns the answer. `patience` is the timeout for the answer.
    pub(super) fn call<A: DeserializeOwned>(
        &self,
        request: &AgentRequest,
        patience: Duration,
    ) -> Result<A> {
        let mut stream = self.open(patience)?;
        let sent = self.send(&mut *stream, request);
        // An agent that refuses this user responds and closes before it reads anything.
        let answer = match sent {
            Err(error) if is_closed(&error) => read(&mut *stream).map_err(|_| error),
            Err(error) => Err(error),
            Ok(()) => read(&mut *stream),
        };
        let answer = answer.map_err(|error| self.failed(&error))?;
        let answer = serde_json::from_slice::<Result<A, AgentFailure>>(&answer);
        answer.map_err(|_| self.not_understood())?.map_err(|failure| {
            let secret = self.tls.secret.as_ref().map(|secret| Secret::token(secret));
            Error::from(failure).without(secret.as_slice())
        })
    }

    fn send(&self, stream: &mut dyn AgentStream, request: &AgentRequest) -> io::Result<()> {
        let secret = self.tls.secret.as_ref().map_or("", |secret| secret);
        stream.write_all(&greeting(secret))?;
        stream.write_all(&[serde_json::to_vec(request)?, vec![b'\n']].concat())?;
        stream.flush()
    }

    #[cfg(unix)]
    fn open_local(
        &self,
        path: &std::path::Path,
        patience: Duration,
    ) -> Result<Box<dyn AgentStream + Send>> {
        use socket2::{Domain, SockAddr, Socket, Type};
        let opened = || {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            // Without a timeout, connecting to a stopped agent with a full queue would never end.
            // If other clients fill the queue, a place becomes free within this time.
            socket.set_write_timeout(Some(QUEUE))?;
            let address = SockAddr::unix(path)?;
            while let Err(error) = socket.connect(&address) {
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            socket.set_read_timeout(Some(patience))?;
            socket.set_write_timeout(Some(CONNECT))?;
            Ok(std::os::unix::net::UnixStream::from(std::os::fd::OwnedFd::from(socket)))
        };
        let stream: io::Result<_> = opened();
        Ok(Box::new(stream.map_err(|error| self.failed(&error))?))
    }

    #[cfg(windows)]
    fn open_local(
        &self,
        _path: &std::path::Path,
        _patience: Duration,
    ) -> Result<Box<dyn AgentStream + Send>> {
        let message = format!("The agent at {} cannot be reached from Windows.", self.place);
        Err(Error::new(Kind::ConfigError, message).with_hint("Use an agent at https://HOST:PORT."))
    }

    fn open(&self, patience: Duration) -> Result<Box<dyn AgentStream + Send>> {
        let (host, port) = match &self.place {
            Place::Unix(path) => return self.open_local(path, patience),
            Place::Tls { host, port } => (host, *port),
        };
        let config = self.config()?;
        let name = ServerName::try_from(host.clone()).map_err(|_| self.not_understood())?;
        let connected = || {
            let mut last = io::Error::from(io::ErrorKind::NotFound);
            for address in (host.as_str(), port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, CONNECT) {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = error,
                }
            }
            Err(last)
        };
        let tcp = connected().map_err(|error| self.failed(&error))?;
        let limited = tcp
            .set_nodelay(true)
            .and_then(|()| tcp.set_read_timeout(Some(patience)))
            .and_then(|()| tcp.set_write_timeout(Some(CONNECT)));
        limited.map_err(|error| self.failed(&error))?;
        let session = ClientConnection::new(config, name).map_err(|_| self.not_understood())?;
        // The handshake is a part of the first write.
        Ok(Box::new(StreamOwned::new(session, tcp)))
    }

    fn config(&self) -> Result<Arc<ClientConfig>> {
        let mut config = self.config.lock();
        if let Some(config) = &*config {
            return Ok(Arc::clone(config));
        }
        Ok(Arc::clone(config.insert(self.tls.config()?)))
    }

    /// The agent cannot be reached, or closed the connection before it responded. Pages that it
    /// counted stay counted.
    fn failed(&self, error: &io::Error) -> Error {
        let place = &self.place;
        let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(refused) = refused {
            let message =
                format!("The TLS handshake with the agent at {place} failed: {}.", why(refused));
            return Error::new(Kind::TlsError, message)
                .with_hint(
                    "Set SITELINE_AGENT_CA to the CA file of the agent's certificate. If the \
                     agent requires a client certificate, set SITELINE_AGENT_CERTIFICATE_FILE and \
                     SITELINE_AGENT_KEY_FILE.",
                )
                .with(|context| context.unsent = true);
        }
        let why = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not answer".to_owned(),
            io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                "nothing listens there".to_owned()
            }
            io::ErrorKind::PermissionDenied => "this user has no permission".to_owned(),
            _ => system::reason(error),
        };
        let message =
            format!("The agent at {place} cannot be reached: {why}. No request was sent.");
        Error::new(Kind::AgentUnavailable, message)
            .with_hint(system::advice(error).unwrap_or(
                "The agent holds the key and counts the requests. Start it again at the same \
                 address (`siteline agent`), or unset SITELINE_AGENT.",
            ))
            .with(|context| context.unsent = true)
    }

    fn not_understood(&self) -> Error {
        let message = format!("The server at {} is not an agent of siteline.", self.place);
        Error::new(Kind::ConfigError, message)
            .with_hint("Set SITELINE_AGENT (or agent=) to the address printed by `siteline agent` of this version.")
    }
}

/// Describes why a handshake failed. Most alerts are about the certificate of this client.
fn why(error: &rustls::Error) -> String {
    match error {
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "it requires a client certificate".to_owned()
        }
        // An agent that requires no certificate sends it too.
        rustls::Error::AlertReceived(alert)
            if may_be_refusal(*alert) && *alert != AlertDescription::HandshakeFailure =>
        {
            "it refused the client certificate".to_owned()
        }
        other => handshake_problem(other).0,
    }
}

/// Reads to the end of the connection.
fn read(stream: &mut dyn AgentStream) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut answer = Zeroizing::new(Vec::with_capacity(8_192));
    match stream.take(LONGEST_ANSWER).read_to_end(&mut answer) {
        // The peer closed TCP without closing TLS, or before it read the request. A response that
        // is not complete is not JSON.
        Err(error)
            if (error.kind() == io::ErrorKind::UnexpectedEof || is_closed(&error))
                && !answer.is_empty() => {}
        Err(error) => return Err(error),
        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(_) => {}
    }
    Ok(answer)
}

/// Whether the peer closed the connection before it read the whole request.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_alert_about_certificates_refuses_the_certificate() {
        for (alert, is_refusal) in [
            (AlertDescription::CertificateExpired, true),
            (AlertDescription::HandshakeFailure, false),
            (AlertDescription::ProtocolVersion, false),
        ] {
            let text = why(&rustls::Error::AlertReceived(alert));
            assert_eq!(text.contains("refused the client certificate"), is_refusal, "{text}");
        }
    }
}
