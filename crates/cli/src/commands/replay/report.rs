//! Prints the result of a replay, in words or as JSON.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use backstory_query::ReplayVerdict;
use backstory_reconstruct::verdict::Reconstruction;
use backstory_replay::plan::Plan;
use backstory_replay::root::results::FILES;
use backstory_replay::verdict::{OutputState, OutputVerdict, Verdict};

use super::{Played, STORE, deep_report, record_ends};
use crate::commands::{Outcome, answer};
use crate::error::complain;
use crate::json::{self, Value};
use crate::text::paths::shown;
use crate::text::shell::quote;
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::noun;

/// The whole result.
pub struct Report<'r> {
    /// The recorded run.
    pub plan: &'r Plan,
    /// True if the user changed nothing.
    pub faithful: bool,
    /// How the recorded command ended.
    pub recorded_status: Option<i32>,
    /// Files of this machine that the replay looked for, but the record does not have.
    pub untouched: Vec<Vec<u8>>,
    /// The recorded run.
    pub played: Played,
    /// The comparison of its outputs.
    pub verdict: Verdict,
    /// The directory of the outputs.
    pub directory: PathBuf,
}

impl Report<'_> {
    /// True if all outputs are as recorded. Of a deep replay, the comparison with the log decides,
    /// which has the files, too.
    pub fn is_identical(&self) -> bool {
        match &self.played.reconstruction {
            Some(reconstruction) => deep_report::is_alike(reconstruction),
            None => {
                let same = |status: i32| status == self.played.status;
                self.verdict.is_identical() && self.recorded_status.is_none_or(same)
            }
        }
    }

    /// The result for one request. The verdict has the files that it wrote.
    fn of_request(&self) -> Option<&Reconstruction> {
        let reconstruction = self.played.reconstruction.as_ref();
        reconstruction.filter(|reconstruction| reconstruction.request.is_some())
    }

    /// Prints the result, and the notes of the plan on standard error. The exit status is 1 if an
    /// output differs.
    pub fn print(&self, json: bool) -> Outcome {
        for note in &self.plan.notes {
            complain(note);
        }
        match json {
            true => drop(answer(|out| json::object(out, self.fields()))?),
            // The command has printed on standard output. The report is not part of that.
            false => {
                let mut text = Vec::new();
                self.text(Style::of_stderr(), &mut text)?;
                io::stderr().write_all(&text)?;
            }
        }
        Ok(u8::from(!self.is_identical()))
    }

    /// True if the replay left files.
    pub fn has_files(&self) -> bool {
        self.directory.join(FILES).is_dir()
    }

    /// Outputs that differ or are missing, as many as a report has.
    pub fn different(&self) -> impl Iterator<Item = &[u8]> {
        self.wrong().map(|output| &output.path[..]).take(SHOWN)
    }

    fn wrong(&self) -> impl Iterator<Item = &OutputVerdict> {
        let wrong = |output: &&OutputVerdict| {
            matches!(output.state, OutputState::Different | OutputState::Missing)
        };
        self.verdict.outputs.iter().filter(wrong)
    }

    /// The verdict as the store keeps it.
    pub fn kept(&self) -> ReplayVerdict {
        let outputs = &self.verdict.outputs;
        let paths = |state: &OutputState| {
            let of = outputs.iter().filter(|output| output.state == *state);
            let of = of.take(ReplayVerdict::PATHS);
            of.map(|output| shown(&output.path).to_string()).collect()
        };
        let unknown = |output: &&OutputVerdict| matches!(output.state, OutputState::Unknown(_));
        ReplayVerdict {
            ended: when::now(),
            identical: self.is_identical(),
            faithful: self.faithful,
            exit: self.played.status,
            outputs: outputs.len(),
            unknown: outputs.iter().filter(unknown).count(),
            different: paths(&OutputState::Different),
            missing: paths(&OutputState::Missing),
            new: self.verdict.new.len(),
            took: self.played.took,
        }
    }

    /// The result as the members of a JSON object.
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        let output = |output: &OutputVerdict| {
            Value::Object(vec![
                ("path", (&output.path).into()),
                ("state", word(&output.state).into()),
                (
                    "why",
                    match &output.state {
                        OutputState::Unknown(why) => why.into(),
                        _ => Value::Null,
                    },
                ),
                ("fed_by", Value::array(&output.fed_by)),
            ])
        };
        vec![
            ("run", (&self.plan.run).into()),
            ("identical", self.is_identical().into()),
            ("faithful", self.faithful.into()),
            ("exit", self.played.status.into()),
            ("recorded_exit", self.recorded_status.into()),
            ("not_started", self.played.not_started.as_ref().into()),
            (
                "outputs",
                Value::Array(self.verdict.outputs.iter().map(output).collect()),
            ),
            ("new", Value::array(&self.verdict.new)),
            (
                "not_touched",
                Value::array(self.untouched.iter().map(Vec::as_slice)),
            ),
            ("notes", Value::array(&self.plan.notes)),
            ("directory", os(&self.directory)),
            ("replay", self.played.recorded.as_ref().into()),
            ("took_ns", self.played.took.into()),
            (
                "reconstruction",
                match &self.played.reconstruction {
                    Some(reconstruction) => deep_report::value(reconstruction),
                    None => Value::Null,
                },
            ),
        ]
    }

    fn left_files(&self, out: &mut impl Write) -> io::Result<()> {
        let files = self.directory.join(FILES);
        if files.is_dir() {
            writeln!(
                out,
                "outputs are below {}",
                quote(std::os::unix::ffi::OsStrExt::as_bytes(files.as_os_str()))
            )?;
        }
        Ok(())
    }

    fn text(&self, style: Style, out: &mut impl Write) -> io::Result<()> {
        if let Some(reconstruction) = &self.played.reconstruction {
            deep_report::text(reconstruction, style, out)?;
        }
        if self.of_request().is_some() && self.verdict.outputs.is_empty() {
            return self.left_files(out);
        }
        self.compared(style, out)?;
        let outputs = &self.verdict.outputs;
        if let Some(status) = self
            .recorded_status
            .filter(|status| *status != self.played.status)
            .filter(|_| self.played.reconstruction.is_none())
        {
            writeln!(
                out,
                "  the command ended with status {}; the recorded status is {status}",
                self.played.status
            )?;
        }
        if let Some(why) = &self.played.not_started {
            writeln!(out, "  the command could not be started: {why}")?;
        }
        self.differing(style, out)?;
        let why = |output: &&OutputVerdict| matches!(output.state, OutputState::Unknown(_));
        for output in outputs.iter().filter(why).take(SHOWN) {
            if let OutputState::Unknown(why) = &output.state {
                writeln!(
                    out,
                    "  {} {}: {why}",
                    style.paint(Role::Dim, "unknown"),
                    quote(&output.path)
                )?;
            }
        }
        for path in self.verdict.new.iter().take(SHOWN) {
            writeln!(out, "  {} {}", style.paint(Role::Dim, "new"), quote(path))?;
        }
        if self.verdict.new.len() > SHOWN {
            writeln!(
                out,
                "  and {} more new files",
                self.verdict.new.len() - SHOWN
            )?;
        }
        // If all outputs are as recorded, it does not matter which files were absent.
        let silent = self.faithful && self.is_identical();
        for path in self.untouched.iter().take(SHOWN).filter(|_| !silent) {
            writeln!(
                out,
                "  the replay looked for {}, which the recorded run did not use: --allow-host takes it from this machine",
                quote(path)
            )?;
        }
        self.left_files(out)?;
        if let Some(run) = &self.played.recorded {
            let store = self.directory.join(STORE);
            writeln!(
                out,
                "recorded as run {run} in --store {}",
                quote(std::os::unix::ffi::OsStrExt::as_bytes(store.as_os_str()))
            )?;
        }
        Ok(())
    }

    /// How many outputs are as recorded, in one line.
    fn compared(&self, style: Style, out: &mut impl Write) -> io::Result<()> {
        let outputs = &self.verdict.outputs;
        let count = outputs.len();
        if count == 0 && self.played.reconstruction.is_some() {
            // The verdict on the programs has been printed.
            return Ok(());
        }
        let of_state = |is_it: fn(&OutputState) -> bool| {
            let all = outputs.iter().filter(|output| is_it(&output.state));
            all.count()
        };
        let unknown = of_state(|state| matches!(state, OutputState::Unknown(_)));
        let noun = noun(count, "output", "outputs");
        if !self.verdict.is_identical() {
            let same = of_state(|state| *state == OutputState::Identical);
            let different = style.paint(Role::Bad, "different");
            return writeln!(out, "{different}: {same} of {count} {noun} identical");
        }
        let ends_otherwise = self.played.reconstruction.is_none() && !self.is_identical();
        if ends_otherwise {
            // The next line has both statuses.
            let different = style.paint(Role::Bad, "different");
            let outputs = match count {
                0 => "no output to compare".to_owned(),
                _ if unknown > 0 => format!("no {noun} known to differ"),
                _ => format!("{count} {noun} identical"),
            };
            return writeln!(out, "{different}: another status, {outputs}");
        }
        if unknown > 0 {
            return self.compared_in_part(unknown, style, out);
        }
        write!(
            out,
            "{}: {count} {noun}",
            style.paint(Role::Good, "identical")
        )?;
        // Programs are ended when a request has been served, and where their record ends early.
        let is_ended =
            |found: &Reconstruction| found.request.is_some() || !found.unrecorded.is_empty();
        let has_no_status = self.played.reconstruction.as_ref().is_some_and(is_ended);
        // If the programs differ, their status may be a difference.
        match has_no_status || !self.is_identical() {
            true => writeln!(out),
            false => writeln!(out, ", status {}", self.played.status),
        }
    }

    /// The same if so many outputs could not be compared, and no other differs.
    fn compared_in_part(
        &self,
        unknown: usize,
        style: Style,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let outputs = &self.verdict.outputs;
        let count = outputs.len();
        let (known, noun) = (count - unknown, noun(count, "output", "outputs"));
        let identical = style.paint(Role::Good, "identical as far as is known");
        write!(out, "{identical}: {known} of {count} {noun}")?;
        let of_state = |is_it: fn(&OutputState) -> bool| {
            let all = outputs.iter().filter(|output| is_it(&output.state));
            all.count()
        };
        let later = of_state(record_ends::is_behind_record);
        let behind = of_state(record_ends::is_behind_part);
        if unknown > later + behind {
            let others = unknown - later - behind;
            write!(out, "; the recorded contents of {others} are unknown")?;
        }
        if later > 0 {
            write!(
                out,
                "; {later} can lack writes behind the end of a deep record"
            )?;
        }
        if behind > 0 {
            write!(
                out,
                "; {behind} can lack writes behind the part that ran again"
            )?;
        }
        writeln!(out)
    }

    fn differing(&self, style: Style, out: &mut impl Write) -> io::Result<()> {
        let wrong: Vec<&OutputVerdict> = self.wrong().collect();
        for (at, output) in wrong.iter().take(SHOWN).enumerate() {
            let first = if at == 0 && wrong.len() > 1 {
                "first "
            } else {
                ""
            };
            let word = format!("{first}{}", word(&output.state));
            writeln!(
                out,
                "  {} {}",
                style.paint(Role::Bad, &word),
                quote(&output.path)
            )?;
            for source in output.fed_by.iter().take(SHOWN) {
                writeln!(out, "    {} {source}", style.paint(Role::Dim, "fed by"))?;
            }
            if output.fed_by.is_empty() && self.faithful {
                writeln!(
                    out,
                    "    no recorded input: the time, getrandom, a process number, or an address in memory"
                )?;
            }
        }
        if wrong.len() > SHOWN {
            writeln!(out, "  and {} more", wrong.len() - SHOWN)?;
        }
        Ok(())
    }
}

/// Lines of one kind that are printed one by one.
const SHOWN: usize = 10;

fn os(path: &Path) -> Value {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().into()
}

fn word(state: &OutputState) -> &'static str {
    match state {
        OutputState::Identical => "identical",
        OutputState::Different => "different",
        OutputState::Missing => "missing",
        OutputState::Unknown(_) => "unknown",
    }
}
