//! Decides whether the commands of a run may stand alone, or only the whole command of the run.
//!
//! A command of a run may stand alone if nothing that may change decided on its words, its
//! environment and its existence. The activities that decided on it ([`Deciders`]) then took in
//! nothing but their own text and files of the system. They used no output and no status of
//! another program. Otherwise the recorded words are frozen: `head -n $(cat n)` is `head -n 4` only
//! as long as `n` has a 4.
//!
//! In: deciders and steps. Out: a [`Decision`] for each run whose commands may not stand alone.
//! `docs/export.md` states the rules.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{Edge, Entity, EntityId, EntityKind, Informed, Relation};
use backstory_workflow::paths::{absolute, base_name, is_below_kernel, is_tool, parent};
use backstory_workflow::recording::{Recording, split};
use backstory_workflow::selection::WholeCommand;
use backstory_workflow::steps::{
    ShellCall, Step, helps_launcher, is_builder, is_one, is_shell, outer_input, program, script,
};
use backstory_workflow::tools::knowledge;

use crate::Result;
use crate::deciders::{Deciders, key};
use crate::decision::{Decision, Fact};
use crate::derived_views::ViewRule;
use crate::loaded_runs::{CountedUse, Heard, LoadedRun};
use crate::looks;
use crate::reductions;
use crate::step_inputs::InputJudge;

/// The decisive facts of each run, by the run's number. The one that tells most comes first. A run
/// that is not there has commands that may stand alone.
pub fn decisions(
    runs: &[Rc<LoadedRun>],
    steps: &[Step],
    deciders: &Deciders,
    inputs: &InputJudge<'_>,
) -> Result<BTreeMap<usize, BTreeSet<Decision>>> {
    let mut found: BTreeMap<usize, BTreeSet<Decision>> = BTreeMap::new();
    let facts = runs.iter().enumerate().map(|(number, run)| {
        let here = deciders.all.iter().filter(|(run, _)| *run == number);
        let here = here.map(|(_, at)| *at).collect();
        RunFacts::of(run, inputs, here)
    });
    let facts: Vec<RunFacts<'_>> = facts.collect();
    for &(number, at) in &deciders.all {
        let key = key(runs, number, at);
        let until = deciders.behind.until[&key];
        let counts = |one: &&CountedUse| deciders.behind.counts(key, &one.taking);
        let here = found.entry(number).or_default();
        here.extend(facts[number].of_decider(at, until, counts));
    }
    for &(number, at) in steps.iter().flat_map(|step| &step.members) {
        let here = found.entry(number).or_default();
        here.extend(facts[number].of_member(at)?);
    }
    for (number, facts) in facts.iter().enumerate() {
        let own = steps.iter().filter(|step| step.run == number);
        let here = found.entry(number).or_default();
        here.extend(facts.touched(own));
    }
    found.retain(|_, facts| !facts.is_empty());
    Ok(found)
}

/// The whole command of a run on whose commands these facts decided.
pub fn whole_command(run: &LoadedRun, decisions: &BTreeSet<Decision>) -> WholeCommand {
    WholeCommand {
        printed: Vec::new(),
        because: decisions.first().map(Decision::to_string),
        looks: decisions.iter().any(|decision| decision.fact.is_look()),
        lost: lost_input(&run.recording),
    }
}

/// The standard input that a run read and that is gone, in words.
fn lost_input(recording: &Recording) -> Option<&'static str> {
    let input = outer_input(recording)?;
    let what = match input.kind {
        EntityKind::Pipe => "a pipe",
        EntityKind::Socket => "a socket",
        EntityKind::Device if is_terminal(&input.path) => "a terminal",
        _ => return None,
    };
    let reads = |edge: &Edge| edge.entity == input.id && edge.relation == Relation::Read;
    recording.edges.iter().flatten().any(reads).then_some(what)
}

fn is_terminal(path: &[u8]) -> bool {
    path.starts_with(b"/dev/pts/") || path.starts_with(b"/dev/tty")
}

/// Programs of the system without a clock, random numbers or a look at the machine. Two executions
/// of `mktemp` give different names to the same thing.
const PURE: [&[u8]; 19] = [
    b"basename",
    b"bc",
    b"cat",
    b"cut",
    b"dirname",
    b"echo",
    b"expr",
    b"grep",
    b"head",
    b"mktemp",
    b"paste",
    b"printf",
    b"sed",
    b"seq",
    b"sort",
    b"tail",
    b"tr",
    b"uniq",
    b"wc",
];

/// Finds the facts that decided on one run's commands.
struct RunFacts<'r> {
    run: &'r LoadedRun,
    inputs: &'r InputJudge<'r>,
    deciders: HashSet<usize>,
    /// The files that members of steps read. A builder reads them, too, to compare their contents.
    read_by_steps: HashSet<EntityId>,
    /// The names of the programs that were started. A look-up of one is the search for a command.
    commands: HashSet<&'r [u8]>,
    /// The directories in which programs ran. A look at one is a change of the directory.
    directories: HashSet<&'r [u8]>,
}

impl<'r> RunFacts<'r> {
    fn of(
        run: &'r LoadedRun,
        inputs: &'r InputJudge<'r>,
        deciders: HashSet<usize>,
    ) -> RunFacts<'r> {
        let activities = run.recording.activities.iter();
        let names = activities.clone().flat_map(|activity| {
            let called = activity.argv.first().map(|name| &**name);
            [called, activity.exec_path.as_deref()]
        });
        let edges = run.recording.edges.iter().enumerate();
        let members = edges.filter(|(at, _)| !deciders.contains(at));
        let reads = members.flat_map(|(_, edges)| edges.iter());
        let reads = reads.filter(|edge| edge.relation == Relation::Read);
        RunFacts {
            run,
            inputs,
            read_by_steps: reads.map(|edge| edge.entity).collect(),
            deciders,
            commands: names.flatten().map(base_name).collect(),
            directories: activities.map(|activity| &*activity.cwd).collect(),
        }
    }

    fn recording(&self) -> &'r Recording {
        &self.run.recording
    }

    /// The facts that a decider took in until a moment. `counts`: true for the uses that count.
    fn of_decider(
        &self,
        at: usize,
        until: Time,
        counts: impl Fn(&&CountedUse) -> bool,
    ) -> Vec<Decision> {
        if self.is_packaging(at) || helps_launcher(self.recording(), at) {
            return Vec::new();
        }
        let uses = reductions::counted_uses(self.run, at);
        let uses = uses.iter().filter(counts);
        let uses = uses.filter_map(|one| self.of_use(at, &one.edge));
        let heard = self.run.heard(at).iter();
        let heard = heard.filter(|heard| heard.time <= until && self.is_used(at, heard, until));
        let heard = heard.map(|heard| self.decision(at, Fact::Status, self.name(heard.from)));
        let option = is_shell(self.recording(), at)
            && (self.run.texts).mentions(self.recording(), at, &[b"pipefail"]);
        let option = option.then(|| self.decision(at, Fact::Option, b"pipefail"));
        uses.chain(heard).chain(option).collect()
    }

    /// True for a builder that makes files itself (`dpkg-buildpackage`, `npm`), and its helpers.
    /// `tools.toml` says that the commands below it are steps.
    fn is_packaging(&self, at: usize) -> bool {
        let recording = self.recording();
        let mut line = std::iter::once(at).chain(recording.ancestors(at));
        let builder = line.find(|at| is_builder(recording, *at));
        let helps = |at: usize| {
            let words = recording.activities[at].argv.iter().take(2);
            let mut names = words.map(|word| base_name(word));
            names.any(|name| name.starts_with(b"dh_"))
        };
        builder.is_some_and(|builder| !self.run.is_driver(builder) || helps(builder))
    }

    /// True below a builder that makes nothing itself: its rules, and what `$(shell …)` prints.
    fn is_built(&self, at: usize) -> bool {
        let mut line = std::iter::once(at).chain(self.recording().ancestors(at));
        line.any(|at| self.run.is_driver(at))
    }

    /// True if the output of an activity depends on its words and the files that it reads alone.
    fn only_computes(&self, at: usize) -> bool {
        let activity = &self.recording().activities[at];
        activity.epoch == 0
            || PURE.contains(&self.name(at)) && is_tool(program(self.recording(), at))
    }

    fn of_use(&self, at: usize, edge: &Edge) -> Option<Decision> {
        let entity = self.recording().entity(edge.entity);
        let path = &entity.path;
        if edge.relation == Relation::Read && is_channel(entity.kind) {
            // The files that the writers read count for themselves.
            let mut writers = self.run.makers(edge.entity).iter().map(|(maker, _)| *maker);
            let writer = writers.find(|&maker| maker != at && !self.only_computes(maker));
            let is_quiet = self.is_built(at) || self.is_typed_text(at, entity);
            let is_quiet = is_quiet || writer.is_none() && !self.run.makers(edge.entity).is_empty();
            let name = writer.map_or(&**path, |writer| self.name(writer));
            return (!is_quiet).then(|| self.decision(at, Fact::Output, name));
        }
        if !path.starts_with(b"/") || is_below_kernel(path) || is_tool(path) {
            return None;
        }
        if self.inputs.views.rule(self.run, at, path) == ViewRule::Nothing {
            return None;
        }
        let fact = match edge.relation {
            Relation::Read | Relation::Execute if entity.kind == EntityKind::File => {
                let is_quiet = self.is_text(at, entity)
                    || self.is_decided(entity)
                    || self.run.is_driver(at) && self.read_by_steps.contains(&entity.id);
                (!is_quiet).then_some(Fact::Read)
            }
            Relation::List => self.is_listed(at, path).then_some(Fact::Listed),
            Relation::Missing | Relation::Stat | Relation::Link => {
                self.is_looked_at(at, edge).then_some(Fact::Looked)
            }
            _ => None,
        };
        fact.map(|fact| self.decision(at, fact, path))
    }

    /// True if deciders alone made a file. Their own uses count for themselves.
    fn is_decided(&self, file: &Entity) -> bool {
        let makers = self.run.makers(file.id);
        let mut all = makers.iter().map(|(maker, _)| maker);
        !makers.is_empty() && all.all(|maker| self.deciders.contains(maker))
    }

    /// True if a file is text that the activity interprets, or the text of a program above it.
    fn is_text(&self, at: usize, file: &Entity) -> bool {
        let recording = self.recording();
        let is_named = |at: usize| {
            let mut names = std::iter::once(&file.path).chain(&file.aliases);
            let script = script(recording, at);
            script.is_some_and(|script| names.any(|name| **name == *script))
        };
        let mut line = std::iter::once(at).chain(recording.ancestors(at));
        // A shell reads a script of functions.
        let endings: [&[u8]; 3] = [b".sh", b".bash", b".ksh"];
        let is_library =
            is_shell(recording, at) && endings.iter().any(|end| file.path.ends_with(end));
        is_library
            || self.is_rules_file(at, file)
            || line.any(|at| is_named(at) || self.is_typed_text(at, file))
    }

    /// True if a builder read a file that its words name, or whose name says that it has rules. The
    /// text of such a file is like that of a script. Another one has settings: `include config`.
    fn is_rules_file(&self, at: usize, file: &Entity) -> bool {
        let activity = &self.recording().activities[at];
        let names = || std::iter::once(&file.path).chain(&file.aliases);
        let is_named = |word: &Bytes| names().any(|name| **name == *absolute(word, &activity.cwd));
        let has_rules = || {
            let name = base_name(&file.path);
            let lower = name.to_ascii_lowercase();
            let endings: [&[u8]; 7] = [
                b".mk", b".make", b".ninja", b".am", b".in", b".cmake", b".smk",
            ];
            let starts: [&[u8]; 3] = [b"makefile", b"gnumakefile", b"cmakelists"];
            endings.iter().any(|ending| name.ends_with(ending))
                || starts.iter().any(|start| lower.starts_with(start))
                || lower.ends_with(b"file")
        };
        self.run.is_driver(at) && (activity.argv.iter().any(is_named) || has_rules())
    }

    /// True if an activity reads its commands from its standard input, and this is it.
    fn is_typed_text(&self, at: usize, input: &Entity) -> bool {
        let recording = self.recording();
        let mut words = recording.activities[at]
            .argv
            .iter()
            .skip(1)
            .map(|word| &**word);
        let name = program(recording, at);
        let reads = match is_shell(recording, at) {
            true => matches!(ShellCall::of(words), ShellCall::Input),
            false => {
                is_one(name, &knowledge().programs.interpreters) && words.all(|word| word == b"-")
            }
        };
        reads && self.run.is_standard_input(at, input.id)
    }

    /// True if the names in a directory decide something.
    fn is_listed(&self, at: usize, directory: &Bytes) -> bool {
        let views = self.inputs.views;
        if views.is_module_search(self.run, at, directory, &BTreeSet::new()) {
            return false;
        }
        let names = self.run.listings.get(&**directory);
        let mut names = names.into_iter().flat_map(|listing| &listing.names);
        let has_rules = |file: &Entity| self.is_rules_file(at, file);
        !self.run.is_driver(at) || {
            let texts = &self.run.texts;
            let rules = texts.certain_rules(self.recording(), at, has_rules);
            names.any(|name| rules.may_match(name))
        }
    }

    /// True if a look-up decides something. A shell without a condition only searches for commands
    /// and directories.
    fn is_looked_at(&self, at: usize, edge: &Edge) -> bool {
        let (run, recording) = (self.run, self.recording());
        let entity = recording.entity(edge.entity);
        let path = &entity.path;
        let is_search = self.commands.contains(base_name(path))
            || entity.kind == EntityKind::Directory && self.directories.contains(&**path)
            || is_shell(recording, at) && run.texts.ignores_statuses(recording, at);
        if is_search || run.is_driver(at) || self.is_text(at, entity) {
            return false;
        }
        match edge.relation {
            // A file that the run made after the look-up.
            Relation::Missing => run.left(path).is_none(),
            _ if entity.kind == EntityKind::Directory => {
                // The run made it, or had removed it, or made another one below it.
                if is_one(
                    program(recording, at),
                    &["mkdir".to_owned(), "install".to_owned()],
                ) || run.is_made(entity)
                    || run.left(path).is_some()
                {
                    return false;
                }
                let script = script(recording, at);
                !script.is_some_and(|script| parent(&script).starts_with(path))
                    && looks::counts(run, at, edge)
            }
            _ => looks::counts(run, at, edge),
        }
    }

    /// True if the activity went by something that it heard.
    fn is_used(&self, at: usize, heard: &Heard, until: Time) -> bool {
        let recording = self.recording();
        if !reductions::hears(self.run, at, heard, until, self.inputs.files.present) {
            return false;
        }
        let answers = &knowledge().programs.answers_by_status;
        let is_computed =
            |at: usize| self.only_computes(at) && !is_one(program(recording, at), answers);
        // A part of a shell is a decider itself.
        let is_fork = |at: usize| {
            let child = &recording.activities[at];
            child.epoch == 0 && !child.execed && is_shell(recording, at)
        };
        // A builder ends with another status only after an error, as a compiler does. Under
        // `set -e` the commands are those of a script that went well.
        let is_success = heard.why == Informed::Wait
            && recording.activities[heard.from].exit == Some(0)
            && (is_builder(recording, heard.from)
                || is_fork(heard.from)
                || is_computed(heard.from)
                || is_shell(recording, at) && self.run.texts.only_ends_by_status(recording, at));
        !is_success
    }

    /// The facts that make the words of a step's member wrong or incomplete.
    fn of_member(&self, at: usize) -> Result<Vec<Decision>> {
        let recording = self.recording();
        let mut found = Vec::new();
        let commands = self.run.commands()?;
        let input = recording.standard[at]
            .input
            .map(|end| recording.entity(end.entity));
        let mut sharers = self.run.offset_sharers(at);
        if let Some(input) = input.filter(|input| input.kind == EntityKind::File)
            && sharers.any(|other| !commands.are_joined(at, other))
        {
            found.push(self.decision(at, Fact::Shared, &input.path));
        }
        let outer = outer_input(recording).filter(|input| input.kind == EntityKind::File);
        let mut edges = recording.edges[at].iter();
        if let Some(outer) = outer
            && edges.any(|edge| edge.entity == outer.id && edge.relation == Relation::Read)
        {
            found.push(self.decision(at, Fact::OuterInput, &outer.path));
        }
        let link = self.linked_directory(at);
        found.extend(link.map(|link| self.decision(at, Fact::Link, &link)));
        found.extend(
            self.inherited(at)
                .map(|path| self.decision(at, Fact::Descriptor, path)),
        );
        Ok(found)
    }

    /// The changes of attributes of a step's outputs by activities that are no members of it. Such
    /// a change influences no content, so the search does not find what decided on it.
    fn touched<'s>(&self, steps: impl Iterator<Item = &'s Step>) -> Vec<Decision> {
        let (recording, mut found) = (self.recording(), Vec::new());
        let makers = steps.flat_map(|step| step.outputs.iter().map(move |path| (path, step)));
        let makers: HashMap<&Bytes, &Step> = makers.collect();
        let all = recording.edges.iter().enumerate();
        // A builder sets the times of what its commands made.
        for (at, edges) in all.filter(|(at, _)| !self.run.is_driver(*at)) {
            for edge in edges.iter().filter(|edge| edge.relation == Relation::Meta) {
                let path = &recording.entity(edge.entity).path;
                let is_member = |step: &&Step| step.members.iter().any(|(_, member)| *member == at);
                if makers.get(path).is_some_and(|step| !is_member(step)) {
                    found.push(self.decision(at, Fact::Touched, path));
                }
            }
        }
        found
    }

    /// The name of the activity's directory, if a shell changed into it through a symbolic link.
    /// `PWD` then has a name that is not the directory's own.
    fn linked_directory(&self, at: usize) -> Option<Bytes> {
        let recording = self.recording();
        let activity = &recording.activities[at];
        if activity.epoch == 0 || *activity.cwd == *recording.cwd() {
            return None;
        }
        let (set, _) = recording.environment(at);
        let value = |all: &[Bytes]| {
            let mut pairs = all.iter().filter_map(|pair| split(pair));
            let found = pairs.find(|(name, _)| *name == b"PWD");
            found.map(|(_, value)| value.to_vec())
        };
        let now = value(&set)?;
        // The caller's own directory may have been reached through a link.
        let before = value(&recording.details.environment).unwrap_or_default();
        let real = match now.strip_prefix(&*before) {
            Some(rest) if !before.is_empty() => [recording.cwd(), rest].concat(),
            _ => now.clone(),
        };
        let is_own = |directory: &Bytes| **directory == *real || **directory == *now;
        let above = recording
            .ancestors(at)
            .map(|at| &recording.activities[at].cwd);
        let is_known = std::iter::once(&activity.cwd).chain(above).any(is_own);
        (!is_known).then(|| now.into())
    }

    /// A file that the activity wrote to, and that another program opened for it. The standard
    /// descriptors are left out.
    fn inherited(&self, at: usize) -> Option<&'r Bytes> {
        let recording = self.recording();
        let own = std::iter::once(at).chain(recording.ancestors(at));
        let ends: HashSet<&Bytes> = own
            .flat_map(|at| recording.standard[at].all())
            .flatten()
            .map(|end| &recording.entity(end.entity).path)
            .collect();
        let mut edges = recording.edges[at].iter();
        edges.find_map(|edge| {
            let entity = recording.entity(edge.entity);
            let is_given = edge.relation == Relation::Write
                && entity.kind == EntityKind::File
                && !is_tool(&entity.path)
                && !ends.contains(&entity.path)
                && (recording.ancestors(at))
                    .any(|above| recording.given.contains(&(above, entity.id)));
            is_given.then_some(&entity.path)
        })
    }

    fn decision(&self, at: usize, fact: Fact, subject: &[u8]) -> Decision {
        let subject = backstory_workflow::paths::relative(subject, self.recording().cwd());
        Decision {
            fact,
            subject: subject.into(),
            program: self.name(at).into(),
        }
    }

    /// The name of an activity's program.
    fn name(&self, at: usize) -> &'r [u8] {
        base_name(program(self.recording(), at))
    }
}

fn is_channel(kind: EntityKind) -> bool {
    matches!(kind, EntityKind::Pipe | EntityKind::Socket)
}
