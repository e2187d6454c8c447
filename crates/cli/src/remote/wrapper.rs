//! This program under the name `ssh`, `scp`, `sftp` or `mosh`, in a run with `--remote`.
//!
//! In: the arguments that the user gave the program. Out: the real program, in this process. Where
//! the other machine can record, ssh gets a command that records the user's command there.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use backstory_disclosure::MarkPath;
use backstory_exchange::{FarHost, FarProgram, OwnProgram, Purpose, SshCommandLine};
use backstory_store::random_run_id;

use super::pending::{PendingRun, start_of};
use super::{READY, VARIABLE, WRAPPED, wrappers};
use crate::error::complain;

/// The settings of the recording around this process.
struct Settings {
    contents: String,
    store: PathBuf,
}

/// Acts as the wrapped program, if this process was started under the name of one in a run with
/// `--remote`. Does not return then, unless the real program cannot be executed.
pub fn run(args: &[OsString]) -> Option<ExitCode> {
    let own = Path::new(args.first()?).file_name()?.to_str()?;
    let name = WRAPPED.into_iter().find(|name| *name == own)?;
    let value = std::env::var_os(VARIABLE)?.into_vec();
    let colon = value.iter().position(|&byte| byte == b':')?;
    let settings = Settings {
        contents: String::from_utf8(value[..colon].to_vec()).ok()?,
        store: OsString::from_vec(value[colon + 1..].to_vec()).into(),
    };
    if name == "mosh" {
        complain(
            "mosh is not recorded on the other machine, because it leaves ssh for datagrams: \
             use ssh, or start mosh outside of the recording",
        );
        return Some(ExitCode::FAILURE);
    }
    let Some(real) = real_program(name, &settings.store) else {
        complain(&format!("{name}: no such command in PATH"));
        return Some(ExitCode::from(127));
    };
    let words = match name {
        "ssh" => ssh(&real, &args[1..], &settings),
        _ => with_ssh(&args[1..], &settings.store),
    };
    let name: &OsStr = match Path::new(&args[0]).components().count() {
        1 => &args[0],
        _ => real.as_os_str(),
    };
    let Err(error) = become_program(&real, name, &words);
    complain(&format!("cannot execute {}: {error}", real.display()));
    Some(ExitCode::from(126))
}

fn become_program(
    program: &Path,
    name: &OsStr,
    words: &[OsString],
) -> Result<Infallible, std::io::Error> {
    Err(Command::new(program).arg0(name).args(words).exec())
}

/// The first program of this name in `PATH` that is no wrapper.
fn real_program(name: &str, store: &Path) -> Option<PathBuf> {
    let identity = |path: &Path| {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.dev(), meta.ino()))
    };
    let wrappers = identity(&wrappers(store));
    let own = identity(Path::new("/proc/self/exe"));
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| wrappers.is_none() || identity(directory) != wrappers)
        .map(|directory| directory.join(name))
        .find(|candidate| {
            let is_program = std::fs::metadata(candidate)
                .is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0);
            is_program && identity(candidate) != own
        })
}

/// `scp` and `sftp` start ssh by its path. An option of the user's comes later, and counts.
fn with_ssh(args: &[OsString], store: &Path) -> Vec<OsString> {
    let ssh = wrappers(store).join("ssh");
    let own = ["-S".into(), ssh.into_os_string()].into_iter();
    own.chain(args.iter().cloned()).collect()
}

/// The arguments for the real ssh.
fn ssh(real: &Path, args: &[OsString], settings: &Settings) -> Vec<OsString> {
    let Some(read) = SshCommandLine::parse(args) else {
        mark_unrecorded("another machine", "an option of ssh is not known here");
        return args.to_vec();
    };
    let machine = read.destination.to_string_lossy().into_owned();
    match recorded(real, &read, &machine, settings) {
        Ok(Some(words)) => words,
        Ok(None) => args.to_vec(),
        Err(why) => {
            mark_unrecorded(&machine, &why);
            args.to_vec()
        }
    }
}

/// Prepares the other machine. `None` if nothing is started there.
fn recorded(
    real: &Path,
    read: &SshCommandLine,
    machine: &str,
    settings: &Settings,
) -> Result<Option<Vec<OsString>>, String> {
    let command = match &read.purpose {
        Purpose::Nothing => return Ok(None),
        Purpose::Login => return Err("it is a login without a command".to_owned()),
        Purpose::Subsystem(name) if name != b"sftp" => {
            let name = name.escape_ascii();
            return Err(format!("it is the subsystem {name}"));
        }
        Purpose::Subsystem(_) => None,
        Purpose::Command(command) => Some(command.clone()),
    };
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let options = read.reaching();
    let host = FarHost {
        ssh: real,
        options: &options,
        destination: &read.destination,
    };
    let own = OwnProgram {
        file: &own,
        ready: READY,
    };
    let far = host.program(&own)?;
    let command = match command {
        Some(command) => command,
        None => {
            let server = far.sftp_server.clone();
            server.ok_or("it has no sftp-server")?.into_bytes()
        }
    };
    let run = random_run_id();
    let connection = format!("{machine}/{run}");
    let line = recording_line(&far, &run, &connection, &settings.contents, &command)?;
    let pending = pending(real, &options, machine, &far, run, connection)?;
    pending
        .write(&settings.store)
        .map_err(|error| format!("the store cannot note its run: {error}"))?;
    mark(&MarkPath::new("connect").word(&pending.connection));
    Ok(Some(read.with_command(OsString::from_vec(line))))
}

fn recording_line(
    far: &FarProgram,
    run: &str,
    connection: &str,
    contents: &str,
    command: &[u8],
) -> Result<Vec<u8>, String> {
    let options = [
        "remote-side",
        "--run",
        run,
        "--connection",
        connection,
        "--contents",
        contents,
    ];
    far.recording(&options, command).ok_or_else(|| {
        let shell = &far.shell;
        format!("its login shell {shell} reads quotes in another way")
    })
}

/// The note of the run, from which it is fetched later.
fn pending(
    real: &Path,
    options: &[OsString],
    machine: &str,
    far: &FarProgram,
    run: String,
    connection: String,
) -> Result<PendingRun, String> {
    let words = std::iter::once(real.as_os_str()).chain(options.iter().map(OsString::as_os_str));
    let ssh: Option<Vec<String>> = words.map(|word| word.to_str().map(str::to_owned)).collect();
    let own = std::process::id();
    Ok(PendingRun {
        run,
        connection,
        machine: machine.to_owned(),
        ssh: ssh.ok_or("an option of ssh is not UTF-8")?,
        directory: std::env::current_dir().map_err(|error| error.to_string())?,
        program: far.path.clone(),
        client: (own, start_of(own).unwrap_or_default()),
        tried: 0,
    })
}

fn mark_unrecorded(machine: &str, why: &str) {
    mark(&MarkPath::new("unrecorded").word(machine).word(why));
}

/// The path exists nowhere. The attempt to open it is the mark.
fn mark(mark: &MarkPath) {
    let _ = File::open(OsStr::from_bytes(mark.as_bytes()));
}
