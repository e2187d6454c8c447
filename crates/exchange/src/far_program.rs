//! The program on the other machine that records a command there.
//!
//! In: the options that reach the machine, and this program. Out: the path of the same program
//! there. It is brought along if it is missing: to a file named by its digest, in the user's cache
//! directory. Digest and version are verified before each use.
//!
//! Invariants:
//!
//! - Connections of this module ask the user nothing, and their commands run as the user.
//! - A file gets its name when it is complete. A cut connection leaves at most a file `*.part`,
//!   which a later transfer removes.
//! - The machine's answers decide which path is executed there, and nothing here.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

/// The first line of the machine's answer. Text before it comes from start-up files.
const GREETING: &str = "backstory far side";

/// How long the machine may take to answer, and to receive the program.
const ANSWERED_IN: Duration = Duration::from_secs(20);
const BROUGHT_IN: Duration = Duration::from_secs(600);

/// The most bytes of an answer.
const LONGEST: u64 = 64 << 10;

/// Finds the program, and the server of the subsystem `sftp`, with its options. The server inside
/// of sshd is the same program. The variables `greeting`, `digest` and `ready` are set before.
const FIND: &str = r#"
directory="${XDG_CACHE_HOME:-$HOME/.cache}/backstory/programs"
sftp=$(cat /etc/ssh/sshd_config /etc/ssh/sshd_config.d/*.conf 2>/dev/null |
    sed -n 's/^[[:space:]]*[Ss]ubsystem[[:space:]]\{1,\}sftp[[:space:]]\{1,\}//p' | head -n 1)
case $sftp in
/*) ;;
*)
    for at in lib/openssh libexec/openssh libexec lib/ssh lib/misc; do
        if test -x "/usr/$at/sftp-server"; then
            sftp="/usr/$at/sftp-server ${sftp#internal-sftp}"
            break
        fi
    done ;;
esac
printf '%s\n' "$greeting" "$(uname -s) $(uname -m)" "$SHELL" "$directory" "$sftp"
installed=$(command -v backstory 2>/dev/null)
if test -n "$installed" && test "$("$installed" remote-side --ready 2>/dev/null)" = "$ready"; then
    printf 'program %s\n' "$installed"
    exit
fi
program=$directory/$digest
if test -f "$program" && test "$(sha256sum <"$program" | cut -c1-64)" = "$digest"; then
    touch -c "$program"
    answer=$("$program" remote-side --ready 2>&1)
    case $answer in
    "$ready") printf 'program %s\n' "$program" ;;
    *) printf 'unusable %s\n' "$answer" ;;
    esac
else
    printf 'missing\n'
fi
"#;

/// This program, as it is brought to other machines.
#[derive(Debug)]
pub struct OwnProgram<'p> {
    /// Its file.
    pub file: &'p Path,
    /// The line that it prints when it is ready: name, version, version of the options.
    pub ready: &'p str,
}

/// The program on the other machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarProgram {
    /// Its absolute path there.
    pub path: String,
    /// The user's login shell there, which reads the command line.
    pub shell: String,
    /// The command that serves the subsystem `sftp`. `None` if none was found.
    pub sftp_server: Option<String>,
}

/// A way to run commands on the other machine.
#[derive(Debug)]
pub struct FarHost<'h> {
    /// The program ssh.
    pub ssh: &'h Path,
    /// The options that reach the machine.
    pub options: &'h [OsString],
    /// The machine.
    pub destination: &'h OsStr,
}

/// The machine's answer.
struct Answer {
    system: String,
    shell: String,
    directory: String,
    sftp_server: String,
    verdict: String,
}

impl FarHost<'_> {
    /// Finds the program on the machine, or brings it there.
    ///
    /// # Errors
    /// One clause for the user: why the machine cannot record.
    pub fn program(&self, own: &OwnProgram<'_>) -> Result<FarProgram, String> {
        let digest = sha256(own.file)?;
        let answer = self.find(own, &digest)?;
        let here = rustix::system::uname();
        let machine = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let here = format!("{} {}", machine(here.sysname()), machine(here.machine()));
        if answer.system != here {
            return Err(format!("it is a machine of {}, not {here}", answer.system));
        }
        let mut verdict = answer.verdict.clone();
        if verdict == "missing" {
            self.bring(own.file, &digest, &answer.directory)?;
            verdict = self.find(own, &digest)?.verdict;
        }
        match verdict.split_once(' ') {
            Some(("program", path)) if path.starts_with('/') => Ok(FarProgram {
                path: path.to_owned(),
                shell: answer.shell,
                sftp_server: Some(answer.sftp_server).filter(|path| path.starts_with('/')),
            }),
            Some(("unusable", why)) => Err(format!("backstory does not run there: {why}")),
            _ => Err("the copy of backstory there is not what was sent".to_owned()),
        }
    }

    fn find(&self, own: &OwnProgram<'_>, digest: &str) -> Result<Answer, String> {
        let script = format!(
            "greeting='{GREETING}'\ndigest={digest}\nready='{}'\n{FIND}",
            own.ready
        );
        let mut child = self.start("exec /bin/sh -s")?;
        let mut input = child.stdin.take();
        // A machine that reads nothing is reported by its answer.
        let _ = input
            .as_mut()
            .map(|input| input.write_all(script.as_bytes()));
        drop(input);
        let said = self.said(child, ANSWERED_IN)?;
        let mut lines = said.out.lines();
        if lines.next() != Some(GREETING) {
            return Err(refusal(&said));
        }
        let mut next = || lines.next().unwrap_or_default().to_owned();
        Ok(Answer {
            system: next(),
            shell: next(),
            directory: next(),
            sftp_server: next().trim().to_owned(),
            verdict: next(),
        })
    }

    /// Copies the program to the machine.
    fn bring(&self, file: &Path, digest: &str, directory: &str) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._+@=- ".contains(c);
        if !directory.starts_with('/') || !directory.chars().all(plain) {
            return Err(format!(
                "its cache directory {directory} has an unusual name"
            ));
        }
        let (to, part) = (
            format!("{directory}/{digest}"),
            format!("{directory}/{digest}.{}.part", std::process::id()),
        );
        // One line without quotes in it: every login shell reads it alike.
        let line = format!(
            "exec /bin/sh -c 'umask 077; mkdir -p \"{directory}\"; \
             find \"{directory}\" -type f -name \"*.part\" -mmin +60 -exec rm -f {{}} +; \
             find \"{directory}\" -type f -mtime +90 -exec rm -f {{}} +; \
             if cat >\"{part}\" && test \"$(sha256sum <\"{part}\" | cut -c1-64)\" = {digest} && \
             chmod 700 \"{part}\" && mv -f \"{part}\" \"{to}\"; then echo done; \
             else rm -f \"{part}\"; fi'"
        );
        let fail = |error: std::io::Error| format!("cannot read {}: {error}", file.display());
        let mut source = File::open(file).map_err(fail)?;
        let mut child = self.start(&line)?;
        let mut input = child.stdin.take();
        let sender = std::thread::spawn(move || {
            // A full disk ends the other side, which says so.
            let _ = input
                .as_mut()
                .map(|input| std::io::copy(&mut source, input));
        });
        let said = self.said(child, BROUGHT_IN);
        let _ = sender.join();
        let said = said?;
        match said.out.lines().next_back() {
            Some("done") => Ok(()),
            _ => Err(format!(
                "backstory cannot be copied there: {}",
                said.reason()
            )),
        }
    }

    fn start(&self, line: &str) -> Result<Child, String> {
        Command::new(self.ssh)
            .args(self.options)
            .arg("--")
            .args([self.destination, OsStr::new(line)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot run {}: {error}", self.ssh.display()))
    }

    /// Waits for the end of a connection. One that takes too long is ended.
    fn said(&self, mut child: Child, at_most: Duration) -> Result<Said, String> {
        let (out, err) = (read(child.stdout.take()), read(child.stderr.take()));
        let end = Instant::now() + at_most;
        loop {
            match child.try_wait() {
                Ok(Some(_)) => break,
                Ok(None) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("it did not answer in {} s", at_most.as_secs()));
                }
            }
        }
        let text = |thread: std::thread::JoinHandle<Vec<u8>>| {
            let bytes = thread.join().unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ok(Said {
            out: text(out),
            err: text(err),
        })
    }
}

/// The output of a command on the other machine.
struct Said {
    out: String,
    err: String,
}

impl Said {
    /// The last line of its messages.
    fn reason(&self) -> String {
        let lines = self.err.lines().chain(self.out.lines());
        let last = lines.map(str::trim).rfind(|line| !line.is_empty());
        let last = last.unwrap_or("it says nothing").escape_debug().to_string();
        last.chars().take(200).collect()
    }
}

/// Why a machine does not answer as a shell does.
fn refusal(said: &Said) -> String {
    if said.out.contains(GREETING) {
        return "the start-up files of its shell print text".to_owned();
    }
    format!(
        "no command of backstory's runs there without a question: {}",
        said.reason()
    )
}

fn read(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            let _ = stream.take(LONGEST).read_to_end(&mut bytes);
        }
        bytes
    })
}

/// The digest by which the other machine's `sha256sum` knows the program.
fn sha256(file: &Path) -> Result<String, String> {
    let mut hasher = Sha256::new();
    let read = File::open(file).and_then(|mut file| std::io::copy(&mut file, &mut hasher));
    read.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Ok(data_encoding::HEXLOWER.encode(&hasher.finalize()))
}

impl FarProgram {
    /// The command line that records a command there. `None` if the login shell would read the
    /// command otherwise than it was written.
    pub fn recording(&self, options: &[&str], command: &[u8]) -> Option<Vec<u8>> {
        let name = self.shell.rsplit('/').next().unwrap_or_default();
        let is_posix = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash"].contains(&name);
        let is_plain = |byte: &u8| !b"\\!\n".contains(byte);
        if !is_posix && !command.iter().all(is_plain) {
            return None;
        }
        let mut line = b"exec".to_vec();
        for word in std::iter::once(&self.path.as_str()).chain(options) {
            line.push(b' ');
            line.extend(quoted(word.as_bytes()));
        }
        line.extend(b" -- ");
        line.extend(quoted(command));
        Some(line)
    }
}

/// A word in single quotes.
fn quoted(word: &[u8]) -> Vec<u8> {
    let mut found = b"'".to_vec();
    for &byte in word {
        match byte {
            b'\'' => found.extend(b"'\\''"),
            byte => found.push(byte),
        }
    }
    found.push(b'\'');
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_shell(shell: &str) -> FarProgram {
        FarProgram {
            path: "/home/a b/p".to_owned(),
            shell: shell.to_owned(),
            sftp_server: None,
        }
    }

    #[test]
    fn the_login_shell_gives_the_command_as_it_was_written() {
        let command = b"printf '%s\\n' \"a\" > 'b c'; echo $(x) \xff!";
        let line = of_shell("/bin/bash").recording(&[], command).unwrap();
        let line = String::from_utf8_lossy(&line).replacen("exec '/home/a b/p' --", "printf %s", 1);
        let text = Command::new("/bin/sh").args(["-c", &line]).output();
        assert_eq!(
            text.unwrap().stdout,
            String::from_utf8_lossy(command).as_bytes()
        );
    }

    #[test]
    fn a_shell_with_other_quotes_gets_only_commands_that_it_reads_alike() {
        assert!(
            of_shell("/usr/bin/fish")
                .recording(&[], b"sort in")
                .is_some()
        );
        assert!(
            of_shell("/usr/bin/fish")
                .recording(&[], b"tr a \\\\n")
                .is_none()
        );
        assert!(of_shell("/bin/tcsh").recording(&[], b"echo hi!").is_none());
        assert!(of_shell("/bin/zsh").recording(&[], b"echo hi!").is_some());
    }
}
