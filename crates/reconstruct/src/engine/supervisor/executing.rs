//! Processes that execute programs: which recorded program each of these is.
//!
//! A process may execute a program without a deep record, as a static one. A later program in it,
//! or in a child of it, has one again.

use super::processes::{LiveProcess, Role};
use super::{Response, Supervisor};
use crate::engine::caller::NotifiedCall;
use crate::process::{CallObject, ResultKey};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most arguments that are compared with recorded ones.
const MOST_ARGUMENTS: usize = 1 << 16;
/// The kernel's limit for one of them, and more.
const LONGEST_ARGUMENT: usize = 1 << 18;
/// The kernel reads so much of a file to find the interpreter of a script.
const HEAD: usize = 256;
/// The kernel's limit for scripts that interpret each other.
const MOST_INTERPRETERS: usize = 5;

impl Supervisor {
    /// A process with a deep record executes another program.
    pub(super) fn execute(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let path = executed_path(call)?;
        let key = ResultKey {
            call: libc::SYS_execve as u16,
            object: CallObject::Path(path.clone()),
            detail: 0,
        };
        let failed = self.matchers[index].result(&key);
        if let Some(failed) = failed.filter(|result| result.value < 0) {
            return Ok(Response::Errno(-failed.value as i32));
        }
        if is_refused(call, &path) {
            return Ok(match self.is_killed_asleep(index) {
                true => self.await_killer(call, index, libc::ENOENT),
                false => Response::Continue,
            });
        }
        self.matchers[index].end(&self.resources, None);
        self.ends_before_record(index, "the execution of another program");
        let pid = self.matchers[index].rest.pid;
        let next = self.next_program(pid, Some(index));
        if let Some(next) = next {
            self.lower_stack(call, next);
        }
        let role = match self.has_tool && is_launcher(Path::new(OsStr::from_bytes(&path))) {
            true => Role::Loading,
            false => Role::Program,
        };
        self.become_role(call, next.map_or(Role::Shallow, role));
        Ok(Response::Continue)
    }

    /// True if the call executes this recorded program, by its path or its arguments. A process
    /// may execute a program without a record before it.
    fn is_execution(&self, call: &NotifiedCall, index: usize, path: &[u8]) -> io::Result<bool> {
        let start = &self.matchers[index].rest.start;
        Ok(start.program == path || start.arguments == arguments(call)?)
    }

    /// True if a tool executes the first program by this path.
    fn is_first(&self, call: &NotifiedCall, path: &[u8]) -> bool {
        let executed = fs::canonicalize(program_file(call, path));
        let own = fs::canonicalize(&self.program);
        executed.is_ok_and(|executed| own.is_ok_and(|own| own == executed))
    }

    /// True if a call executes the shell by which a debugger starts the program. It may be the
    /// program of the record, too, as the interpreter of a script.
    fn is_startup_shell(&self, call: &NotifiedCall) -> io::Result<bool> {
        let recorded = &self.matchers[self.first].rest.start.arguments;
        Ok(starts_another(&arguments(call)?, recorded))
    }

    /// The recorded program that a process without a record executes. It has this path and these
    /// arguments. It ran in the same process, or in one that no recorded process made.
    fn behind_shallow(&self, call: &NotifiedCall, path: &[u8]) -> io::Result<Option<usize>> {
        let words = arguments(call)?;
        let group = self.group_of(call);
        let all = self.matchers.iter().zip(&self.started).enumerate();
        let fitting = all.filter(|(_, (matcher, started))| {
            let rest = &matcher.rest;
            let is_free = rest.pid == group || !self.made.contains_key(&rest.pid);
            let is_same = rest.start.program == path && rest.start.arguments == words;
            !**started && rest.start.by_exec && is_free && is_same
        });
        let own = fitting.min_by_key(|(index, (matcher, _))| (matcher.rest.pid != group, *index));
        Ok(own.map(|(index, _)| index))
    }

    fn become_role(&mut self, call: &NotifiedCall, role: Role) {
        let role = match role {
            Role::Program(index) => {
                self.started[index] = true;
                match self.matchers[index].rest.is_shallow {
                    true => Role::Shallow,
                    false => role,
                }
            }
            _ => role,
        };
        if role == Role::Shallow {
            self.result.shallow += 1;
        }
        let group = self.groups.get(&call.tid);
        if let Some(process) = group.and_then(|group| self.live.get_mut(group)) {
            let credentials = process.credentials;
            *process = LiveProcess::new(role);
            process.credentials = credentials;
        }
    }

    /// The role of a process that has executed a tool for a program. The byte engine says when the
    /// program starts.
    fn loaded_role(&self, index: usize) -> Role {
        match self.follows_bytes {
            true => Role::Loading(index),
            false => Role::Program(index),
        }
    }

    /// A tool has loaded a program, and lists its calls at this address.
    pub(super) fn loaded(&mut self, call: &NotifiedCall, index: usize, calls: u64) {
        self.become_role(call, Role::Program(index));
        let group = self.groups.get(&call.tid);
        if let Some(process) = group.and_then(|group| self.live.get_mut(group)) {
            process.calls = Some(calls);
            process.is_new = false;
        }
        self.begin(call, index);
    }

    /// The response to a process without a deep record.
    pub(super) fn shallow_response(&mut self, call: &NotifiedCall) -> io::Result<Response> {
        let group = self.groups.get(&call.tid);
        let process = group.and_then(|group| self.live.get(group));
        let is_added = process.is_some_and(|process| process.is_added);
        let role = process.map(|process| process.role);
        let executes = matches!(call.number, libc::SYS_execve | libc::SYS_execveat);
        match role {
            Some(Role::KilledEarly(signal)) => {
                // A program without a deep record leaves no call either, however long it ran.
                if !executes || is_refused(call, &executed_path(call)?) {
                    return Ok(self.await_early_killer(call, signal));
                }
                self.become_role(call, Role::Shallow);
            }
            _ if call.number == libc::SYS_kill => {
                let sent = self.signal_group(call, call.int(0), call.int(1));
                return Ok(sent.unwrap_or(Response::Continue));
            }
            Some(Role::Waiting(index)) if executes => {
                let path = executed_path(call)?;
                // A search through PATH tries names that do not exist.
                if !is_refused(call, &path) {
                    let program = Path::new(OsStr::from_bytes(&path));
                    let role = match self.has_tool && is_launcher(program) {
                        true => Role::Loading(index),
                        false if self.is_execution(call, index, &path)? => Role::Program(index),
                        false => Role::Shallow,
                    };
                    if role == Role::Program(index) {
                        self.lower_stack(call, index);
                    }
                    self.become_role(call, role);
                }
            }
            Some(Role::Shallow) if executes => {
                let path = executed_path(call)?;
                if is_refused(call, &path) {
                    return Ok(Response::Continue);
                }
                if let Some(index) = self.behind_shallow(call, &path)? {
                    self.become_role(call, Role::Program(index));
                } else if is_added {
                    self.become_role(call, Role::Shallow);
                }
            }
            Some(Role::Loading(index)) if executes => {
                let path = call.string(call.args[0])?;
                if is_loader(Path::new(OsStr::from_bytes(&path))) {
                    self.become_role(call, self.loaded_role(index));
                }
            }
            Some(Role::Loading(index)) if self.starts(call, index) => {
                return Ok(Response::Value(0));
            }
            Some(Role::Tool) if creates(call) => return self.tool_creates(call),
            Some(Role::Tool) if executes && !self.started[self.first] => {
                let path = executed_path(call)?;
                if is_loader(Path::new(OsStr::from_bytes(&path))) {
                    self.become_role(call, self.loaded_role(self.first));
                } else if self.is_first(call, &path) && !self.is_startup_shell(call)? {
                    self.become_role(call, Role::Program(self.first));
                }
            }
            Some(Role::Shallow) => return self.shallow_data(call),
            _ => {}
        }
        Ok(Response::Continue)
    }
}

/// True for a call that creates a process or thread.
fn creates(call: &NotifiedCall) -> bool {
    use libc::{SYS_clone, SYS_clone3, SYS_fork, SYS_vfork};
    matches!(call.number, SYS_fork | SYS_vfork | SYS_clone | SYS_clone3)
}

/// The position of the path among the arguments of `execve` or `execveat`.
fn path_at(call: &NotifiedCall) -> usize {
    usize::from(call.number == libc::SYS_execveat)
}

/// The path of the program that a call executes.
fn executed_path(call: &NotifiedCall) -> io::Result<Vec<u8>> {
    call.string(call.args[path_at(call)])
}

/// True if the kernel will refuse to execute this: the file is missing, or is no program, or has no
/// permission to be executed. The same holds for a script with such an interpreter. Failed calls
/// are not recorded. Not known of a caller with another root, where absolute links lead elsewhere.
fn is_refused(call: &NotifiedCall, path: &[u8]) -> bool {
    let by_descriptor = call.number == libc::SYS_execveat;
    let root = std::fs::read_link(format!("/proc/{}/root", call.tid));
    let has_other_root = root.is_ok_and(|root| root != Path::new("/"));
    if by_descriptor && path.is_empty() || has_other_root {
        return false;
    }
    let mut file = program_file(call, path);
    for _ in 0..=MOST_INTERPRETERS {
        match executable(&file) {
            None => return true,
            Some(Executable::Native) => return false,
            Some(Executable::Script(interpreter)) => {
                file = file_of(call.tid, "cwd", &interpreter);
            }
        }
    }
    true
}

/// The file that a call executes, by its path.
pub(super) fn program_file(call: &NotifiedCall, path: &[u8]) -> PathBuf {
    let by_descriptor = call.number == libc::SYS_execveat;
    let directory = match by_descriptor && call.int(0) != libc::AT_FDCWD {
        true => format!("fd/{}", call.int(0)),
        false => "cwd".to_owned(),
    };
    file_of(call.tid, &directory, path)
}

/// A file by its path in a thread. `directory`: its name in `/proc`.
fn file_of(tid: u32, directory: &str, path: &[u8]) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(path));
    match path.strip_prefix("/") {
        Ok(path) => Path::new(&format!("/proc/{tid}/root")).join(path),
        Err(_) => Path::new(&format!("/proc/{tid}/{directory}")).join(path),
    }
}

/// A file that the kernel executes.
#[derive(Debug, PartialEq, Eq)]
enum Executable {
    Native,
    /// It executes this interpreter.
    Script(Vec<u8>),
}

/// The way in which the kernel executes a file, as far as the file shows it. `None`: it refuses the
/// file. A pipe or a device is not opened: that may wait, or change something.
fn executable(path: &Path) -> Option<Executable> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let may_be = |about: fs::Metadata| about.is_file() && about.permissions().mode() & 0o111 != 0;
    if !fs::metadata(path).is_ok_and(may_be) {
        return None;
    }
    let mut head = [0; HEAD];
    let mut options = File::options();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let read = file.and_then(|mut file| file.read(&mut head));
    match head.strip_prefix(b"#!") {
        Some(rest) => interpreter(rest).map(Executable::Script),
        None if read.is_err() || head.starts_with(b"\x7fELF") => Some(Executable::Native),
        None => None,
    }
}

/// The interpreter of a script, by the bytes behind `#!`. Behind the end of a short file are zeros.
/// `None`: there is no name, or not all of it.
fn interpreter(rest: &[u8]) -> Option<Vec<u8>> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = rest.iter().position(|byte| !is_blank(byte))?;
    let ends = |byte: &u8| is_blank(byte) || matches!(byte, b'\n' | 0);
    let length = rest[start..].iter().position(ends)?;
    (length > 0).then(|| rest[start..start + length].to_vec())
}

/// The arguments of the program that a call executes.
fn arguments(call: &NotifiedCall) -> io::Result<Vec<Vec<u8>>> {
    let list = strings(call, call.args[path_at(call) + 1])?;
    Ok(list.into_iter().map(|(_, string)| string).collect())
}

/// The strings of a list that ends with a null pointer, each with its address.
pub(super) fn strings(call: &NotifiedCall, list: u64) -> io::Result<Vec<(u64, Vec<u8>)>> {
    let mut strings = Vec::new();
    let mut next = list;
    while next != 0 && strings.len() < MOST_ARGUMENTS {
        match call.word(next)? {
            0 => break,
            word => strings.push((word, call.string_within(word, LONGEST_ARGUMENT)?)),
        }
        next += 8;
    }
    Ok(strings)
}

/// True for the arguments of a shell that executes another program, unless they are those of the
/// record: `sh -c 'exec PROGRAM …'`. The first argument is the name of the shell itself.
fn starts_another(words: &[Vec<u8>], recorded: &[Vec<u8>]) -> bool {
    match words {
        [_, option, line] if option == b"-c" && line.starts_with(b"exec ") => {
            recorded.get(1..) != words.get(1..)
        }
        _ => false,
    }
}

/// True for the program of Valgrind that executes one of its tools. Under a tool that follows
/// children, a program that executes another one executes this instead.
fn is_launcher(path: &Path) -> bool {
    let name = path.file_name().map(OsStr::as_bytes);
    matches!(name, Some(b"valgrind" | b"valgrind.bin"))
}

/// True for a tool of Valgrind, which loads the program into its own process.
pub(super) fn is_loader(path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    path.ends_with(b"-amd64-linux") || path.windows(10).any(|part| part == b"/valgrind/")
}

#[cfg(test)]
mod tests {
    use super::{Executable, executable, interpreter, starts_another};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn a_pipe_is_no_program_and_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, text) = (dir.path().join("pipe"), dir.path().join("text"));
        let mut made = Command::new("mkfifo");
        made.args(["-m", "755"]).arg(&pipe);
        assert!(made.status().unwrap().success());
        fs::write(&text, "text").unwrap();
        fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!((executable(&pipe), executable(&text)), (None, None));
        let own = executable(Path::new("/proc/self/exe"));
        assert_eq!(own, Some(Executable::Native));
        fs::write(&text, "#!/bin/sh -e").unwrap();
        let script = Executable::Script(b"/bin/sh".to_vec());
        assert_eq!(executable(&text), Some(script));
    }

    #[test]
    fn the_interpreter_of_a_script_is_the_first_word_of_its_first_line() {
        for (line, name) in [
            ("/bin/sh\n", Some("/bin/sh")),
            (" \t/usr/bin/env python3\n", Some("/usr/bin/env")),
            ("relative\0\0", Some("relative")),
            ("\n/bin/sh\n", None),
            ("  \n", None),
            ("/cut/by/the/limit", None),
        ] {
            let found = interpreter(line.as_bytes());
            assert_eq!(found.as_deref(), name.map(str::as_bytes), "{line:?}");
        }
    }

    #[test]
    fn the_shell_by_which_a_debugger_starts_a_shell_is_not_that_shell() {
        let words = |words: &[&str]| -> Vec<Vec<u8>> {
            words.iter().map(|word| word.as_bytes().to_vec()).collect()
        };
        let script = words(&["/bin/sh", "./shim", "./app.py"]);
        let line = words(&["sh", "-c", "exec cat"]);
        let startup = words(&["/bin/sh", "-c", "exec /bin/sh ./shim ./app.py"]);
        assert!(starts_another(&startup, &script) && starts_another(&startup, &line));
        let named = words(&["/bin/sh", "-c", "exec cat"]);
        assert!(!starts_another(&script, &script) && !starts_another(&named, &line));
        // The user gave the program other arguments.
        assert!(!starts_another(
            &words(&["/bin/sh", "-x", "other"]),
            &script
        ));
    }
}
