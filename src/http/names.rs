//! Looks up host names on a thread of ours: with the library's own resolver, a thread that the system
//! refuses is a panic, or a wait without end.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::TcpStream;

use super::base_url::BaseUrl;
use crate::system::{exhausted_files, on_thread};

/// The resolver of all connections.
#[derive(Debug)]
pub(super) struct Names;

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        Box::pin(async move {
            // The port of the URL replaces this one.
            let found = addresses((name, 0)).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The addresses of a host.
///
/// # Errors
/// Those of the resolver, and those of the system if it refuses a thread or an open file.
pub(super) async fn addresses(
    host: impl ToSocketAddrs + Send + 'static,
) -> io::Result<Vec<SocketAddr>> {
    let look_up = move || host.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    // The resolver says another reason where it cannot open its files.
    on_thread(look_up).await?.map_err(|error| exhausted_files().unwrap_or(error))
}

/// A connection to the service, outside of the library.
///
/// # Errors
/// Those of [`addresses`] and of the system.
pub(super) async fn connect(base: &BaseUrl) -> io::Result<TcpStream> {
    let found = match base.loopback_addresses() {
        Some(addresses) => addresses.to_vec(),
        None => addresses(base.host_and_port()).await?,
    };
    TcpStream::connect(&found[..]).await
}
