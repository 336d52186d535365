//! Where an agent listens: a socket of this machine, one that the system's manager opened, or TLS.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;

use super::address::Place;
use super::message::LOCAL_HOST;
use super::trust::{authority, chain, mismatch, private_key};
use crate::error::{Error, Kind, Result};
use crate::http::provider;
use crate::system;

#[cfg(unix)]
const LONGEST_PATH: usize = 107;

/// Where an agent is to listen.
#[derive(Debug, Clone)]
pub enum Listen {
    /// A socket at this path, made in a folder of its owner alone.
    Unix(PathBuf),
    /// The socket that systemd opened and handed over.
    Inherited,
    /// TLS.
    Tls(TlsListen),
}

/// Where an agent is to listen for other machines.
#[derive(Debug, Clone)]
pub struct TlsListen {
    /// The address or name to bind, with its port; 0 for any.
    pub host: String,
    pub port: u16,
    /// Its certificate with its chain, and their key, in PEM form.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authority of its clients' certificates; `None` where a secret is asked for.
    pub client_authority: Option<PathBuf>,
    /// Other names by which clients may call it.
    pub names: Vec<String>,
}

/// An open socket.
pub(super) enum Socket {
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixListener),
    Tls(TcpListener, Arc<ServerConfig>),
}

/// A socket, how clients call it, and what is removed at its end.
pub(super) struct Bound {
    pub(super) socket: Socket,
    pub(super) place: Place,
    /// The `Host` headers of its clients.
    pub(super) hosts: Vec<String>,
    pub(super) own: Option<OwnSocket>,
}

/// A socket file, removed when this is dropped, with the folder that was made for it; and the lock that
/// tells others that it is in use.
pub(super) struct OwnSocket {
    path: PathBuf,
    /// The file that is locked. It stays in a folder that was there before: others may wait for it.
    lock: PathBuf,
    folder: Option<PathBuf>,
    locked: File,
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.path);
        // A forked child has the same open file, which would keep the lock.
        let _unlocked = self.locked.unlock();
        if let Some(folder) = &self.folder {
            let _gone = std::fs::remove_file(&self.lock);
            let _gone = std::fs::remove_dir(folder);
        }
    }
}

impl Listen {
    /// # Errors
    /// `ConfigError` where the place cannot be listened at, `CredentialError` for its certificates.
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
        let refused = |why: std::io::Error| {
            let what = format!("Nothing can listen at {}", place(port));
            Error::system(Kind::ConfigError, what, &why)
        };
        let config = Arc::new(self.config()?);
        let listener = TcpListener::bind((host, port)).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let port = listener.local_addr().map_err(refused)?.port();
        let names = std::iter::once(&self.host).chain(&self.names);
        let hosts = names.map(|name| {
            if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") }
        });
        Ok(Bound {
            hosts: hosts.collect(),
            socket: Socket::Tls(listener, config),
            place: Place::Tls { host: self.names.first().unwrap_or(&self.host).clone(), port },
            own: None,
        })
    }

    fn config(&self) -> Result<ServerConfig> {
        let unusable = |_| Error::new(Kind::ConfigError, "TLS cannot be set up.");
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let builder = match &self.client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(authority(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
                let verifier = verifier.build().map_err(|_| {
                    let message = format!("{:?} names no authority.", path.display());
                    Error::new(Kind::CredentialError, message)
                })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let (certificate, key) = (chain(&self.certificate)?, private_key(&self.key)?);
        let mut config = builder
            .with_single_cert(certificate, key)
            .map_err(|_| mismatch(&self.certificate, &self.key))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Makes the socket for its owner alone. One that a killed agent has left is replaced; the lock beside it
/// tells whether there is an agent.
#[cfg(unix)]
fn bind_path(path: &Path, others_may: bool) -> Result<Bound> {
    use std::fs::{Permissions, set_permissions, symlink_metadata};
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
    use std::os::unix::net::UnixListener;

    use crate::files::{beside, folder_of};

    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let refused = |why: String| {
        let message = format!("Nothing can listen at {}: {why}.", Place::Unix(path.clone()));
        Error::new(Kind::ConfigError, message)
    };
    let system = |error: std::io::Error| refused(system::reason(&error)).passing_as(&error);
    if path.as_os_str().len() > LONGEST_PATH {
        return Err(refused(format!("the path is longer than {LONGEST_PATH} bytes")));
    }
    let folder = folder_of(&path);
    // Only the innermost is removed at the end.
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
            refused("another agent does".to_owned()).with_hint("Use that one, or end it first.")
        );
    }
    match symlink_metadata(&path) {
        Ok(known) if known.file_type().is_socket() => {
            std::fs::remove_file(&path).map_err(system)?;
        }
        Ok(_) => return Err(refused("something that is no socket is there".to_owned())),
        Err(_) => {}
    }
    let listener = UnixListener::bind(&path).map_err(system)?;
    let folder = is_new.then(|| folder.to_owned());
    let own = OwnSocket { path: path.clone(), lock, folder, locked };
    let mode = if others_may { 0o666 } else { 0o600 };
    set_permissions(&path, Permissions::from_mode(mode)).map_err(system)?;
    listener.set_nonblocking(true).map_err(system)?;
    Ok(Bound {
        socket: Socket::Unix(listener),
        place: Place::Unix(path),
        hosts: vec![LOCAL_HOST.to_owned()],
        own: Some(own),
    })
}

#[cfg(windows)]
fn bind_path(path: &Path, _others_may: bool) -> Result<Bound> {
    let place = Place::Unix(path.to_owned());
    Err(Error::new(Kind::ConfigError, format!("Windows has no sockets such as {place}."))
        .with_hint("Listen at https://HOST:PORT."))
}

/// Nobody else may put a socket in the place of ours, and without `--allow-uid` nobody else may reach it.
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
        let message = format!("Other users do not get to {}.", closed.display());
        return Err(Error::new(Kind::ConfigError, message)
            .with_hint("With --allow-uid, listen in a folder that all may enter (mode 0711)."));
    }
    if is_own {
        return Ok(());
    }
    let message = format!(
        "The socket of an agent stands in a folder of its own user with mode {mode}; {} is another: {}.",
        folder.display(),
        crate::files::owner_text(folder)
    );
    Err(Error::new(Kind::ConfigError, message)
        .with_hint("Name a folder that does not exist yet: it is made with that mode."))
}

/// The one socket that systemd opened. It decides who may reach it.
#[cfg(unix)]
fn inherited() -> Result<Bound> {
    let none = || {
        Error::new(Kind::ConfigError, "No socket was handed over (LISTEN_FDS).").with_hint(
            "--listen systemd is for a service with a socket unit, of ListenStream=PATH.",
        )
    };
    let listener = listenfd::ListenFd::from_env().take_unix_listener(0).ok().flatten();
    let listener = listener.ok_or_else(none)?;
    let address = listener.local_addr().map_err(|_| none())?;
    let path = address.as_pathname().ok_or_else(none)?.to_owned();
    listener.set_nonblocking(true).map_err(|_| none())?;
    Ok(Bound {
        socket: Socket::Unix(listener),
        place: Place::Unix(path),
        hosts: vec![LOCAL_HOST.to_owned()],
        own: None,
    })
}

#[cfg(windows)]
fn inherited() -> Result<Bound> {
    Err(Error::new(Kind::ConfigError, "Windows hands no sockets over."))
}
