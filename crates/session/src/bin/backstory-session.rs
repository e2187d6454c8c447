//! Records one command into a log, without a store. Serves the tests of this crate, and debugging.
//!
//! ```text
//! backstory-session DIR ID [--guard on|off|strict|auto] [--lookups library|all]
//!     [--contents off|lazy|all] [--durability after|ordered|sync] [--detach-after SECONDS] [--after COMMAND]
//!     [--library DIR] [--broker] -- CMD ARGS...
//! ```
//!
//! Leaves the log `DIR/ID.log`, the recorder's library in `DIR/lib`, and the result of `record` as
//! text in `DIR/ID.recorded`.

use backstory_session::{Options, record};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

fn options() -> Option<Options> {
    let mut words = std::env::args_os().skip(1);
    let dir = PathBuf::from(words.next()?);
    let id = words.next()?.into_string().ok()?;
    let (part, log) = (
        dir.join(format!("{id}.log.part")),
        dir.join(format!("{id}.log")),
    );
    let mut options = Options::new(id, part, log, dir.join("lib"));
    while let Some(word) = words.next() {
        match word.to_str()? {
            "--broker" => options.broker = true,
            "--guard" => options.guard = words.next()?.to_str()?.parse().ok()?,
            "--lookups" => options.lookups = words.next()?.to_str()?.parse().ok()?,
            "--durability" => options.durability = words.next()?.to_str()?.parse().ok()?,
            "--deep" => options.deep = Some(words.next()?.to_str()?.parse().ok()?),
            "--verdicts" => options.verdicts = Some(PathBuf::from(words.next()?)),
            "--library" => options.library_dir = PathBuf::from(words.next()?),
            "--contents" => options.contents = words.next()?.to_str()?.parse().ok()?,
            "--detach-after" => {
                let seconds = words.next()?.to_str()?.parse().ok()?;
                options.detach_after = Some(Duration::from_secs_f64(seconds));
            }
            "--after" => {
                let shell = ["/bin/sh", "-c"].map(OsString::from);
                options.after = shell.into_iter().chain(words.next()).collect();
            }
            "--" => {
                options.command = words.collect();
                return Some(options);
            }
            _ => return None,
        }
    }
    None
}

fn say(line: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "backstory: {line}");
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        say("usage: backstory-session DIR ID [OPTIONS] -- CMD ARGS...");
        return ExitCode::from(125);
    };
    let result = options.log.with_extension("recorded");
    match record(options) {
        Ok(recorded) => {
            if let Some(warning) = &recorded.warning() {
                say(warning);
            }
            if let Err(error) = std::fs::write(&result, format!("{recorded:#?}\n")) {
                say(&format!("cannot write {}: {error}", result.display()));
            }
            ExitCode::from(recorded.status() as u8)
        }
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(125)
        }
    }
}
