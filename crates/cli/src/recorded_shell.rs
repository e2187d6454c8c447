//! Shells whose command lines become runs: their hooks, and how they are started with them.
//!
//! In: a shell and its arguments. Out: the command that starts it with the hooks, after the user's
//! own start-up files.
//!
//! Invariant: nothing of the user's files is changed. The files that are made here lie in a private
//! directory in memory, which is removed when the shell has ended.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::shell_policy::PAUSED;

const BASH: &str = include_str!("recorded_shell/bash.sh");
const ZSH: &str = include_str!("recorded_shell/zsh.zsh");
const FISH: &str = include_str!("recorded_shell/fish.fish");

/// The variable with the id of the session, for the shell and its programs.
pub const SESSION: &str = "BACKSTORY_SESSION";

/// Its value in a shell that could not be recorded.
pub const NOT_RECORDED: &str = "off";

/// Shells with hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum ShellKind {
    Bash,
    Zsh,
    Fish,
}

impl ShellKind {
    /// The shell that a program is, by its name. A login shell's name begins with a minus.
    pub fn of(program: &OsStr) -> Option<ShellKind> {
        let name = Path::new(program).file_name()?.as_bytes();
        match name.strip_prefix(b"-").unwrap_or(name) {
            b"bash" => Some(ShellKind::Bash),
            b"zsh" => Some(ShellKind::Zsh),
            b"fish" => Some(ShellKind::Fish),
            _ => None,
        }
    }

    /// The script that a start-up file evaluates: it replaces the shell by a recorded one, unless
    /// the shell is recorded already or is not interactive. `program` is this program. `store` is
    /// the absolute path of a store that is not the usual one.
    pub fn script(self, program: &OsStr, store: Option<&Path>) -> String {
        let program = quoted(&program.to_string_lossy());
        let shell = match store {
            Some(store) => format!("--store {} shell", quoted(&store.to_string_lossy())),
            None => "shell".to_owned(),
        };
        match self {
            ShellKind::Bash => format!(
                "if [[ $- == *i* && -z ${{{SESSION}-}} && -x {program} ]]; then\n    \
                 if [[ $(jobs -p) ]]; then\n        echo '{HAS_JOBS}' >&2\n    \
                 else\n        history -a\n        exec {program} {shell} -- \"$BASH\"\n    fi\n\
                 fi\n"
            ),
            ShellKind::Zsh => format!(
                "if [[ -o interactive && -z ${{{SESSION}-}} && -x {program} ]]; then\n    \
                 if [[ -n $(jobs) ]]; then\n        echo '{HAS_JOBS}' >&2\n    \
                 else\n        exec {program} {shell} -- zsh\n    fi\nfi\n"
            ),
            ShellKind::Fish => format!(
                "if status is-interactive; and not set -q {SESSION}; and test -x {program}\n    \
                 if jobs -q\n        echo '{HAS_JOBS}' >&2\n    \
                 else\n        exec {program} {shell} -- (status fish-path) <&1\n    end\nend\n"
            ),
        }
    }
}

/// Printed in the place of a recorded shell. The jobs would lose their shell.
const HAS_JOBS: &str = "backstory: this shell has jobs, so it is not replaced by a recorded one";

/// A word for every shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The start of a recorded shell.
#[derive(Debug)]
pub struct ShellStart {
    /// The shell and its arguments.
    pub command: Vec<OsString>,
    /// Variables for the shell.
    pub variables: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
}

impl Drop for ShellStart {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory {
            let _ = fs::remove_dir_all(directory);
        }
    }
}

impl ShellStart {
    /// The file that stops recording while it exists. `None` for a shell without hooks.
    pub fn paused_file(&self) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join("paused"))
    }

    /// The reason why the lines of an interactive shell are no runs of their own. `None` if they
    /// are, or if the shell gets a script or a command.
    pub fn why_no_lines(&self) -> Option<String> {
        let (program, words) = self.command.split_first()?;
        if self.directory.is_some() || !words.iter().all(|word| leaves_interactive(word)) {
            return None;
        }
        let other = words.iter().find(|word| !is_plain_option(word));
        Some(match (ShellKind::of(program), other) {
            (Some(_), Some(other)) => format!(
                "with {}, {} does not read the hooks of backstory",
                other.display(),
                program.display()
            ),
            _ => format!(
                "backstory has hooks for bash, zsh and fish, not for {}",
                program.display()
            ),
        })
    }

    /// Prepares the start of a shell with hooks. A shell without hooks, or one that is given a
    /// script or a command, starts as it is: it then has no lines.
    pub fn prepare(session: &str, command: &[OsString]) -> io::Result<ShellStart> {
        let mut start = ShellStart {
            command: command.to_vec(),
            variables: vec![(SESSION.into(), session.into())],
            directory: None,
        };
        let kind = command.first().and_then(|program| ShellKind::of(program));
        let plain = command.iter().skip(1).all(|word| is_plain_option(word));
        if let Some(kind) = kind.filter(|_| plain) {
            let directory = private_directory(session)?;
            start.directory = Some(directory.clone());
            let paused = start.paused_file().unwrap_or_default();
            start.variables.push((PAUSED.into(), paused.into()));
            match kind {
                ShellKind::Bash => start.add_bash(&directory)?,
                ShellKind::Zsh => start.add_zsh(&directory)?,
                ShellKind::Fish => start.add_fish(&directory)?,
            }
        }
        Ok(start)
    }

    fn add_bash(&mut self, directory: &Path) -> io::Result<()> {
        let is_login = |word: &OsString| word == "-l" || word == "--login";
        let login = self.command.iter().any(is_login);
        let text = quoted(&directory.join("text").to_string_lossy());
        // A login shell reads no file of ours. The file reads what the login shell would have.
        let users = match login {
            true => BASH_LOGIN,
            false => BASH_USERS,
        };
        let file = directory.join("bashrc");
        let content = format!("{BASH}\n{users}__backstory_file={text}\n__backstory_start\n");
        write_private(&file, &content)?;
        self.command.retain(|word| !is_login(word));
        self.command
            .splice(1..1, ["--rcfile".into(), file.into_os_string()]);
        Ok(())
    }

    fn add_zsh(&mut self, directory: &Path) -> io::Result<()> {
        let ours = quoted(&directory.to_string_lossy());
        let users = match std::env::var_os("ZDOTDIR") {
            Some(users) => format!("ZDOTDIR={}", quoted(&users.to_string_lossy())),
            None => "unset ZDOTDIR".to_owned(),
        };
        // The user's file sees the user's directory, and may change it.
        let read = |name: &str, before: &str, after: &str| {
            format!(
                "{before}\n[[ -r ${{ZDOTDIR:-$HOME}}/{name} ]] && . ${{ZDOTDIR:-$HOME}}/{name}\n{after}\n"
            )
        };
        let restore = "if (( ${+__backstory_users} )); then ZDOTDIR=$__backstory_users; \
                       else unset ZDOTDIR; fi";
        let again = format!(
            "if (( ${{+ZDOTDIR}} )); then typeset -g __backstory_users=$ZDOTDIR; \
             else unset __backstory_users; fi\nZDOTDIR={ours}"
        );
        let hooks = format!("unset __backstory_users\n{ZSH}\n__backstory_start");
        write_private(&directory.join(".zshenv"), &read(".zshenv", &users, &again))?;
        write_private(
            &directory.join(".zprofile"),
            &read(".zprofile", restore, &again),
        )?;
        write_private(&directory.join(".zshrc"), &read(".zshrc", restore, &hooks))?;
        let value = directory.as_os_str().to_owned();
        self.variables.push(("ZDOTDIR".into(), value));
        Ok(())
    }

    fn add_fish(&mut self, directory: &Path) -> io::Result<()> {
        let file = directory.join("hooks.fish");
        write_private(&file, FISH)?;
        let source = format!("source {}", quoted(&file.to_string_lossy()));
        self.command
            .splice(1..1, ["--init-command".into(), source.into()]);
        Ok(())
    }
}

/// Reads the file of an interactive shell. Bash itself reads the system's file.
const BASH_USERS: &str = "if [[ -r ~/.bashrc ]]; then . ~/.bashrc; fi\n";

/// Reads the files of a login shell.
const BASH_LOGIN: &str = "if [[ -r /etc/profile ]]; then . /etc/profile; fi\n\
    if [[ -r ~/.bash_profile ]]; then . ~/.bash_profile\n\
    elif [[ -r ~/.bash_login ]]; then . ~/.bash_login\n\
    elif [[ -r ~/.profile ]]; then . ~/.profile; fi\n";

/// True for options that leave the shell interactive, with its usual start-up files.
fn is_plain_option(word: &OsStr) -> bool {
    ["-i", "-l", "--login", "--interactive"]
        .iter()
        .any(|option| word == *option)
}

/// True for an option other than `-c`, with which a shell reads its lines from a user.
fn leaves_interactive(word: &OsStr) -> bool {
    let word = word.as_encoded_bytes();
    word.starts_with(b"--") || word.starts_with(b"-") && !word.contains(&b'c')
}

/// A new directory that only this user can read, in memory if possible.
fn private_directory(session: &str) -> io::Result<PathBuf> {
    let name = format!("backstory-{session}.shell");
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for parent in [PathBuf::from("/dev/shm"), std::env::temp_dir()] {
        let directory = parent.join(&name);
        match fs::DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn write_private(path: &Path, content: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path)?.write_all(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_known_by_its_name() {
        assert_eq!(
            ShellKind::of(OsStr::new("/usr/bin/zsh")),
            Some(ShellKind::Zsh)
        );
        assert_eq!(ShellKind::of(OsStr::new("-bash")), Some(ShellKind::Bash));
        assert_eq!(ShellKind::of(OsStr::new("/bin/sh")), None);
    }

    #[test]
    fn a_script_or_a_command_gets_no_hooks() {
        for words in [&["bash", "-c", "true"][..], &["bash", "script.sh"], &["sh"]] {
            let command: Vec<OsString> = words.iter().map(OsString::from).collect();
            let start = ShellStart::prepare("test", &command).unwrap();
            assert_eq!(start.command, command);
        }
    }

    #[test]
    fn an_interactive_shell_without_hooks_gives_the_reason() {
        let why = |words: &[&str]| {
            let command: Vec<OsString> = words.iter().map(OsString::from).collect();
            ShellStart::prepare("reason", &command)
                .unwrap()
                .why_no_lines()
        };
        assert!(
            why(&["bash", "--norc", "-i"])
                .unwrap()
                .contains("with --norc, bash")
        );
        assert!(why(&["dash"]).unwrap().contains("not for dash"));
        for words in [
            &["bash", "-c", "true"][..],
            &["dash", "x.sh"],
            &["bash", "-i"],
        ] {
            assert_eq!(why(words), None, "{words:?}");
        }
    }

    #[test]
    fn the_files_are_gone_with_the_start() {
        let session = format!("test-{}", std::process::id());
        let start = ShellStart::prepare(&session, &["bash".into()]).unwrap();
        let file = PathBuf::from(&start.command[2]);
        assert!(fs::read_to_string(&file).unwrap().contains("~/.bashrc"));
        drop(start);
        assert!(!file.exists());
    }

    #[test]
    fn a_quoted_word_is_one_word() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
