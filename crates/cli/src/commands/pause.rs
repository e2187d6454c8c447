//! `pause`, `resume` and `config`: what a recorded shell records.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use backstory_files::regular;
use backstory_store::Home;

use super::{Outcome, answer};
use crate::args::shell::ConfigArgs;
use crate::error::{Failure, complain};
use crate::json::{self, Value};
use crate::recorded_shell::{NOT_RECORDED, SESSION};
use crate::shell_policy::{PAUSED, ShellPolicy};
use crate::text::when::size;

/// Stops recording the lines of this shell, from the next one on.
pub fn pause() -> Outcome {
    let file = paused_file()?;
    match regular::open_private(&file) {
        Ok(_) => Ok(0),
        Err(error) => Err(failed("pause", &file, &error)),
    }
}

/// Records the lines of this shell again.
pub fn resume() -> Outcome {
    let file = paused_file()?;
    match fs::remove_file(&file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("resume", &file, &error)),
        _ => Ok(0),
    }
}

fn failed(what: &str, file: &Path, error: &std::io::Error) -> Failure {
    Failure::not_found(format!("cannot {what}: {}: {error}", file.display()))
}

/// The file of this shell that stops recording while it exists.
fn paused_file() -> Result<PathBuf, Failure> {
    let file = std::env::var_os(PAUSED).filter(|file| !file.is_empty());
    file.map(PathBuf::from).ok_or_else(|| {
        let session = std::env::var_os(SESSION).filter(|session| session != NOT_RECORDED);
        Failure::misuse(match session {
            Some(_) => "this shell is recorded as one run, and has no lines to pause",
            None => "this shell is not recorded; `backstory shell` starts one that is",
        })
    })
}

/// Prints the configuration in effect. Its mistakes go to standard error.
pub fn config(args: &ConfigArgs) -> Outcome {
    let policy = ShellPolicy::load();
    policy.warnings.iter().for_each(|warning| complain(warning));
    if policy.hides_private {
        complain("a recorded shell records no line until these mistakes are corrected");
    }
    let file = policy.file.as_ref().map(|file| file.display().to_string());
    let contents = policy.contents.store.bytes_at(&Home::directory(None)?);
    answer(|out| match args.json {
        true => json::object(
            out,
            vec![
                ("file", file.as_ref().into()),
                ("exists", policy.exists.into()),
                ("private", Value::array(&policy.private)),
                ("noise", Value::array(&policy.noise)),
                ("remote", policy.remote.into()),
                ("store_limit", policy.limits.store.into()),
                ("day_limit", policy.limits.day.into()),
                ("contents_limit", contents.into()),
                ("run_limit", policy.contents.run.into()),
                ("file_limit", policy.contents.file.into()),
                ("directory_limits", directory_limits(&policy)),
                ("mistakes", Value::array(&policy.warnings)),
            ],
        ),
        false => {
            let missing = if policy.exists { "" } else { " (missing)" };
            let file = file.as_deref().unwrap_or("no home directory");
            writeln!(out, "# {file}{missing}")?;
            writeln!(out, "[shell]\nprivate = {:?}", policy.private)?;
            writeln!(out, "noise = {:?}", policy.noise)?;
            writeln!(out, "remote = {}", policy.remote)?;
            let limits = [
                ("store", policy.limits.store),
                ("day", policy.limits.day),
                ("contents", contents),
                ("run", policy.contents.run),
                ("file", policy.contents.file),
            ];
            writeln!(out, "[limits]")?;
            for (name, limit) in limits {
                if let Some(bytes) = limit {
                    writeln!(out, "{name} = \"{bytes}\"  # {}", size(bytes))?;
                }
            }
            if !policy.contents.directories.is_empty() {
                writeln!(out, "[limits.directories]")?;
            }
            for (pattern, bytes) in &policy.contents.directories {
                writeln!(out, "{pattern:?} = \"{bytes}\"  # {}", size(*bytes))?;
            }
            Ok(())
        }
    })?;
    Ok(u8::from(!policy.warnings.is_empty()))
}

fn directory_limits(policy: &ShellPolicy) -> Value {
    let limits = policy.contents.directories.iter().map(|(pattern, bytes)| {
        let pattern = ("pattern", pattern.as_str().into());
        Value::Object(vec![pattern, ("bytes", (*bytes).into())])
    });
    Value::Array(limits.collect())
}
