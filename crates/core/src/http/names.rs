//! Looks up host names on our own threads. If the system refuses to start a thread, the HTTP
//! library's resolver panics or waits forever.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use crate::system::{exhausted_files, on_thread};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

#[derive(Debug)]
pub(super) struct Names;

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        Box::pin(async move {
            // The HTTP library replaces this port with the port of the URL.
            let found = addresses((name, 0)).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Looks up a host. Returns the system's error if it refuses a thread or an open file.
pub(super) async fn addresses(
    host: impl ToSocketAddrs + Send + 'static,
) -> io::Result<Vec<SocketAddr>> {
    let look_up = move || host.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    // A resolver without open files reports a misleading error, so the real cause replaces it.
    on_thread(look_up).await?.map_err(|error| exhausted_files().unwrap_or(error))
}
