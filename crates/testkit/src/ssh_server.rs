//! A real `sshd` on the loopback interface, with keys of its own, for tests of commands that reach
//! other machines. It serves the user of the suite: root, or the user that started it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::need::{find, skipped};
use crate::stage::Stage;
use crate::user::{User, suite_is_root};

/// A running server. It ends when this value is dropped.
pub struct SshServer {
    child: Child,
    port: u16,
    key: PathBuf,
}

impl SshServer {
    /// Starts a server whose files are in the stage. The stage's user has the key. `None`, with a
    /// notice, where none is installed.
    pub fn start(what: &str, stage: &Stage) -> io::Result<Option<SshServer>> {
        let program = Path::new("/usr/sbin/sshd");
        if !program.exists() || find("ssh").is_none() || find("ssh-keygen").is_none() {
            skipped(
                what,
                "needs sshd and ssh (packages openssh-server, openssh-client)",
            );
            return Ok(None);
        }
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
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let settings = dir.join("settings");
        fs::write(
            &settings,
            format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\n\
                 PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n\
                 PermitRootLogin yes\nMaxStartups 100\n",
                host.display(),
                keys.display()
            ),
        )?;
        let child = Command::new(program)
            .args(["-D", "-f"])
            .arg(&settings)
            .arg("-E")
            .arg(dir.join("log"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let server = SshServer { child, port, key };
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if begun.elapsed() > Duration::from_secs(30) {
                return Err(io::Error::other("sshd does not listen"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(server))
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

    /// `USER@HOST`
    pub fn host(&self) -> String {
        let user = Command::new("id").arg("-un").output();
        let user = user.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        format!("{}@127.0.0.1", user.unwrap_or_default())
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
