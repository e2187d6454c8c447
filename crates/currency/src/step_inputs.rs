//! Judges one use of a file: would the step find the same now?
//!
//! Files that a run made for itself are judged by the run's end state. A temporary file that the
//! run removed is not missing. A file that the run made anew is compared with its content at the
//! end.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{Certainty, Edge, Entity, EntityKind, Relation};
use backstory_workflow::paths::{is_below_kernel, is_system, is_tool, parent};
use backstory_workflow::steps::script;

use crate::Result;
use crate::derived_views::{ViewJudge, ViewRule, is_compiled_from};
use crate::file_state::{FileComparison, FileState};
use crate::loaded_runs::LoadedRun;
use crate::reason::Reason;

/// Judges the uses of files.
pub struct InputJudge<'j> {
    /// Compares files with versions.
    pub files: &'j FileComparison<'j>,
    /// The rules of derived views.
    pub views: &'j ViewJudge,
}

impl InputJudge<'_> {
    /// The version that should be at the path of a version that the run used. It is the one that
    /// the run left there, if the run made one. `None`: the run removed the file.
    pub fn expected<'r>(&self, run: &'r LoadedRun, used: &'r Entity) -> Option<&'r Entity> {
        match run.left(&used.path) {
            Some(left) => Some(left).filter(|left| left.last),
            None => Some(used),
        }
    }

    /// The reason that one use gives. `worked`: the last time at which a recorded step worked in a
    /// directory; changes of the directory until then are those of the steps.
    pub fn reason(
        &self,
        run: &LoadedRun,
        at: usize,
        edge: &Edge,
        worked: &dyn Fn(&[u8]) -> Time,
    ) -> Result<Option<Reason>> {
        let entity = run.recording.entity(edge.entity);
        let path = &entity.path;
        if edge.certainty == Certainty::Possible || !path.starts_with(b"/") || is_below_kernel(path)
        {
            return Ok(None);
        }
        match edge.relation {
            Relation::Read | Relation::Execute if entity.kind == EntityKind::File => {
                self.read(run, at, edge, worked)
            }
            Relation::Missing => self.missing(run, at, path),
            Relation::List => Ok(self.listing(run, at, path, worked)),
            _ => Ok(None),
        }
    }

    fn read(
        &self,
        run: &LoadedRun,
        at: usize,
        edge: &Edge,
        worked: &dyn Fn(&[u8]) -> Time,
    ) -> Result<Option<Reason>> {
        let entity = run.recording.entity(edge.entity);
        let path = &entity.path;
        let Some(expected) = self.expected(run, entity) else {
            return Ok(None);
        };
        let state = self.files.state(path, expected, run.ended)?;
        let tool = || edge.relation == Relation::Execute || is_tool(path);
        // A compiled file stands for its source, even if it has not changed itself.
        let compiled = path.ends_with(b".pyc") && self.files.present.ident(path).is_ok();
        if state == FileState::Current && !compiled {
            // Look-ups that were not recorded may now find another file.
            let unseen = !run.recording.activities[at].lookups_known && !is_system(path);
            let directory = unseen.then(|| self.directory(parent(path), worked));
            return Ok(directory.flatten().map(Reason::MayHaveLooked));
        }
        let changed = match state {
            FileState::Removed => Reason::InputGone(path.clone()),
            _ if is_script(run, at, entity) => Reason::ScriptChanged(path.clone()),
            _ if tool() => Reason::ToolChanged(path.clone()),
            _ => Reason::InputChanged(path.clone()),
        };
        match self.views.rule(run, at, path) {
            ViewRule::Nothing => Ok(None),
            ViewRule::Content => Ok((state != FileState::Current).then_some(changed)),
            ViewRule::Libraries => Ok(self
                .views
                .moved_library(run, at, path)
                .map(Reason::ToolChanged)),
            ViewRule::Source(source) => self.source(run, expected, source, changed),
        }
    }

    /// Judges a compiled file by its source.
    fn source(
        &self,
        run: &LoadedRun,
        compiled: &Entity,
        source: Bytes,
        changed: Reason,
    ) -> Result<Option<Reason>> {
        let Ok(now) = self.files.present.ident(&source) else {
            // The file is compiled without a source.
            let state = self.files.state(&compiled.path, compiled, run.ended)?;
            return Ok((state != FileState::Current).then_some(changed));
        };
        let known = run.left(&source).or_else(|| run.before(&source));
        if let Some(known) = known.filter(|known| known.ident.is_some()) {
            let state = self.files.state(&source, known, run.ended)?;
            let other = Reason::InputChanged(source);
            return Ok((state != FileState::Current).then_some(other));
        }
        let same = self.files.state(&compiled.path, compiled, run.ended)? == FileState::Current
            && is_compiled_from(&compiled.path, now.mtime, now.size);
        let before = now.mtime.max(now.ctime) <= run.ended;
        Ok((!same && !before).then_some(Reason::InputChanged(source)))
    }

    fn missing(&self, run: &LoadedRun, at: usize, path: &Bytes) -> Result<Option<Reason>> {
        // A file that the run made after the look-up existed at its end.
        if run.left(path).is_some() || self.files.present.link(path).is_err() {
            return Ok(None);
        }
        let nothing = self.views.rule(run, at, path) != ViewRule::Content;
        Ok((!nothing).then(|| Reason::Appeared(path.clone())))
    }

    /// The directory, if names appeared or disappeared since the end of the run. The comparison
    /// uses the recorded listing, or else the directory's time.
    fn listing(
        &self,
        run: &LoadedRun,
        at: usize,
        path: &Bytes,
        worked: &dyn Fn(&[u8]) -> Time,
    ) -> Option<Reason> {
        let now = self.files.present.listing(path)?;
        let changed = Reason::DirectoryChanged(path.clone());
        let Some(then) = run.listings.get(&*now.real) else {
            let other = self.directory(path, worked)?;
            let nothing = self.views.is_module_search(run, at, path, &BTreeSet::new());
            return (!nothing).then_some(Reason::DirectoryChanged(other));
        };
        if *then == now.names {
            return None;
        }
        let appeared: BTreeSet<&Vec<u8>> = now.names.difference(then).into_tree();
        let nothing = self.views.is_module_search(run, at, path, &appeared);
        (!nothing).then_some(changed)
    }

    /// The directory, if it has changed since the recorded steps worked there.
    fn directory(&self, path: &[u8], worked: &dyn Fn(&[u8]) -> Time) -> Option<Bytes> {
        let path = Bytes::from(path);
        let now = self.files.present.ident(&path).ok()?;
        (now.mtime > worked(&path)).then_some(path)
    }
}

/// True if the file is the script that the activity runs.
fn is_script(run: &LoadedRun, at: usize, file: &Entity) -> bool {
    let script = script(&run.recording, at);
    let mut names = std::iter::once(&file.path).chain(&file.aliases);
    script.is_some_and(|script| names.any(|name| **name == *script))
}
