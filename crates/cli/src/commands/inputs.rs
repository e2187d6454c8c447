//! `inputs`: lists the user's own files that a run read and did not make. With `--undeclared` it
//! compares them with what the build declared.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_declared::debian::{self, PackageComparison};
use backstory_declared::systems::PROGRAMS;
use backstory_declared::{BuildRun, Comparison, Difference, Listed, compare, declarations};
use backstory_eventlog::event::Bytes;
use backstory_packages::PackageTally;
use backstory_workflow::ownership::Ownership;
use backstory_workflow::paths::{is_incidental, relative};
use backstory_workflow::recording::Recording;

use super::{Outcome, answer, here};
use crate::args::inputs::InputsArgs;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain};
use crate::json::Value;
use crate::text::paths::shown;
use crate::text::words::counted;

/// At most this many packages or targets are named in a line.
const NAMED: usize = 5;

/// Prints the inputs of a run.
pub fn run(args: InputsArgs, store: Option<&Path>) -> Outcome {
    let current = CurrentStore::open(store)?;
    let id = current.run(args.run.run.as_deref())?;
    let recording = Recording::without_lookups(&current.store, &id)?;
    let mut ownership = Ownership::indexed(&current.home.packages_path(), [recording.cwd()]);
    let build = BuildRun::of(&recording, &mut ownership, &PROGRAMS);
    drop(recording);
    if !args.undeclared {
        let tally = ownership.tally(build.provided.iter().map(|path| &**path));
        return listing(&args, &build, &tally);
    }
    let used = build.provided.iter().filter(|path| !is_incidental(path));
    let tally = ownership.tally(used.map(|path| &**path));
    let report = Report::of(&args, &build, &tally, id)?;
    answer(|out| match args.run.json {
        true => {
            report.json().write(out)?;
            writeln!(out)
        }
        false => report.print(args.all, out),
    })?;
    Ok(u8::from(!report.is_declared()))
}

/// Prints the own files that the run read and did not make, then the packages of the others.
fn listing(args: &InputsArgs, build: &BuildRun, tally: &PackageTally) -> Outcome {
    let own = build.own.iter().filter(|path| !build.made.contains(*path));
    if args.run.json {
        let packages = tally.packages.iter().map(|count| {
            package(
                &count.package.name,
                Some(&count.package.version),
                count.files,
            )
        });
        let whole = Value::Object(vec![
            ("inputs", Value::array(own)),
            ("packages", Value::Array(packages.collect())),
        ]);
        return answer(|out| {
            whole.write(out)?;
            writeln!(out)
        });
    }
    let here = here();
    answer(|out| {
        for path in own {
            writeln!(out, "{}", shown(relative(path, &here)))?;
        }
        for line in tally.lines(NAMED) {
            writeln!(out, "… and {line}")?;
        }
        Ok(())
    })
}

/// The answer to `--undeclared`.
struct Report {
    run: String,
    /// Names of build systems, and the number of things that each declares.
    declared_by: Vec<(&'static str, usize)>,
    files: Comparison,
    packages: PackageComparison,
}

impl Report {
    fn of(
        args: &InputsArgs,
        build: &BuildRun,
        tally: &PackageTally,
        run: String,
    ) -> Result<Report, Failure> {
        let failed = |error: backstory_declared::Error| Failure::not_found(chain(&error));
        let (rules, mut declared_by) = declarations(build).map_err(failed)?;
        let listed = args.declared.as_ref();
        let listed = listed.map(|file| Listed::read(file, &build.directory));
        let listed = listed.transpose().map_err(failed)?;
        if let Some(listed) = &listed {
            declared_by.push(("the list", listed.len()));
        }
        let mut read: BTreeMap<String, usize> = BTreeMap::new();
        for count in &tally.packages {
            if count.package.provider == "dpkg" {
                *read.entry(count.package.name.clone()).or_default() += count.files;
            }
        }
        let source = Path::new(OsStr::from_bytes(&build.directory));
        let status = Path::new("/var/lib/dpkg/status");
        let packages = debian::compare(source, status, &read).map_err(failed)?;
        if declared_by.is_empty() && packages.is_none() {
            return Err(Failure::misuse(format!(
                "run {run} has no declarations to compare with (make, ninja, snakemake, depfiles, \
                 Build-Depends): list its inputs in a file and give --declared FILE"
            )));
        }
        // Without rules for files, only packages can be compared.
        let files = match declared_by.is_empty() {
            true => Comparison::default(),
            false => compare(build, &rules, listed.as_ref()),
        };
        if packages.is_some() {
            declared_by.push(("Build-Depends", 1));
        }
        Ok(Report {
            run,
            declared_by,
            files,
            packages: packages.unwrap_or_default(),
        })
    }

    /// True if nothing undeclared was read.
    fn is_declared(&self) -> bool {
        self.files.undeclared.is_empty() && self.packages.undeclared.is_empty()
    }

    /// Prints the lists, each up to [`MOST`] lines unless `all` is set.
    fn print(&self, all: bool, out: &mut impl Write) -> io::Result<()> {
        let here = here();
        let most = if all { usize::MAX } else { MOST };
        let undeclared = &self.files.undeclared;
        files(out, "read, but not declared:", undeclared, &here, most)?;
        let unread = &self.files.unread;
        files(out, "declared, but not read:", unread, &here, most)?;
        if !self.packages.undeclared.is_empty() {
            writeln!(
                out,
                "packages that were read, but that Build-Depends does not bring:"
            )?;
        }
        for (name, count) in self.packages.undeclared.iter().take(most) {
            writeln!(out, "  {name}: {}", counted(*count, "file", "files"))?;
        }
        rest(out, self.packages.undeclared.len(), most)?;
        if !self.packages.unread.is_empty() {
            writeln!(out, "packages in Build-Depends of which nothing was read:")?;
        }
        for name in self.packages.unread.iter().take(most) {
            writeln!(out, "  {name}")?;
        }
        rest(out, self.packages.unread.len(), most)?;
        if self.is_declared() {
            let names: Vec<&str> = self.declared_by.iter().map(|(name, _)| *name).collect();
            writeln!(out, "all that was read is declared ({})", names.join(", "))?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let systems = self.declared_by.iter().map(|(name, count)| {
            Value::Object(vec![
                ("name", (*name).into()),
                ("declarations", Value::Int(*count as i128)),
            ])
        });
        let undeclared = self.packages.undeclared.iter();
        let unread = self.packages.unread.iter();
        Value::Object(vec![
            ("run", self.run.as_str().into()),
            ("declared_by", Value::Array(systems.collect())),
            ("undeclared", differences(&self.files.undeclared)),
            ("unread", differences(&self.files.unread)),
            (
                "undeclared_packages",
                Value::Array(
                    undeclared
                        .map(|(name, files)| package(name, None, *files))
                        .collect(),
                ),
            ),
            (
                "unread_packages",
                Value::Array(unread.map(|name| package(name, None, 0)).collect()),
            ),
        ])
    }
}

fn package(name: &str, version: Option<&str>, files: usize) -> Value {
    let mut fields = vec![("name", name.into())];
    fields.extend(version.map(|version| ("version", version.into())));
    fields.push(("files", Value::Int(files as i128)));
    Value::Object(fields)
}

fn differences(all: &[Difference]) -> Value {
    let one = |difference: &Difference| {
        Value::Object(vec![
            ("path", (&difference.path).into()),
            ("targets", Value::array(&difference.targets)),
        ])
    };
    Value::Array(all.iter().map(one).collect())
}

/// A title, then one file a line with the targets that it matters for.
fn files(
    out: &mut impl Write,
    title: &str,
    all: &[Difference],
    here: &[u8],
    most: usize,
) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}")?;
    let name = |path: &Bytes| shown(relative(path, here)).to_string();
    let listed = &all[..all.len().min(most)];
    let width = listed
        .iter()
        .map(|one| name(&one.path).chars().count())
        .max();
    for difference in listed {
        let path = name(&difference.path);
        let targets: Vec<String> = difference.targets.iter().take(NAMED).map(name).collect();
        let more = difference.targets.len().saturating_sub(NAMED);
        let by = match (targets.is_empty(), more) {
            (true, _) => String::new(),
            (false, 0) => format!("  by {}", targets.join(", ")),
            (false, more) => format!("  by {} and {more} more", targets.join(", ")),
        };
        writeln!(
            out,
            "  {path:<width$}{by}",
            width = width.unwrap_or_default() * usize::from(!by.is_empty())
        )?;
    }
    rest(out, all.len(), most)
}

/// Counts what a list leaves out.
fn rest(out: &mut impl Write, count: usize, most: usize) -> io::Result<()> {
    match count.saturating_sub(most) {
        0 => Ok(()),
        more => writeln!(out, "  … and {more} more (--all lists them)"),
    }
}

/// The lines of a list on one screen with the other lists.
const MOST: usize = 10;
