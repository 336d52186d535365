//! The sockets of an agent: a Unix socket, a socket inherited from systemd, or TLS.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::address::Place;
use super::trust::{chain, mismatch, private_key};
use crate::error::{Error, Kind, Result};
use crate::http::provider;
#[cfg(unix)]
use crate::system;

#[cfg(unix)]
const LONGEST_PATH: usize = 107;

/// The socket that an agent opens.
#[derive(Debug, Clone)]
pub enum Listen {
    /// A Unix socket at this path, in a folder that only its owner may enter.
    Unix(PathBuf),
    /// The socket that systemd opened and passed on.
    Inherited,
    Tls(TlsListen),
}

/// A TLS socket for clients on other machines.
#[derive(Debug, Clone)]
pub struct TlsListen {
    /// The address or name to bind, with its port; port 0 picks any.
    pub host: String,
    pub port: u16,
    /// The certificate chain and its private key, as PEM.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The CA of the client certificates; `None` if clients send a secret instead.
    pub client_authority: Option<PathBuf>,
    /// The name of the host in the agent's address, if it is not `host`.
    pub name: Option<String>,
}

/// An open socket of the agent's runtime.
pub(super) enum Socket {
    #[cfg(unix)]
    Unix(tokio::net::UnixListener),
    Tls(tokio::net::TcpListener, TlsAcceptor),
}

/// A connection before its handshake.
pub(super) enum Accepted {
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
    Tls(tokio::net::TcpStream, TlsAcceptor),
}

impl Socket {
    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        Ok(match self {
            #[cfg(unix)]
            Self::Unix(listener) => Accepted::Unix(listener.accept().await?.0),
            Self::Tls(listener, acceptor) => {
                let stream = listener.accept().await?.0;
                // A failure only delays responses.
                let _ = stream.set_nodelay(true);
                Accepted::Tls(stream, acceptor.clone())
            }
        })
    }
}

/// A bound socket, its address, and the files to remove at the end.
pub(super) struct Bound {
    pub(super) socket: Socket,
    pub(super) place: Place,
    pub(super) own: Option<OwnSocket>,
}

/// A socket file and the lock that marks it as in use. Dropping this removes both, and the folder
/// if the agent created it.
pub(super) struct OwnSocket {
    path: PathBuf,
    /// The locked file. It stays in a folder that already existed: another agent may wait for it.
    lock: PathBuf,
    folder: Option<PathBuf>,
    locked: File,
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.path);
        // A forked child has the same open file, which would hold the lock.
        let _unlocked = self.locked.unlock();
        if let Some(folder) = &self.folder {
            let _gone = std::fs::remove_file(&self.lock);
            let _gone = std::fs::remove_dir(folder);
        }
    }
}

impl Listen {
    /// Opens the socket in the current runtime.
    pub(super) fn bind(&self, others_may: bool) -> Result<Bound> {
        match self {
            Self::Unix(path) => bind_path(path, others_may),
            Self::Inherited => inherited(),
            Self::Tls(listen) => listen.bind(),
        }
    }
}

impl TlsListen {
    fn bind(&self) -> Result<Bound> {
        let (host, port) = (self.host.as_str(), self.port);
        let place = |port| Place::Tls { host: host.to_owned(), port };
        let refused = |why: io::Error| {
            let what = format!("Nothing can listen at {}", place(port));
            Error::system(Kind::ConfigError, what, &why)
        };
        let acceptor = TlsAcceptor::from(Arc::new(self.config()?));
        let listener = std::net::TcpListener::bind((host, port)).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(refused)?;
        let port = listener.local_addr().map_err(refused)?.port();
        let host = self.name.as_ref().unwrap_or(&self.host).clone();
        let place = Place::Tls { host, port };
        Ok(Bound { socket: Socket::Tls(listener, acceptor), place, own: None })
    }

    fn config(&self) -> Result<ServerConfig> {
        let unusable = |_| Error::new(Kind::ConfigError, "TLS cannot be set up.");
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let builder = match &self.client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(chain(path)?);
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(roots.into(), provider());
                let verifier = verifier.build().map_err(|_| {
                    let message = format!("{:?} contains no CA certificate.", path.display());
                    Error::new(Kind::CredentialError, message)
                })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let (certificate, key) = (chain(&self.certificate)?, private_key(&self.key)?);
        let config = builder.with_single_cert(certificate, key);
        config.map_err(|_| mismatch(&self.certificate, &self.key))
    }
}

/// Creates the socket for its owner only. A socket that a killed agent left behind is replaced: the
/// lock file next to it shows whether an agent is running.
#[cfg(unix)]
fn bind_path(path: &Path, others_may: bool) -> Result<Bound> {
    use std::fs::{Permissions, set_permissions, symlink_metadata};
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};

    use tokio::net::UnixListener;

    use crate::files::{beside, folder_of};

    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let refused = |why: String| {
        let message = format!("Nothing can listen at {}: {why}.", Place::Unix(path.clone()));
        Error::new(Kind::ConfigError, message)
    };
    let system = |error: io::Error| refused(system::reason(&error)).passing_as(&error);
    if path.as_os_str().len() > LONGEST_PATH {
        return Err(refused(format!("the path is longer than {LONGEST_PATH} bytes")));
    }
    let folder = folder_of(&path);
    // Only the innermost folder is removed at the end.
    let is_new = !folder.exists();
    let missing: Vec<_> = folder.ancestors().take_while(|one| !one.exists()).collect();
    crate::files::create_folder(folder).map_err(system)?;
    if others_may {
        for folder in missing {
            set_permissions(folder, Permissions::from_mode(0o711)).map_err(system)?;
        }
    }
    check_folder(folder, others_may)?;
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let lock = beside(&path, ".lock");
    let locked = options.open(&lock).map_err(system)?;
    if locked.try_lock().is_err() {
        return Err(
            refused("another agent does".to_owned()).with_hint("Use that agent, or stop it first.")
        );
    }
    match symlink_metadata(&path) {
        Ok(known) if known.file_type().is_socket() => {
            std::fs::remove_file(&path).map_err(system)?;
        }
        Ok(_) => return Err(refused("the path exists and is not a socket".to_owned())),
        Err(_) => {}
    }
    let listener = UnixListener::bind(&path).map_err(system)?;
    let folder = is_new.then(|| folder.to_owned());
    let own = OwnSocket { path: path.clone(), lock, folder, locked };
    let mode = if others_may { 0o666 } else { 0o600 };
    set_permissions(&path, Permissions::from_mode(mode)).map_err(system)?;
    Ok(Bound { socket: Socket::Unix(listener), place: Place::Unix(path), own: Some(own) })
}

#[cfg(windows)]
fn bind_path(path: &Path, _others_may: bool) -> Result<Bound> {
    let place = Place::Unix(path.to_owned());
    Err(Error::new(Kind::ConfigError, format!("Windows has no sockets such as {place}."))
        .with_hint("Listen at https://HOST:PORT."))
}

/// Ensures that nobody else can replace the socket, and that without `--allow-uid` nobody can reach
/// it.
#[cfg(unix)]
fn check_folder(folder: &Path, others_may: bool) -> Result<()> {
    use nix::unistd::Uid;

    use crate::files::Owner;

    let owner = Owner::read(folder)
        .map_err(|error| Error::system(Kind::ConfigError, folder.display(), &error))?;
    let (forbidden, mode) = if others_may { (0o022, "0711") } else { (0o077, "0700") };
    let is_own = owner.user == Uid::effective().as_raw() && owner.mode & forbidden == 0;
    let is_found = |folder: &Path| Owner::read(folder).is_ok_and(|owner| owner.mode & 0o001 != 0);
    if others_may
        && is_own
        && let Some(closed) = folder.ancestors().find(|folder| !is_found(folder))
    {
        let message = format!("Other users cannot enter {}.", closed.display());
        return Err(Error::new(Kind::ConfigError, message)
            .with_hint("With --allow-uid, use a folder that all users may enter (mode 0711)."));
    }
    if is_own {
        return Ok(());
    }
    let message = format!(
        "The folder of an agent's socket must belong to its user with mode {mode}. {}: {}.",
        folder.display(),
        crate::files::owner_text(folder)
    );
    Err(Error::new(Kind::ConfigError, message)
        .with_hint("Name a folder that does not exist yet: siteline creates it with that mode."))
}

/// The single socket that systemd opened. systemd decides who may reach it.
#[cfg(unix)]
fn inherited() -> Result<Bound> {
    let none = || {
        Error::new(Kind::ConfigError, "systemd passed no socket (LISTEN_FDS).").with_hint(
            "--listen systemd needs a service with a socket unit that has ListenStream=PATH.",
        )
    };
    let listener = listenfd::ListenFd::from_env().take_unix_listener(0).ok().flatten();
    let listener = listener.ok_or_else(none)?;
    let address = listener.local_addr().map_err(|_| none())?;
    let path = address.as_pathname().ok_or_else(none)?.to_owned();
    listener.set_nonblocking(true).map_err(|_| none())?;
    let listener = tokio::net::UnixListener::from_std(listener).map_err(|_| none())?;
    Ok(Bound { socket: Socket::Unix(listener), place: Place::Unix(path), own: None })
}

#[cfg(windows)]
fn inherited() -> Result<Bound> {
    Err(Error::new(Kind::ConfigError, "Windows passes no sockets to services."))
}
