//! Refines a run, or one of its requests, from its deep log. For a file, the engine follows only
//! the programs behind it, and the others run again natively.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use backstory_replay::root::OWN;

use super::programs_aside::{ProgramsAside, programs_aside};
use super::{BYTES, Refining, kept_bytes, say_unknown};
use crate::commands::replay::under_engine::{self, Refined};
use crate::error::{Failure, complain};
use crate::text::words::counted;

impl Refining<'_> {
    /// Refines the run from its deep log, or what is behind a file. False: it has none, or its
    /// result differs and the run can be replayed from contents instead.
    pub(super) fn refined_deeply(
        &self,
        request: Option<usize>,
        path: Option<&Path>,
    ) -> Result<bool, Failure> {
        if request.is_none() && !under_engine::is_deep(self.current, self.run) {
            return Ok(false);
        }
        let aside = match path.filter(|_| request.is_none()) {
            Some(path) => programs_aside(&self.current.store, self.run, path)?,
            None => None,
        };
        if aside.is_some() {
            match self.deeply(None, aside) {
                Ok(()) => return Ok(true),
                Err(failure) => complain(&format!(
                    "the programs behind the file are not enough ({}), so all of the run is followed",
                    failure.line
                )),
            }
        }
        match self.deeply(request, None) {
            Ok(()) => Ok(true),
            Err(failure) if request.is_none() && self.stores_contents()? => {
                complain(&format!(
                    "the deep log of run {} is not enough ({}), so the run is replayed from contents",
                    self.run, failure.line
                ));
                Ok(false)
            }
            Err(failure) => Err(Failure::not_found(format!(
                "run {} is not refined: {}; what was known of its bytes stays as it was",
                self.run, failure.line
            ))),
        }
    }

    fn stores_contents(&self) -> Result<bool, Failure> {
        let record = self.current.store.run(self.run)?;
        Ok(record.is_some_and(|record| record.header.modes.stores_contents()))
    }

    fn deeply(&self, request: Option<usize>, aside: Option<ProgramsAside>) -> Result<(), Failure> {
        let own = tempfile::Builder::new()
            .prefix("refine-")
            .tempdir_in(self.current.home.dir())?;
        let made = own.path().join(BYTES);
        let output = Path::new(OWN).join(BYTES);
        let options = aside.as_ref().map(ProgramsAside::options);
        let options = options.unwrap_or_default();
        let tool = self.engine.asking(&output, self.implicit, options);
        let tool = tool.into_iter().map(OsString::into_vec).collect();
        let refined =
            under_engine::run(self.current, own.path(), self.run, request, (tool, &made))?;
        self.check(&refined.verdict)?;
        let to = self.current.home.bytes_dir(self.run);
        match request.is_some() || aside.is_some() {
            true => kept_bytes::add(&made, &to),
            false => kept_bytes::replace(&made, &to),
        }
        .map_err(|error| Failure::not_found(format!("cannot write {}: {error}", to.display())))?;
        self.say(&refined, request, aside.as_ref());
        Ok(())
    }

    fn say(&self, refined: &Refined, request: Option<usize>, aside: Option<&ProgramsAside>) {
        refined.notes.iter().for_each(|note| complain(note));
        let found = &refined.reconstruction;
        // An output that was compared with the log needs no content.
        let mut verdict = refined.verdict.clone();
        if request.is_none() {
            verdict.outputs.retain(|output| {
                let path = String::from_utf8_lossy(&output.path);
                found.uncompared.iter().any(|name| *name == path)
            });
        }
        say_unknown(&verdict);
        if found.shallow > 0 {
            let programs = counted(found.shallow as usize, "program has", "programs have");
            complain(&format!(
                "{programs} no deep record: bytes are not followed through them"
            ));
        }
        for name in found.volatile_parts() {
            complain(&format!("the replay differs in a volatile part: {name}"));
        }
        let what = match (&found.request, aside) {
            (Some(one), _) if one.fed.is_empty() => {
                format!("request {} of run {}", one.number, self.run)
            }
            (Some(one), _) => format!(
                "request {} of run {}, with {},",
                one.number,
                self.run,
                counted(one.fed.len(), "earlier request", "earlier requests")
            ),
            (None, Some(aside)) => format!(
                "the part of {} of {} of run {}",
                aside.followed,
                counted(aside.of, "program", "programs"),
                self.run
            ),
            (None, None) => format!("run {}", self.run),
        };
        complain(&format!(
            "{what} is refined from the deep log: ask `backstory of PATH --line N`"
        ));
    }
}
