//! Starts the server: binds a port of the loopback interface, and answers.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstory_store::Home;
use tokio::net::TcpListener;

use crate::gate::AccessToken;
use crate::site::Site;

/// What the program that starts the server can do, and this crate cannot.
#[derive(Clone)]
pub struct Hooks {
    /// Adds finished runs, facts and annotations to the store. Called on a thread of its own.
    pub refresh: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Says whether a process records into a log.
    pub is_recording: fn(&Path) -> bool,
    /// The program whose command `rerun` brings a file up to date.
    pub program: PathBuf,
}

/// The subject that the page opens with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Start {
    /// The list of runs.
    #[default]
    Home,
    /// A run, by its id.
    Run(String),
    /// A file, by its absolute path.
    File(Vec<u8>),
}

/// How a server is set up.
#[derive(Clone)]
pub struct Setup {
    /// The store.
    pub home: Home,
    /// The port, or 0 for any that is free.
    pub port: u16,
    /// The secret that clients must know.
    pub token: AccessToken,
    /// The page may run `backstory rerun`.
    pub allow_rerun: bool,
    /// The subject that the page opens with.
    pub start: Start,
    /// The directory of the project, in which `status` stays. `None`: everywhere.
    pub project: Option<PathBuf>,
    /// What the caller can do.
    pub hooks: Hooks,
}

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
        ready(&address);
        let served = axum::serve(listener, site.router()).await;
        served.map_err(ServeError::Start)
    })
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

impl fmt::Debug for Setup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Setup")
            .field("home", &self.home)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
