//! Finds the nodes that a filter's condition matches.
//!
//! In: a graph, and the nodes that former filters took. Out: the matching nodes, and those about
//! which the condition could not decide. Taken nodes never match.

use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::run::RunHeader;
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{Activity, ActivityId, Entity, EntityId};
use backstory_inspection::judging::JudgeProgram;
use backstory_query::Globs;
use backstory_vocabulary::Word;
use serde_json::Value;

use crate::filter::{Condition, Filter, PluginProgram, Subject};
use crate::judge::{JudgeFailure, Judged, Verdict, check, verdicts};
use crate::node_facts::{FILE_FIELDS, PROCESS_FIELDS, Uses, UsesOfEntities, of_file, of_process};
use crate::taken_nodes::TakenNodes;

/// The nodes of one subject, by number.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// The condition is true.
    pub certain: BTreeSet<u32>,
    /// The condition has no value.
    pub undecided: BTreeSet<u32>,
    /// Why some nodes are undecided: the first reason.
    pub why: Option<String>,
}

/// A graph with what former filters took.
pub(crate) struct Subjects<'g> {
    pub graph: &'g MemorySink,
    pub taken: &'g TakenNodes,
    pub header: &'g RunHeader,
}

impl Subjects<'_> {
    fn files(&self) -> impl Iterator<Item = &Entity> {
        let all = self.graph.entities.values();
        all.filter(|entity| !self.taken.entities.contains(&entity.id))
    }

    fn processes(&self) -> impl Iterator<Item = &Activity> {
        let all = self.graph.activities.values();
        all.filter(|activity| !self.taken.activities.contains(&activity.id))
    }

    /// The nodes that a filter's condition matches.
    pub fn matching(&self, filter: &Filter) -> Matches {
        let uses = needs_uses(filter).then(|| UsesOfEntities::of(self.graph));
        let uses = uses.unwrap_or_default();
        let of = |id: EntityId| uses.of_entity(id);
        let condition = &filter.condition;
        let by_patterns: BTreeSet<u32> = match filter.subject {
            Subject::File => {
                let files = self
                    .files()
                    .filter(|file| fits_file(condition, file, of(file.id)));
                files.map(|file| file.id.0).collect()
            }
            Subject::Process => {
                let processes = self.processes().filter(|one| fits_process(condition, one));
                processes.map(|one| one.id.0).collect()
            }
            Subject::Text => BTreeSet::new(),
        };
        let all = Matches {
            certain: by_patterns,
            ..Matches::default()
        };
        if let Some(mistake) = &filter.mistake {
            return Matches {
                undecided: self.numbers(filter.subject),
                why: Some(mistake.clone()),
                ..Matches::default()
            };
        }
        match &condition.expression {
            None => all,
            Some(expression) => {
                let program = JudgeProgram::Expression(expression.text.clone());
                match self.judged(filter, &program, &all.certain, &uses) {
                    Ok(verdicts) => by_expression(verdicts),
                    Err(failure) => Matches {
                        why: Some(expression_failure(filter, &failure)),
                        undecided: all.certain,
                        ..Matches::default()
                    },
                }
            }
        }
    }

    fn numbers(&self, subject: Subject) -> BTreeSet<u32> {
        match subject {
            Subject::File => self.files().map(|file| file.id.0).collect(),
            Subject::Process => self.processes().map(|one| one.id.0).collect(),
            Subject::Text => BTreeSet::new(),
        }
    }

    /// The decisions of a plug-in about nodes.
    pub fn by_plugin(
        &self,
        filter: &Filter,
        program: &PluginProgram,
        nodes: &BTreeSet<u32>,
    ) -> Result<BTreeMap<u32, Verdict>, JudgeFailure> {
        let program = match program {
            PluginProgram::Command(command) => JudgeProgram::Command(command.clone()),
            PluginProgram::Component(path) => JudgeProgram::Component(path.clone()),
        };
        let uses = UsesOfEntities::of(self.graph);
        self.judged(filter, &program, nodes, &uses)
    }

    fn judged(
        &self,
        filter: &Filter,
        program: &JudgeProgram,
        nodes: &BTreeSet<u32>,
        uses: &UsesOfEntities,
    ) -> Result<BTreeMap<u32, Verdict>, JudgeFailure> {
        let facts = |number: &u32| -> Option<(u32, Value)> {
            let facts = match filter.subject {
                Subject::Process => of_process(self.graph.activities.get(&ActivityId(*number))?),
                Subject::File | Subject::Text => {
                    let id = EntityId(*number);
                    of_file(self.graph.entities.get(&id)?, uses.of_entity(id))
                }
            };
            Some((*number, facts))
        };
        verdicts(
            program,
            &asked(filter, self.header),
            &mut nodes.iter().filter_map(facts),
        )
    }
}

fn asked<'q>(filter: &'q Filter, header: &'q RunHeader) -> Judged<'q> {
    Judged {
        filter: &filter.name,
        subject: filter.subject.word(),
        fields: match filter.subject {
            Subject::Process => &PROCESS_FIELDS,
            Subject::File | Subject::Text => &FILE_FIELDS,
        },
        header,
    }
}

/// The mistake in the expression of a filter, if it has one that can be found without a run.
pub(crate) fn mistake_in_expression(filter: &Filter) -> Option<String> {
    let expression = filter.condition.expression.as_ref()?;
    let program = JudgeProgram::Expression(expression.text.clone());
    let header = RunHeader::default();
    let failure = check(&program, &asked(filter, &header)).err()?;
    Some(expression_failure(filter, &failure))
}

/// A failure of an expression, with its position in the configuration.
fn expression_failure(filter: &Filter, failure: &JudgeFailure) -> String {
    match &filter.condition.expression {
        Some(expression) => expression.failure(failure),
        None => failure.to_string(),
    }
}

fn by_expression(verdicts: BTreeMap<u32, Verdict>) -> Matches {
    let mut matches = Matches::default();
    for (number, verdict) in verdicts {
        match verdict {
            Verdict::Failed(why) => {
                matches.undecided.insert(number);
                matches
                    .why
                    .get_or_insert(format!("its expression has no value: {why}"));
            }
            _ => {
                matches.certain.insert(number);
            }
        }
    }
    matches
}

fn needs_uses(filter: &Filter) -> bool {
    let condition = &filter.condition;
    filter.subject == Subject::File
        && (condition.program.is_some()
            || !condition.relations.is_empty()
            || condition.expression.is_some())
}

fn fits_file(condition: &Condition, file: &Entity, uses: Option<&Uses>) -> bool {
    let named = |globs: &Globs| {
        let mut names = std::iter::once(&file.path).chain(&file.aliases);
        names.any(|name| globs.matches(name))
    };
    let used_by = |globs: &Globs| {
        uses.is_some_and(|uses| {
            let mut programs = uses.programs.iter();
            programs.all(|path| path.as_ref().is_some_and(|path| globs.matches(path)))
        })
    };
    let related = |uses: &Uses| {
        let mut relations = uses.relations.iter();
        relations.all(|relation| condition.relations.contains(relation))
    };
    condition.path.as_ref().is_none_or(named)
        && (condition.kinds.is_empty() || condition.kinds.contains(&file.kind))
        && condition.program.as_ref().is_none_or(used_by)
        && (condition.relations.is_empty() || uses.is_some_and(related))
}

fn fits_process(condition: &Condition, process: &Activity) -> bool {
    condition.program.as_ref().is_none_or(|globs| {
        let path = process.exec_path.as_ref();
        path.is_some_and(|path| globs.matches(path))
    })
}
