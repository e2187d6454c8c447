//! The uses of a descriptor, which the fold derives once an epoch lets the descriptor go.
//!
//! In: a descriptor that is closed, passed over an exec, or left at the end. Out: edges to every
//! version that the epoch can have read or written through it.

use super::descriptors::at;
use super::entities::NamedEntity;
use super::{CallContext, Fold, SLACK};
use crate::activity::EntityUse;
use crate::model::{Certainty, EntityKind, Interval, Relation, Sink};
use crate::object::ObjectId;
use crate::paths::PathId;
use crate::process::{Descriptor, NAMELESS, OpenFile};
use crate::serial::Serial;
use backstory_eventlog::event::Time;
use backstory_files::Ident;

/// The highest of standard input, output and error. The streams of libc use these descriptors where
/// the recorder does not see it (stdin(3)).
const STANDARD: i32 = 2;

/// True for standard input, output and error.
pub(super) fn is_standard(fd: i32) -> bool {
    (0..=STANDARD).contains(&fd)
}

impl<S: Sink> Fold<'_, S> {
    /// Counts a descriptor that now exists.
    pub(super) fn retain(&mut self, held: &Descriptor) {
        let Some(what) = held.what.clone() else {
            return;
        };
        self.object_mut(what.source).holders += 1;
        if what.reads {
            self.object_mut(what.source).now_mut().read = true;
        }
        let target = self.object_mut(what.target);
        target.holders += 1;
        target.writers += u32::from(what.writes);
    }

    /// Notes that an epoch lets a descriptor go. The time in which the epoch can have used the
    /// descriptor is known now.
    pub(super) fn release(
        &mut self,
        epoch: Serial,
        fd: i32,
        held: Descriptor,
        time: Time,
        ident: Option<Ident>,
    ) -> Result<(), S::Error> {
        let Some(what) = held.what.clone() else {
            return Ok(());
        };
        let call = CallContext {
            time,
            pid: 0,
            tid: 0,
            epoch,
            via: what.via,
            outcome: backstory_eventlog::event::Outcome::Done(0),
            ident: None,
            resolved: false,
        };
        if what.looked {
            self.release_looked(call, &held, &what)?;
        }
        self.can_have_moved_data(call, fd, &held, &what)?;
        self.let_go(&what, time, ident)
    }

    /// Adds edges to every version that the epoch can have read or written through a descriptor
    /// until `call.time`.
    pub(super) fn can_have_moved_data(
        &mut self,
        call: CallContext,
        fd: i32,
        held: &Descriptor,
        what: &OpenFile,
    ) -> Result<(), S::Error> {
        let reads = (Relation::Read, what.source, held.source_from, held.read);
        let writes = (Relation::Write, what.target, held.target_from, held.written);
        let only_reads = what.reads && !what.writes;
        for (can, (relation, object, first, seen), only) in [
            (what.reads, reads, only_reads),
            (what.writes, writes, false),
        ] {
            if can
                && let Some((start, certainty)) = self.can_have(
                    self.is_hidden(call.epoch, fd, relation),
                    held,
                    what,
                    seen,
                    only,
                )
                && (relation == Relation::Read
                    || certainty == Certainty::Seen
                    || self.can_have_changed(call.epoch, object, start))
            {
                let interval = Interval {
                    start,
                    end: call.time.max(start),
                };
                self.spread(
                    call, object, first, held.path, relation, interval, certainty,
                )?;
            }
        }
        Ok(())
    }

    /// False if the file surely did not change since `start`, by its times after the run. They say
    /// nothing if the machine crashed, or of a process without a recorder. Such a process may have
    /// written through a mapping of a file in memory (tmpfs).
    fn can_have_changed(&self, epoch: Serial, object: ObjectId, start: Time) -> bool {
        let object = self.object(object);
        !self.saw_end
            || !self.is_recorded(epoch)
            || object.kind != EntityKind::File
            || !object.unchanged_since(start, SLACK)
    }

    /// Whether the recorder sees the calls of the epoch.
    pub(super) fn is_recorded(&self, epoch: Serial) -> bool {
        self.epochs[epoch as usize]
            .as_ref()
            .is_some_and(|epoch| epoch.recorded)
    }

    pub(super) fn let_go(
        &mut self,
        what: &OpenFile,
        time: Time,
        ident: Option<Ident>,
    ) -> Result<(), S::Error> {
        if let Some(ident) = ident.filter(|_| self.object(what.target).key.is_none()) {
            self.identify(what.target, ident, false);
        }
        let target = self.object_mut(what.target);
        target.holders = target.holders.saturating_sub(1);
        if what.writes {
            target.writers = target.writers.saturating_sub(1);
            if target.writers == 0 && target.versioned() {
                self.close_version(what.target, time, ident);
            }
        }
        let source = self.object_mut(what.source);
        source.holders = source.holders.saturating_sub(1);
        self.forget(what.source)?;
        self.forget(what.target)
    }

    pub(super) fn release_looked(
        &mut self,
        call: CallContext,
        held: &Descriptor,
        what: &OpenFile,
    ) -> Result<(), S::Error> {
        if let Some(listed) = held.listed {
            let interval = Interval {
                start: listed,
                end: call.time.max(listed),
            };
            let entity = self.entity_now(call, what.source, held.path)?;
            self.edge(
                call.epoch,
                entity,
                Relation::List,
                interval,
                Certainty::Seen,
                what.via,
            );
        } else if held.own {
            let entity = self.entity_now(call, what.source, held.path)?;
            let certainty = if held.doubtful {
                Certainty::Possible
            } else {
                Certainty::Seen
            };
            self.edge(
                call.epoch,
                entity,
                Relation::Stat,
                at(held.since),
                certainty,
                what.via,
            );
            if held.may_be_listed {
                let interval = Interval {
                    start: held.since,
                    end: call.time.max(held.since),
                };
                let (possible, via) = (Certainty::Possible, what.via);
                self.edge(call.epoch, entity, Relation::List, interval, possible, via);
            }
        }
        Ok(())
    }

    /// True if a use of a descriptor may be unseen. In a recorded process, libc's streams alone use
    /// descriptors unseen: `stdin` only reads, and `stdout` and `stderr` only write.
    fn is_hidden(&self, epoch: Serial, fd: i32, relation: Relation) -> bool {
        let reads = fd == 0;
        fd <= NAMELESS
            || !self.is_recorded(epoch)
            || is_standard(fd) && reads == (relation == Relation::Read)
    }

    /// The moment since which data can have gone through a descriptor in one direction, and whether
    /// that is certain. `None` if no data did.
    ///
    /// - An open for reading only counts as a read.
    /// - Otherwise a read or write counts if the recorder saw it. The recorder cannot see libc's
    ///   own buffers. They can only be behind a file that the epoch opened itself, or behind the
    ///   standard descriptors (`hidden`).
    /// - A connection that carried no byte was not used, whatever was not seen. An example is one
    ///   that was refused.
    /// - Without a recorder, every use is possible.
    /// - A file was open when the log was cut off. A use of it is possible, although the log has no
    ///   read or write.
    pub(super) fn can_have(
        &self,
        hidden: bool,
        held: &Descriptor,
        what: &OpenFile,
        seen: Option<Time>,
        only: bool,
    ) -> Option<(Time, Certainty)> {
        let kind = self.object(what.source).kind;
        let stream = matches!(kind, EntityKind::Pipe | EntityKind::Socket);
        if held.doubtful {
            return Some((held.since, Certainty::Possible));
        }
        if let Some(first) = seen {
            let start = if hidden || held.own && !stream {
                held.since
            } else {
                first
            };
            return Some((start, Certainty::Seen));
        }
        if held.carried_nothing {
            return None;
        }
        if self.cut_off && kind == EntityKind::File {
            return Some((held.since, Certainty::Possible));
        }
        if held.own && !stream {
            let certainty = if only {
                Certainty::Seen
            } else {
                Certainty::Possible
            };
            return Some((held.since, certainty));
        }
        if kind == EntityKind::Device {
            return None;
        }
        (hidden || what.source != what.target && held.own)
            .then_some((held.since, Certainty::Possible))
    }

    /// Adds an edge for every version from `first` to the present one. The edge to the first
    /// version has the given certainty. The others are possible.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn spread(
        &mut self,
        call: CallContext,
        object: ObjectId,
        first: u32,
        path: PathId,
        relation: Relation,
        interval: Interval,
        certainty: Certainty,
    ) -> Result<(), S::Error> {
        let last = self.object(object).now().number;
        let writes = relation == Relation::Write;
        for number in first..=last {
            let began = self.object_mut(object).kept(number).began;
            let start = if number == first {
                interval.start
            } else {
                interval.start.max(began)
            };
            let certainty = if number == first {
                certainty
            } else {
                Certainty::Possible
            };
            // A rename gives a version another name. Content written before belongs to the name
            // that the file had then.
            let path = if number == first {
                path
            } else {
                crate::paths::ROOT
            };
            let used = if writes && self.object(object).linked {
                self.first_node(call, object, number, path)?
            } else {
                self.entity_used(call, object, number, path)?
            };
            self.note(used, relation, certainty);
            let entity = used.id;
            let interval = Interval {
                start,
                end: interval.end,
            };
            if let Some(epoch) = &mut self.epochs[call.epoch as usize] {
                // A write that was seen has its own edge already. The close of the file adds only
                // the time to that edge.
                let (via, opened) = (call.via, writes);
                epoch.edges.add(EntityUse {
                    entity,
                    relation,
                    interval,
                    certainty,
                    via,
                    opened,
                });
            }
            self.used(call.epoch, entity, relation);
            if writes {
                let version = self.object_mut(object).kept(number);
                version.writers.add(call.epoch);
                version.written |= certainty == Certainty::Seen;
            }
        }
        Ok(())
    }

    /// The node that content written through the name `path` goes to. All names of a file share the
    /// written content, so it has one node.
    pub(super) fn written(
        &mut self,
        call: CallContext,
        object: ObjectId,
        path: PathId,
    ) -> Result<NamedEntity, S::Error> {
        if !self.object(object).linked {
            return self.entity_now(call, object, path);
        }
        let number = self.object(object).now().number;
        self.first_node(call, object, number, path)
    }
}
