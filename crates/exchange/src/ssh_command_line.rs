//! Reads a command line of `ssh` as ssh(1) does, to add to it and to make further connections.
//!
//! In: the arguments. Out: the destination, what the connection is for, the same command line with
//! another remote command, and the options that reach the same destination again.
//!
//! Invariant: an option that this list does not know makes the command line unreadable. It is then
//! left as it is. So an argument is never taken for a command, nor a command for an argument.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Options without an argument.
const FLAGS: &[u8] = b"1246AaCfGgKkMNnqsTtVvXxYy";

/// Options with an argument, in the same word or in the next. `-P` differs between versions.
const WITH_ARGUMENT: &[u8] = b"BbcDEeFIiJLlmOopQRSWw";

/// The options that decide how the destination is reached.
const REACHING: &[u8] = b"46CKkBbcFIiJlmopS";

/// Settings of a connection that runs one command, without a terminal and without a question. The
/// first value of a setting counts, so they stand before the user's.
const QUIET: &[&str] = &[
    "BatchMode=yes",
    "ClearAllForwardings=yes",
    "ControlMaster=no",
    "ForwardAgent=no",
    "ForwardX11=no",
    "LogLevel=ERROR",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "Tunnel=no",
];

/// Settings that end a connection to a machine that does not respond. The user's values count.
const PATIENCE: &[&str] = &["ConnectTimeout=15", "ServerAliveInterval=15"];

/// The purpose of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// Runs a command: the words after the destination, with blanks between them.
    Command(Vec<u8>),
    /// Starts a subsystem of this name.
    Subsystem(Vec<u8>),
    /// Starts the user's login shell, or a command that the configuration names.
    Login,
    /// Starts nothing on the other machine: it forwards, or only prints something here.
    Nothing,
}

/// A command line of ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshCommandLine {
    words: Vec<OsString>,
    /// `[USER@]HOST`, or a URI. Empty for a command line that connects to nothing.
    pub destination: OsString,
    /// The purpose of the connection.
    pub purpose: Purpose,
    reaching: Vec<OsString>,
    /// The words before this one stay if the command is replaced.
    command_at: usize,
    /// The word and the byte of the flag `-s`.
    subsystem_at: Option<(usize, usize)>,
}

/// The options that were read so far.
#[derive(Default)]
struct Found {
    flags: Vec<u8>,
    reaching: Vec<OsString>,
    subsystem_at: Option<(usize, usize)>,
}

impl SshCommandLine {
    /// Reads the arguments, without the name of the program. `None` if ssh would refuse them, or if
    /// one of the options is not known here.
    pub fn parse(words: &[OsString]) -> Option<SshCommandLine> {
        let mut found = Found::default();
        let mut at = 0;
        let ended = options(words, &mut at, &mut found)?;
        let destination = words.get(at).cloned().unwrap_or_default();
        at = (at + 1).min(words.len());
        if !ended {
            options(words, &mut at, &mut found)?;
        }
        let command: Vec<&[u8]> = words[at..].iter().map(|word| word.as_bytes()).collect();
        let command = command.join(&b' ');
        let has = |flag: u8| found.flags.contains(&flag);
        let purpose = match () {
            () if b"GNOQVW".iter().any(|&flag| has(flag)) => Purpose::Nothing,
            () if destination.is_empty() => return None,
            () if command.is_empty() => Purpose::Login,
            () if has(b's') => Purpose::Subsystem(command),
            () => Purpose::Command(command),
        };
        Some(SshCommandLine {
            words: words.to_vec(),
            destination,
            purpose,
            reaching: found.reaching,
            command_at: at,
            subsystem_at: found.subsystem_at,
        })
    }

    /// The same command line with another command. A subsystem becomes a command.
    pub fn with_command(&self, command: OsString) -> Vec<OsString> {
        let mut words = self.words[..self.command_at].to_vec();
        if let Some((word, byte)) = self.subsystem_at {
            let mut left = words[word].as_bytes().to_vec();
            left.remove(byte);
            match left.as_slice() {
                b"-" => drop(words.remove(word)),
                _ => words[word] = OsString::from_vec(left),
            }
        }
        words.push(command);
        words
    }

    /// The options of a further connection to the same destination. It asks nothing, forwards
    /// nothing, and has no terminal. It may use an existing master, and never becomes one.
    pub fn reaching(&self) -> Vec<OsString> {
        let settings = |list: &[&str]| -> Vec<OsString> {
            let words = list.iter().flat_map(|setting| ["-o", setting]);
            words.map(OsString::from).collect()
        };
        let mut words = settings(QUIET);
        words.extend(self.reaching.iter().cloned());
        words.extend(settings(PATIENCE));
        words.push("-T".into());
        words
    }
}

/// Reads words of options from `at` on. Returns whether `--` ended them. `None` for an unknown one.
fn options(words: &[OsString], at: &mut usize, found: &mut Found) -> Option<bool> {
    while let Some(word) = words.get(*at) {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            *at += 1;
            return Some(true);
        }
        if bytes.len() < 2 || bytes[0] != b'-' {
            break;
        }
        let mut byte = 1;
        while byte < bytes.len() {
            let flag = bytes[byte];
            if FLAGS.contains(&flag) {
                if flag == b's' {
                    found.subsystem_at = Some((*at, byte));
                }
                if REACHING.contains(&flag) {
                    let word = [b'-', flag].to_vec();
                    found.reaching.push(OsString::from_vec(word));
                }
            } else if WITH_ARGUMENT.contains(&flag) {
                let argument = match &bytes[byte + 1..] {
                    [] => {
                        *at += 1;
                        words.get(*at)?.as_bytes()
                    }
                    rest => rest,
                };
                if REACHING.contains(&flag) {
                    let word = [&[b'-', flag], argument].concat();
                    found.reaching.push(OsString::from_vec(word));
                }
                byte = bytes.len();
            } else {
                return None;
            }
            found.flags.push(flag);
            byte += 1;
        }
        *at += 1;
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn purpose(line: &str) -> Option<Purpose> {
        SshCommandLine::parse(&words(line)).map(|read| read.purpose)
    }

    #[test]
    fn a_command_line_is_read_as_ssh_reads_it() {
        let command = |text: &str| Some(Purpose::Command(text.into()));
        for (line, wanted) in [
            ("box ls -l", command("ls -l")),
            ("-p 22 -tt me@box sort in", command("sort in")),
            ("-p22 box -v -i key sort", command("sort")),
            ("-vCo Port=3 -- box -t ls", command("-t ls")),
            ("box -- -x", command("-x")),
            ("-l me box -", command("-")),
            ("box", Some(Purpose::Login)),
            ("-t box", Some(Purpose::Login)),
            ("-N box", Some(Purpose::Nothing)),
            ("-fN -L 1:b:2 box", Some(Purpose::Nothing)),
            ("-W other:22 box", Some(Purpose::Nothing)),
            ("-G box true", Some(Purpose::Nothing)),
            ("-O exit box", Some(Purpose::Nothing)),
            ("-V", Some(Purpose::Nothing)),
            ("-s box sftp", Some(Purpose::Subsystem("sftp".into()))),
            (
                "-oForwardX11=no -xs -- box sftp",
                Some(Purpose::Subsystem("sftp".into())),
            ),
            ("-Z box ls", None),
            ("-P x box ls", None),
            ("-p", None),
            ("-v", None),
        ] {
            assert_eq!(purpose(line), wanted, "{line}");
        }
    }

    #[test]
    fn only_the_command_is_replaced() {
        let replaced = |line: &str| {
            let read = SshCommandLine::parse(&words(line)).unwrap();
            read.with_command("X Y".into())
                .join(std::ffi::OsStr::new("|"))
        };
        assert_eq!(replaced("-tt -p 1 box ls -l"), "-tt|-p|1|box|X Y");
        assert_eq!(replaced("box -v -- ls -l"), "box|-v|--|X Y");
        assert_eq!(replaced("-xs -- box sftp"), "-x|--|box|X Y");
        assert_eq!(replaced("-x -s box sftp"), "-x|box|X Y");
        assert_eq!(replaced("-vso Port=1 box sftp"), "-vo|Port=1|box|X Y");
    }

    #[test]
    fn a_further_connection_reaches_the_same_host_and_forwards_nothing() {
        let line = "-fNTttL 1:b:2 -D 9 -W x:1 -E log -i key -J via -p22 -oUser=me -S ctl -4 box";
        let read = SshCommandLine::parse(&words(line)).unwrap();
        let found = read.reaching();
        let users = words("-ikey -Jvia -p22 -oUser=me -Sctl -4");
        assert_eq!(found[2 * QUIET.len()..][..users.len()], users);
        assert!(found.contains(&"BatchMode=yes".into()));
    }
}
