//! The statements of an imported description, which name activities, entities and relations.
//!
//! In: statements that the importer ordered: a node is stated before a relation names it. Out: the
//! same nodes and edges. Nothing is concluded here.
//!
//! Invariant: a statement about a node that was not stated adds nothing. The run is then reported
//! as damaged, because no importer writes such a log.

use super::{CallContext, Fold};
use crate::described_rank;
use crate::marks::ATTRIBUTE;
use crate::model::{
    Activity, ActivityId, Certainty, Derived, Edge, Entity, EntityId, EntityKind, Inform, Informed,
    Interval, Relation, Sink,
};
use backstory_eventlog::Reason;
use backstory_eventlog::event::{Described, WordRole};

/// The nodes of a description, by the importer's numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct DescribedNodes {
    activities: Vec<ActivityId>,
    entities: Vec<EntityId>,
    /// The activity that was stated last. Its words follow it.
    present: Option<Activity>,
    /// The part of a word that the next record continues.
    word: Vec<u8>,
    /// The last activity has words that the sink does not have yet.
    has_news: bool,
}

impl DescribedNodes {
    fn activity(&self, number: u32) -> Option<ActivityId> {
        self.activities.get(number as usize).copied()
    }

    fn entity(&self, number: u32) -> Option<EntityId> {
        self.entities.get(number as usize).copied()
    }
}

impl<S: Sink> Fold<'_, S> {
    /// Adds the node or the edge of a statement.
    pub(super) fn described(
        &mut self,
        call: CallContext,
        statement: Described,
    ) -> Result<(), S::Error> {
        if !matches!(statement, Described::Word { .. }) {
            self.complete_described()?;
        }
        let added = match statement {
            Described::Activity { .. } => self.described_activity(call, &statement)?,
            Described::Word { .. } => self.described_word(statement),
            Described::Entity { .. } => self.described_entity(statement)?,
            Described::Edge { .. } => self.described_edge(call, &statement)?,
            Described::Inform { .. } | Described::Derived { .. } => {
                self.described_relation(&statement)?
            }
            Described::Note {
                activity,
                key,
                value,
            } => match self.described.activity(activity) {
                Some(id) => {
                    let payload = [&*key, b"\0", &*value].concat();
                    self.sink.extended(id, call.time, ATTRIBUTE, &payload)?;
                    Some(())
                }
                None => None,
            },
            Described::Rank { activity, place } => match self.described.activity(activity) {
                Some(id) => {
                    let kind = described_rank::KIND;
                    self.sink.extended(id, call.time, kind, &place)?;
                    Some(())
                }
                None => None,
            },
        };
        match added {
            Some(()) => Ok(()),
            None => {
                let what = "a statement is about a node that was not stated".to_owned();
                self.sink.unknown(&Reason::LogDamaged { what }.to_string())
            }
        }
    }

    /// Passes the last activity on with all its words.
    pub(super) fn complete_described(&mut self) -> Result<(), S::Error> {
        self.described.word.clear();
        match &self.described.present {
            Some(activity) if std::mem::take(&mut self.described.has_news) => {
                self.sink.activity(activity)
            }
            _ => Ok(()),
        }
    }

    fn described_activity(
        &mut self,
        call: CallContext,
        statement: &Described,
    ) -> Result<Option<()>, S::Error> {
        let &Described::Activity {
            number,
            parent,
            epoch,
            start,
            end,
            status,
            is_part,
            execed,
        } = statement
        else {
            return Ok(None);
        };
        if number as usize != self.described.activities.len() {
            return Ok(None);
        }
        let id = self.activities.without_epoch();
        self.described.activities.push(id);
        let exit = status.filter(|status| status & 0x7f == 0);
        let activity = Activity {
            id,
            parent: parent.and_then(|parent| self.described.activity(parent)),
            pid: call.pid,
            epoch,
            exec_path: None,
            argv: Vec::new(),
            env_set: Vec::new(),
            env_unset: Vec::new(),
            cwd: Box::default(),
            interval: Interval { start, end },
            exit: exit.map(|status| status >> 8 & 0xff),
            signal: status
                .map(|status| status & 0x7f)
                .filter(|signal| *signal != 0),
            execed,
            lookups_known: false,
            via: call.via,
        };
        self.sink.activity(&activity)?;
        if is_part {
            let (kind, payload) = (crate::nested::KIND, crate::nested::NESTED);
            self.sink.extended(id, start, kind, payload)?;
        }
        self.described.present = Some(activity);
        Ok(Some(()))
    }

    fn described_word(&mut self, statement: Described) -> Option<()> {
        let Described::Word {
            activity,
            role,
            text,
            more,
        } = statement
        else {
            return None;
        };
        let nodes = &mut self.described;
        let id = nodes.activities.get(activity as usize)?;
        let present = nodes.present.as_mut().filter(|one| one.id == *id)?;
        nodes.word.extend_from_slice(&text);
        if more {
            return Some(());
        }
        let word = std::mem::take(&mut nodes.word).into_boxed_slice();
        match role {
            WordRole::Argument => present.argv.push(word),
            WordRole::Program => present.exec_path = Some(word),
            WordRole::Directory => present.cwd = word,
        }
        nodes.has_news = true;
        Some(())
    }

    fn described_entity(&mut self, statement: Described) -> Result<Option<()>, S::Error> {
        let Described::Entity {
            number,
            kind,
            version,
            previous,
            last,
            path,
        } = statement
        else {
            return Ok(None);
        };
        let kind = EntityKind::ALL.get(usize::from(kind)).copied();
        let (Some(kind), true) = (kind, number as usize == self.described.entities.len()) else {
            return Ok(None);
        };
        let id = EntityId(self.entities);
        self.entities += 1;
        self.described.entities.push(id);
        self.sink.entity(&Entity {
            id,
            kind,
            path,
            aliases: Vec::new(),
            by_name: Vec::new(),
            version,
            previous: previous
                .filter(|before| *before < number)
                .and_then(|before| self.described.entity(before)),
            ident: None,
            last,
        })?;
        Ok(Some(()))
    }

    fn described_edge(
        &mut self,
        call: CallContext,
        statement: &Described,
    ) -> Result<Option<()>, S::Error> {
        let &Described::Edge {
            activity,
            entity,
            relation,
            is_certain,
            start,
            end,
        } = statement
        else {
            return Ok(None);
        };
        let relation = Relation::ALL.get(usize::from(relation)).copied();
        let ends = (
            self.described.activity(activity),
            self.described.entity(entity),
            relation,
        );
        let (Some(activity), Some(entity), Some(relation)) = ends else {
            return Ok(None);
        };
        let certainty = match is_certain {
            true => Certainty::Seen,
            false => Certainty::Possible,
        };
        self.sink.edge(&Edge {
            activity,
            entity,
            relation,
            interval: Interval { start, end },
            certainty,
            via: call.via,
        })?;
        Ok(Some(()))
    }

    fn described_relation(&mut self, statement: &Described) -> Result<Option<()>, S::Error> {
        let nodes = &self.described;
        match *statement {
            Described::Inform {
                from,
                to,
                why,
                time,
            } => {
                let why = Informed::ALL.get(usize::from(why)).copied();
                let (Some(from), Some(to), Some(why)) =
                    (nodes.activity(from), nodes.activity(to), why)
                else {
                    return Ok(None);
                };
                self.sink.inform(&Inform {
                    from,
                    to,
                    why,
                    time,
                })?;
            }
            Described::Derived {
                entity,
                from,
                activity,
                time,
            } => {
                let (Some(entity), Some(from), Some(activity)) = (
                    nodes.entity(entity),
                    nodes.entity(from),
                    nodes.activity(activity),
                ) else {
                    return Ok(None);
                };
                self.sink.derived(&Derived {
                    entity,
                    from,
                    activity,
                    time,
                })?;
            }
            _ => return Ok(None),
        }
        Ok(Some(()))
    }
}
