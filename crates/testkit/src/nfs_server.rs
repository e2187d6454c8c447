//! A real NFS server of version 4 on the loopback interface, and clients of it.
//!
//! The server is nfs-ganesha, a program of its own: the kernel's server would serve the whole
//! machine. The clients use libnfs, which needs no mount.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::need::{find, needs, skipped};
use crate::ports::free_port;
use crate::procs::eventually;

/// Longest wait for the server to start or to end.
const PATIENCE: Duration = Duration::from_secs(120);
/// The program of the clients.
const CLIENT: &str = include_str!("nfs_client.py");
/// The settings of the server. Tests of lakes use them, too.
const SETTINGS: &str = include_str!("nfs_server.conf");
/// The library of the clients.
const LIBRARY: &str = "libnfs.so.13";
/// Where `scripts/setup` unpacks the packages that are not installed.
const UNPACKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/nfs/usr");

/// A running server that exports one directory. Dropped, it ends.
pub struct NfsServer {
    process: Child,
    port: u16,
    directory: PathBuf,
}

impl NfsServer {
    /// Starts a server of `exported` with its own files below `directory`. Needs root. `None`, with
    /// a notice, where a program is not installed.
    pub fn start(what: &str, exported: &Path, directory: &Path) -> io::Result<Option<NfsServer>> {
        if !needs(what, &["python3"]) {
            return Ok(None);
        }
        let Some(program) = program().filter(|_| clients_start()) else {
            let needed = "needs ganesha.nfsd and libnfs (packages nfs-ganesha-vfs, libnfs13)";
            skipped(what, needed);
            return Ok(None);
        };
        fs::create_dir_all(directory.join("recovery"))?;
        let port = free_port()?;
        let settings = directory.join("settings");
        fs::write(&settings, settings_of(exported, directory, port))?;
        let mut command = Command::new(program);
        command.arg("-F").arg("-f").arg(&settings);
        command.arg("-L").arg(directory.join("log"));
        command.arg("-p").arg(directory.join("pid"));
        let process = command
            .current_dir("/")
            .env("LD_LIBRARY_PATH", unpacked_libraries())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut server = NfsServer {
            process,
            port,
            directory: directory.to_owned(),
        };
        let mut lives = true;
        eventually(PATIENCE, || {
            lives = matches!(server.process.try_wait(), Ok(None));
            !lives || server.log().contains("NFS SERVER INITIALIZED")
        });
        match lives && TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            true => Ok(Some(server)),
            false => Err(io::Error::other(server.log())),
        }
    }

    /// The messages of the server.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// A client with this user and group, which waits for operations on its standard input:
    /// `write PATH TEXT`, `append PATH TEXT`, `read PATH`, `mkdir PATH`, `rename OLD NEW`,
    /// `link OLD NEW`, `unlink PATH`. It prints what it reads, and ends with the first failure.
    pub fn client(&self, user: u32) -> Command {
        let server = "nfs://127.0.0.1/exported?version=4";
        let url = format!("{server}&nfsport={}&uid={user}&gid={user}", self.port);
        let mut client = python(CLIENT);
        client.args([LIBRARY, &url]);
        client
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        client
    }

    /// Lets a client with this user do operations, one in each line. Returns what it read.
    pub fn done(&self, user: u32, operations: &str) -> io::Result<String> {
        let mut running = self.client(user).spawn()?;
        if let Some(mut input) = running.stdin.take() {
            input.write_all(operations.as_bytes())?;
        }
        let output = running.wait_with_output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(io::Error::other(text(&output.stderr))),
        }
    }

    /// Ends the server, which then has no file open.
    pub fn end(mut self) -> io::Result<()> {
        self.stop()
    }

    fn stop(&mut self) -> io::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.process);
        // It may have ended.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        eventually(PATIENCE, || !matches!(self.process.try_wait(), Ok(None)));
        let _ = self.process.kill();
        self.process.wait().map(drop)
    }
}

/// The installed server, or the one that `scripts/setup` unpacked.
fn program() -> Option<PathBuf> {
    let unpacked = format!("{UNPACKED}/bin/ganesha.nfsd");
    find("ganesha.nfsd").or_else(|| find(&unpacked))
}

/// The directories with unpacked libraries, which the loader searches first.
fn unpacked_libraries() -> OsString {
    let libraries = PathBuf::from(UNPACKED).join("lib");
    let of_machine = of_this_machine(&libraries);
    let all = [libraries.join("ganesha"), of_machine.unwrap_or_default()];
    std::env::join_paths(all).unwrap_or_default()
}

/// The directory of Debian's libraries for this kind of machine.
fn of_this_machine(libraries: &Path) -> Option<PathBuf> {
    let mut found = fs::read_dir(libraries).ok()?.flatten();
    found.find_map(|entry| {
        let name = entry.file_name();
        let ours = name.to_string_lossy().ends_with("-linux-gnu");
        ours.then(|| entry.path())
    })
}

fn python(program: &str) -> Command {
    let mut python = Command::new("python3");
    python.args(["-c", program]);
    python.env("LD_LIBRARY_PATH", unpacked_libraries());
    python
}

fn clients_start() -> bool {
    let mut python = python(&format!("import ctypes; ctypes.CDLL('{LIBRARY}')"));
    let ended = python.stderr(Stdio::null()).status();
    ended.is_ok_and(|status| status.success())
}

fn settings_of(exported: &Path, directory: &Path, port: u16) -> String {
    let (exported, directory) = (exported.display(), directory.display());
    let unpacked = of_this_machine(&Path::new(UNPACKED).join("lib"));
    let plugins = unpacked.map(|libraries| libraries.join("ganesha"));
    let plugins = plugins.filter(|plugins| plugins.exists());
    let plugins = plugins.map(|plugins| format!("Plugins_Dir = \"{}\";", plugins.display()));
    let plugins = plugins.unwrap_or_default();
    [
        ("@exported@", exported.to_string()),
        ("@directory@", directory.to_string()),
        ("@port@", port.to_string()),
        ("@plugins@", plugins),
    ]
    .iter()
    .fold(SETTINGS.to_owned(), |text, (name, value)| {
        text.replace(name, value)
    })
}

impl Drop for NfsServer {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
