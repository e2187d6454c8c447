//! The server: binds a port of the loopback interface, and answers.

use std::io;
use std::net::Ipv4Addr;

use tokio::net::TcpListener;

use crate::setup::{Setup, Start};
use crate::site::Site;
use crate::{refresher, web_app};

/// Why the server could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another program listens on the port.
    #[error(
        "port {0} is taken by another program; give another with --port, or --port 0 for any that is free"
    )]
    PortTaken(u16),
    /// This user may not listen on the port.
    #[error("port {0} is not allowed for this user; give one above 1023 with --port")]
    PortNotAllowed(u16),
    /// Anything else.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The port.
        port: u16,
        /// The system's message.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start the server: {0}")]
    Start(#[source] io::Error),
}

/// Binds the port, calls `ready` with the address of the page, and answers until the process ends.
///
/// # Errors
///
/// If the port cannot be bound, or a thread cannot be started.
pub fn serve(setup: Setup, ready: impl FnOnce(&str)) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(ServeError::Start)?;
    runtime.block_on(async {
        let port = setup.port;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let listener = listener.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ServeError::PortTaken(port),
            io::ErrorKind::PermissionDenied => ServeError::PortNotAllowed(port),
            _ => ServeError::Listen {
                port,
                source: error,
            },
        })?;
        let port = listener.local_addr().map_err(ServeError::Start)?.port();
        let address = address(&setup, port);
        let site = Site::new(setup, port).map_err(ServeError::Start)?;
        tokio::spawn(refresher::keep_fresh(site.clone()));
        tokio::spawn(read_runs(site.clone()));
        ready(&address);
        let served = axum::serve(listener, web_app::router(&site)).await;
        served.map_err(ServeError::Start)
    })
}

/// Reads the list of runs while the browser starts, so that the first view need not wait for it.
async fn read_runs(site: Site) {
    let reader = site.clone();
    // A store that cannot be read has a message for each request.
    drop(
        site.readers
            .ask(move |reading| reader.runs.read(reading))
            .await,
    );
}

/// The address of the page, with the token.
fn address(setup: &Setup, port: u16) -> String {
    let token = setup.token.as_str();
    let view = match &setup.start {
        Start::Home => "/?".to_owned(),
        Start::Run(run) => format!("/run/{run}?"),
        Start::File(path) => format!("/file?path={}&", encoded(path)),
    };
    format!("http://127.0.0.1:{port}{view}token={token}")
}

/// Bytes in a URL.
fn encoded(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            true => text.push(byte as char),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
