//! The fold: replays the events of a run one by one, and gives a sink the nodes and edges that
//! follow.
//!
//! [`Fold`] is the state of the run at the time of the last event. State that one concern alone
//! needs is a type of its own, in the file of that concern: [`symbolic_links`], [`channels`],
//! [`descriptor_lists`], [`final_state`], [`removed_links`], the activity ids in [`epochs`], and the
//! ended processes in [`endings`]. The methods of such a type get other state as arguments.
//!
//! The other state is shared: processes, epochs, objects, names and the sink. Nearly every
//! operation changes several of these, and an edge can announce nodes or give a looked-up name its
//! object. So each file adds the methods of one concern to `Fold`. No event is folded inside
//! another one. `apply` in this file names the method of each operation. The method is in the file
//! of the same row:
//!
//! | concern | operations | files |
//! | --- | --- | --- |
//! | from the path that a program wrote to an absolute path | `Chdir`, `Chroot`, `Mount`, `Pivot`, `Namespace` | [`path_walk`], [`symbolic_links`], [`directories`], [`mounts`] |
//! | the file that a path leads to | `LinkText` | [`names`], [`identity`], [`final_state`], [`removed_links`] |
//! | nodes, versions and edges | – | [`entities`], [`versions`], [`last_versions`] |
//! | opens, and the descriptors that they return | `Open`, `Close`, `CloseRange`, `Dup`, `Cloexec` | [`opening`], [`descriptors`], [`release`] |
//! | descriptors whose open was not observed | `HeldDescriptor` | [`inherited`], [`descriptor_lists`], [`unseen_pipes`] |
//! | uses of a file's content | `Read`, `Write`, `Map`, `Copy`, `Truncate` | [`access`] |
//! | look-ups and changes of status | `Stat`, `Access`, `Readlink`, `List`, `Load`, `Meta` | [`lookups`], [`looked_at`], [`status`] |
//! | names | `Link`, `Symlink`, `Unlink`, `Mkdir`, `Mknod`; `Rename` | [`naming`]; [`renames`], [`moving`] |
//! | processes | `Start`, `Born`, `Fork`, `Kill`; `Wait`, `Exit`, `Gone`; `Exec` | [`life`]; [`endings`]; [`programs`], [`next_epoch`], [`interpreters`], [`epochs`], [`standard`] |
//! | activities, things and attributes that a program names | – | [`disclosed`], [`nesting`] |
//! | pipes and sockets | `Pipe`, `Socket`, `Connect`, `Bind`, `Accept`, `Pass`, `Memfd` | [`channels`], [`passing`], [`socket_address`], [`ssh_channels`] |
//! | a source's own activities and entities | `Work`, `Resource` | [`resources`] |
//! | the statements of an imported description | `Described` | [`described`] |
//! | what has changed, for a run that goes on | – | [`news`] |
//! | the network | `Datagram`, `Traffic`, `Ends`, `Resolve` | [`network`] |
//!
//! Absent: I/O, and clocks.

mod access;
mod call_context;
mod channels;
mod described;
mod descriptor_lists;
mod descriptors;
mod directories;
mod disclosed;
mod endings;
mod entities;
mod epochs;
mod final_state;
mod function_buffers;
mod function_values;
mod functions;
mod identity;
mod inherited;
mod interpreters;
mod last_versions;
mod life;
mod looked_at;
mod lookups;
mod mounts;
mod moving;
mod names;
mod naming;
mod nesting;
mod network;
mod news;
mod next_epoch;
mod opening;
mod passing;
mod path_walk;
mod programs;
mod release;
mod removed_links;
mod renames;
mod resources;
mod socket_address;
mod ssh_channels;
mod standard;
mod status;
mod symbolic_links;
mod unseen_pipes;
mod versions;

use backstory_eventlog::Reason;
use backstory_eventlog::event::{Event, Op, Pid, Time};
use backstory_eventlog::reason::{opens_memory, undecoded};
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::CLOCK_GRANULARITY;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::FinalState;
use crate::activity::Epoch;
use crate::model::{EntityId, Sink};
use crate::object::{ObjectId, TrackedObject};
use crate::paths::{ByPath, PathId, PathTable};
use crate::process::ProcessState;
use crate::version::InodeKey;
use call_context::CallContext;
use final_state::FinalStateCache;
use names::NameState;

/// A time stamp can be older than the change by this much.
pub const SLACK: Time = CLOCK_GRANULARITY;
/// Two times that are at most this far apart can belong to one call: the process may wait between
/// the record and the change.
const NEAR: Time = CLOCK_GRANULARITY;

/// A file that this run made was born while the call that made it ran: at most this long after the
/// call began.
const CALL: Time = 2_000_000_000;

/// The error of a call that was interrupted. It says nothing of the file.
const EINTR: i32 = -4;

/// The state of the run's processes, names and files at the time of the last event.
pub struct Fold<'a, S: Sink> {
    header: &'a RunHeader,
    end: Option<&'a RunEnd>,
    final_state: FinalStateCache<'a>,
    sink: S,
    paths: PathTable,
    objects: Vec<TrackedObject>,
    by_key: FxHashMap<InodeKey, ObjectId>,
    names: ByPath<NameState>,
    links: symbolic_links::SymbolicLinks,
    older_links: removed_links::OlderLinks,
    /// Whether a path is a link that is older than the run. `..` after such a link does not lead
    /// back to the link's parent.
    older_link: FxHashMap<PathId, bool>,
    missing: FxHashMap<PathId, EntityId>,
    processes: FxHashMap<Pid, ProcessState>,
    epochs: Vec<Option<Box<Epoch>>>,
    ended: endings::EndedProcesses,
    activities: epochs::ActivityIds,
    channels: channels::Channels,
    lists: descriptor_lists::DescriptorLists,
    opaque: FxHashSet<Box<str>>,
    /// Whether a call used a directory descriptor that no call gave its process.
    lacks_directory: bool,
    /// The events are over, and the log was cut off: what happened afterwards is unknown.
    cut_off: bool,
    /// Whether the recording saw the end of the run. After a crash of the machine, a file may have
    /// a later content and the times of before.
    saw_end: bool,
    resources: resources::ResourceObjects,
    disclosed: disclosed::Disclosed,
    functions: functions::FunctionCalls,
    described: described::DescribedNodes,
    entities: u32,
    now: Time,
    /// The changes since the last look at a run that goes on. `None`: there are no looks.
    news: Option<Box<news::FoldNews>>,
}

impl<'a, S: Sink> Fold<'a, S> {
    /// The state before the first event.
    pub fn new(
        header: &'a RunHeader,
        end: Option<&'a RunEnd>,
        known: &'a dyn FinalState,
        sink: S,
    ) -> Self {
        Fold {
            header,
            end,
            sink,
            paths: PathTable::default(),
            objects: Vec::new(),
            by_key: FxHashMap::default(),
            names: ByPath::default(),
            links: symbolic_links::SymbolicLinks::default(),
            older_links: removed_links::OlderLinks::default(),
            older_link: FxHashMap::default(),
            missing: FxHashMap::default(),
            processes: FxHashMap::default(),
            epochs: Vec::new(),
            ended: endings::EndedProcesses::default(),
            activities: epochs::ActivityIds::default(),
            channels: channels::Channels::default(),
            lists: descriptor_lists::DescriptorLists::default(),
            opaque: FxHashSet::default(),
            lacks_directory: false,
            cut_off: false,
            saw_end: end.is_some_and(|end| !endings::is_cut_off(end)),
            resources: resources::ResourceObjects::default(),
            disclosed: disclosed::Disclosed::default(),
            functions: functions::FunctionCalls::default(),
            described: described::DescribedNodes::default(),
            entities: 0,
            now: header.started,
            news: None,
            final_state: FinalStateCache::new(known),
        }
    }

    /// Folds the next event.
    pub fn event(&mut self, event: Event) -> Result<(), S::Error> {
        let Event {
            time,
            pid,
            tid,
            via,
            outcome,
            ident,
            resolved,
            op,
        } = event;
        self.now = self.now.max(time);
        self.reap_waited(tid, time)?;
        if !matches!(op, Op::HeldDescriptor { .. }) {
            self.other_than_list(pid)?;
        }
        if let Some(news) = &mut self.news {
            news.acted(pid);
        }
        let call = CallContext {
            time,
            pid,
            tid,
            epoch: 0,
            via,
            outcome,
            ident,
            resolved,
        };
        match op {
            Op::Born { parent, exe, cwd } => return self.born(call, parent, &exe, &cwd),
            Op::Start { ppid, forked } => {
                self.forget_functions(call)?;
                return self.start(call, ppid, forked);
            }
            Op::Function {
                number,
                name,
                location,
                kind: _,
            } => {
                self.functions.name(number, &name, &location);
                return Ok(());
            }
            Op::Work { inside, what, text } => return self.work(call, inside, what, text),
            Op::Gone { status } => return self.gone(pid, time, status),
            Op::Described(statement) => return self.described(call, statement),
            Op::Ident { .. } | Op::Preserved { .. } => return Ok(()),
            _ => {}
        }
        let mut epoch = self.process_of(call)?;
        if self.functions.are_active(call.pid) {
            self.enter_functions(call, &op)?;
            epoch = self.process_of(call)?;
        }
        self.apply(CallContext { epoch, ..call }, op)
    }

    /// Folds an operation of a process.
    // One arm for each operation: shorter functions would hide that none is missing.
    #[allow(clippy::too_many_lines)]
    fn apply(&mut self, call: CallContext, op: Op) -> Result<(), S::Error> {
        match op {
            Op::Open {
                dir, path, flags, ..
            } => {
                if !call.outcome.failed() && opens_memory(&path, flags) {
                    self.opaque(call.pid, undecoded::MEMORY_FILE.as_bytes().into())?;
                }
                self.open(call, dir, &path, flags)
            }
            Op::Close { fd } => self.close(call, fd),
            Op::CloseRange { first, last, flags } => self.close_range(call, first, last, flags),
            Op::Read { fd } => self.read(call, fd),
            Op::Write { fd } => self.write(call, fd),
            Op::Map { fd, prot, flags } => self.map(call, fd, prot, flags),
            Op::Dup { fd, cloexec, .. } => self.dup(call, fd, cloexec),
            Op::Cloexec { fd, on } => self.cloexec(call, fd, on),
            Op::Truncate { fd, path } => self.truncate(call, fd, &path),
            Op::Copy { from, to } => self.copy(call, from, to),
            Op::Stat { dir, path, flags } => {
                self.look(call, dir, &path, flags & access::AT_SYMLINK_NOFOLLOW == 0)
            }
            Op::Access { dir, path, .. } => self.look(call, dir, &path, true),
            Op::Readlink { dir, path } => self.readlink(call, dir, &path),
            Op::List { fd } => self.list(call, fd),
            Op::Rename {
                from_dir,
                from,
                to_dir,
                to,
                flags,
            } => self.rename(call, (from_dir, &from), (to_dir, &to), flags),
            Op::Link {
                from_dir,
                from,
                to_dir,
                to,
                flags,
            } => self.link(call, (from_dir, &from), (to_dir, &to), flags),
            Op::Symlink { target, dir, path } => self.symlink(call, &target, dir, &path),
            Op::LinkText { dir, path, text } => {
                self.link_text(call, dir, &path, &text);
                Ok(())
            }
            Op::Unlink { dir, path, .. } => self.unlink(call, dir, &path),
            Op::Mkdir { dir, path } => {
                self.make(call, dir, &path, crate::model::EntityKind::Directory)
            }
            Op::Mknod { dir, path, mode } => {
                self.make(call, dir, &path, crate::object::kind_of(mode))
            }
            Op::Meta {
                dir,
                path,
                what,
                link,
            } => self.meta(call, dir, &path, what, link),
            Op::Chdir { fd, path, now } => self.chdir(call, fd, &path, &now),
            Op::Chroot { path } => self.chroot(call, &path),
            Op::Pivot { new_root, put_old } => self.pivot(call, &new_root, &put_old),
            Op::Mount {
                source,
                target,
                unmounted,
                flags,
            } => self.mount(call, &source, &target, unmounted, flags),
            Op::Fork { flags, spawn } => self.fork(call, flags, spawn),
            Op::Exec {
                dir,
                path,
                args,
                env,
                ..
            } => self.exec(call, dir, &path, args, env),
            Op::Wait { status, looked } => self.wait(call, status, looked),
            Op::Exit {
                status,
                processor_time,
            } => self.exit(call, status, processor_time),
            Op::Kill { pid, signal } => self.kill(call, pid, signal),
            Op::Pipe { read, write, flags } => self.pipe(call, read, write, flags),
            Op::Socket { domain, kind } => self.socket(call, domain, kind),
            Op::SocketPair { a, b, kind } => self.socket_pair(call, a, b, kind),
            Op::Connect { fd, kind, address } => self.connect(call, fd, kind, &address),
            Op::Bind { fd, address } => self.bind_socket(call, fd, &address),
            Op::Accept { fd, address } => self.accept(call, fd, &address),
            Op::Pass {
                socket,
                fd,
                received,
            } => self.pass(call, socket, fd, received),
            Op::Memfd { name } => self.memfd(call, &name),
            Op::Eventfd { .. } => self.carries_nothing(call),
            Op::Datagram {
                fd,
                received,
                address,
            } => self.datagram(call, fd, &address, received),
            Op::Traffic { fd, sent, received } => self.traffic(call, fd, sent, received),
            Op::Ends {
                fd,
                accepted,
                network,
                own,
                other,
            } => self.connection_began(call, fd, accepted, network, (&own, &other)),
            Op::Resolve { name, address } => self.looked_up(call, &name, &address),
            Op::Load { path } => self.load(call, &path),
            // The call failed, so nothing is unknown.
            Op::Opaque { .. } if call.outcome.value().is_some_and(|value| value < 0) => Ok(()),
            Op::Opaque { name } => self.opaque(call.pid, name),
            Op::Extended { kind, payload } => {
                let activity = self.announce(call.epoch)?;
                self.sink.extended(activity, call.time, &kind, &payload)
            }
            Op::Resource {
                number,
                access,
                name,
            } => self.resource(call, number, access, name),
            Op::Namespace { flags } => {
                self.part_namespace(call.pid, call.tid, flags);
                Ok(())
            }
            Op::Calls(steps) => self.call_functions(call, &steps),
            Op::Values {
                number,
                returned,
                values,
                pointers,
            } => self.function_values(call, number, returned, &values, &pointers),
            Op::HeldDescriptor { fd, flags, target } => self.hold(call, fd, flags, &target),
            Op::Thread { .. } | Op::Listen { .. } | Op::Lost { .. } => Ok(()),
            Op::Start { .. }
            | Op::Ident { .. }
            | Op::Gone { .. }
            | Op::Born { .. }
            | Op::Work { .. }
            | Op::Described(_)
            | Op::Function { .. }
            | Op::Preserved { .. } => Ok(()),
        }
    }

    /// Ends the run after its last event: completes all nodes and edges.
    pub fn finish(mut self) -> Result<(), S::Error> {
        let end = self.end;
        let time = end.map_or(self.now, |e| self.now.max(e.ended));
        self.cut_off = end.is_some() && !self.saw_end;
        self.complete_described()?;
        self.count_all_calls()?;
        self.end_all(end, time)?;
        self.restore_names();
        self.report_unknown_directory()?;
        self.report_last(end.map_or(time, |e| e.ended.max(self.now)))
    }

    fn opaque(&mut self, pid: Pid, what: Box<[u8]>) -> Result<(), S::Error> {
        let reason = Reason::undecoded(pid, &what);
        match self.opaque.insert(reason.to_string().into()) {
            true => self.sink.unknown(&reason.to_string()),
            false => Ok(()),
        }
    }

    /// In a run that is known to lack operations, descriptors are unknown for that reason.
    fn report_unknown_directory(&mut self) -> Result<(), S::Error> {
        let claims_to_be_complete = self.opaque.is_empty()
            && self
                .end
                .is_some_and(|end| end.lost == 0 && end.incomplete_because.is_empty());
        match self.lacks_directory && claims_to_be_complete {
            true => self.sink.unknown(&Reason::UnknownDirectory {}.to_string()),
            false => Ok(()),
        }
    }

    fn object(&self, id: ObjectId) -> &TrackedObject {
        &self.objects[id.0 as usize]
    }

    fn object_mut(&mut self, id: ObjectId) -> &mut TrackedObject {
        &mut self.objects[id.0 as usize]
    }
}
