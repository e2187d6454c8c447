//! A real `sshd` on the loopback interface, with keys of its own, for tests of commands that reach
//! other machines. It serves the user of the suite: root, or the user that started it. In a
//! [`SecondRoot`], it serves the user of that root.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::need::{find, skipped};
use crate::second_root::{self, SecondRoot};
use crate::stage::Stage;
use crate::user::{User, suite_is_root};

/// A port whose every connection gets a process of `sshd`, as `inetd` does it. All end when this
/// value is dropped.
pub struct SshServer {
    connections: Option<JoinHandle<Vec<Child>>>,
    ends: Arc<AtomicBool>,
    port: u16,
    key: PathBuf,
    user: String,
}

impl SshServer {
    /// Starts a server whose files are in the stage. The stage's user has the key. `None`, with a
    /// notice, where none is installed.
    pub fn start(what: &str, stage: &Stage) -> io::Result<Option<SshServer>> {
        SshServer::start_with(what, stage, "")
    }

    /// The same, with further lines of sshd_config(5).
    pub fn start_with(what: &str, stage: &Stage, settings: &str) -> io::Result<Option<SshServer>> {
        let more = settings;
        let Some(program) = installed(what) else {
            return Ok(None);
        };
        if suite_is_root() {
            fs::create_dir_all("/run/sshd")?;
        }
        let dir = stage.path().join("sshd");
        User::Myself.directory(&dir)?;
        let (host, key) = (dir.join("host"), dir.join("key"));
        for file in [&host, &key] {
            make_key(file)?;
        }
        let keys = dir.join("authorized");
        fs::copy(key.with_extension("pub"), &keys)?;
        stage.user().owns(&key)?;
        let settings = dir.join("settings");
        fs::write(
            &settings,
            format!(
                "HostKey {}\nAuthorizedKeysFile {}\nUsePAM no\nStrictModes no\n\
                 PasswordAuthentication no\nPermitRootLogin yes\n\
                 Subsystem sftp /usr/lib/openssh/sftp-server\n{more}\n",
                host.display(),
                keys.display()
            ),
        )?;
        let mut sshd = Command::new(program);
        sshd.args(["-i", "-f"]).arg(&settings);
        sshd.arg("-E").arg(dir.join("log"));
        let user = Command::new("id").arg("-un").output()?;
        let user = String::from_utf8_lossy(&user.stdout).trim().to_owned();
        SshServer::serving(sshd, key, user).map(Some)
    }

    /// A server in another root directory. The stage's user has the key.
    pub fn start_in(what: &str, stage: &Stage, root: &SecondRoot) -> io::Result<Option<SshServer>> {
        let Some(program) = installed(what) else {
            return Ok(None);
        };
        let dir = stage.path().join("sshd");
        User::Myself.directory(&dir)?;
        let key = dir.join("key");
        make_key(&key)?;
        let there = root.path().join("etc/ssh");
        make_key(&there.join("host"))?;
        fs::copy(key.with_extension("pub"), there.join("authorized"))?;
        stage.user().owns(&key)?;
        fs::write(
            there.join("settings"),
            "HostKey /etc/ssh/host\nAuthorizedKeysFile /etc/ssh/authorized\nUsePAM no\n\
             StrictModes no\nPasswordAuthentication no\n\
             Subsystem sftp /usr/lib/openssh/sftp-server\n",
        )?;
        let mut sshd = root.command(&program)?;
        sshd.args(["-i", "-f", "/etc/ssh/settings", "-E", "/etc/ssh/log"]);
        SshServer::serving(sshd, key, second_root::USER.to_owned()).map(Some)
    }

    /// Starts `sshd` for each connection.
    fn serving(mut sshd: Command, key: PathBuf, user: String) -> io::Result<SshServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let connections = std::thread::spawn(move || serve(&listener, &mut sshd, &ended));
        Ok(SshServer {
            connections: Some(connections),
            ends,
            port,
            key,
            user,
        })
    }

    /// The command line of an ssh client that reaches the server.
    pub fn client(&self) -> String {
        format!(
            "ssh -F none -p {} -i {} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
             -o LogLevel=ERROR -o IdentitiesOnly=yes -o BatchMode=yes",
            self.port,
            self.key.display()
        )
    }

    /// Writes a configuration of ssh(1) in which `box` is the server. Returns its path.
    pub fn write_client_config(&self, stage: &Stage) -> io::Result<PathBuf> {
        let path = stage.path().join("sshd/client");
        let host = self.host();
        let (user, address) = host.split_once('@').unwrap_or(("", &host));
        let text = format!(
            "Host box\n HostName {address}\n User {user}\n Port {}\n IdentityFile {}\n \
             IdentitiesOnly yes\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n \
             LogLevel ERROR\n",
            self.port,
            self.key.display()
        );
        fs::write(&path, text)?;
        stage.user().owns(&path)?;
        Ok(path)
    }

    /// `USER@HOST`
    pub fn host(&self) -> String {
        format!("{}@127.0.0.1", self.user)
    }
}

/// The server's program. Without it, or without the client, prints a notice.
pub fn installed(what: &str) -> Option<PathBuf> {
    let clients = find("ssh").is_some() && find("ssh-keygen").is_some();
    let found = program().filter(|_| clients);
    if found.is_none() {
        skipped(
            what,
            "needs sshd and ssh (packages openssh-server, openssh-client)",
        );
    }
    found
}

/// The installed server, or the one that `scripts/setup` unpacked.
fn program() -> Option<PathBuf> {
    let unpacked = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../.venv/sshd/usr/sbin/sshd"
    );
    ["/usr/sbin/sshd", unpacked]
        .map(PathBuf::from)
        .into_iter()
        .find(|path| path.exists())
}

impl Drop for SshServer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        let children = self.connections.take().map(JoinHandle::join);
        for mut child in children.and_then(Result::ok).unwrap_or_default() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts a process for each connection, until `ends` is set. Returns the processes.
fn serve(listener: &TcpListener, sshd: &mut Command, ends: &AtomicBool) -> Vec<Child> {
    let mut children = Vec::new();
    for connection in listener.incoming() {
        if ends.load(Ordering::Acquire) {
            break;
        }
        let Ok(connection) = connection.map(OwnedFd::from) else {
            continue;
        };
        let Ok(second) = connection.try_clone() else {
            continue;
        };
        sshd.stdin(connection).stdout(second).stderr(Stdio::null());
        children.extend(sshd.spawn());
        // The command keeps its descriptors, so that the client would not see the end.
        sshd.stdin(Stdio::null()).stdout(Stdio::null());
    }
    children
}

/// Makes a key without a passphrase, and its public half beside it.
pub fn make_key(file: &Path) -> io::Result<()> {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(file)
        .stdin(Stdio::null())
        .status()?;
    match made.success() {
        true => Ok(()),
        false => Err(io::Error::other("ssh-keygen made no key")),
    }
}
