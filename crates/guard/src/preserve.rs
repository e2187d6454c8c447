//! Calls that wait while the content which they are about to change is kept.
//!
//! Invariant: a call is parked before it comes here and is answered when it leaves, whatever became of the content; the threads here
//! receive nothing, so whoever they wait for can always make calls. They start when there is work and nobody free to do it.

use super::caller::Caller;
use super::coming::{File, Seen, Target};
use super::decode::Arguments;
use super::hooks::{Change, ChangeKind, Effort, Found, Keep, Kept, TooMuch, Waiting};
use super::memory::Memory;
use super::mounts::Mounts;
use super::receivers::{Common, spawn};
use super::record_writer::{Fields, RecordWriter, Result as Outcome};
use super::resolve::{Looked, Resolver, There};
use super::shared::Notification;
use super::write::who;
use backstory_abi::{
    CHANGE_ITSELF, CHANGE_KIND, CHANGE_PART, CHANGE_REMOVE, CHANGE_UPDATE, CHANGE_WRITE, op,
};
use backstory_arena::RecordSink;
use backstory_files::Ident;
use backstory_sys::kernel as sys;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Threads that there can be.
const THREADS: usize = 8;
/// How long the end of a run waits for one that is not done.
const PATIENCE: Duration = Duration::from_secs(2);

/// A call that waits.
pub(super) struct Job {
    /// Answers it when dropped.
    pub(super) waiting: Waiting,
    pub(super) call: Notification,
    pub(super) time: u64,
    pub(super) about: About,
}

impl Job {
    fn at(&self) -> Occasion<'_> {
        Occasion {
            call: &self.call,
            time: self.time,
            about: &self.about,
        }
    }
}

/// A call that is about to change something.
pub(super) struct Occasion<'a> {
    pub(super) call: &'a Notification,
    pub(super) time: u64,
    pub(super) about: &'a About,
}

/// What it is about to change.
pub(super) enum About {
    /// A recorder asks; what, its arguments say.
    Asked,
    /// The guard has seen the call itself, or those that a ring was given.
    Seen(Vec<Seen>),
}

type Life = Box<dyn FnOnce() + Send>;
/// Logs that what a call changes was not kept, and the errno that says why.
type Tell = Box<dyn FnMut(&Notification, u64, &About, i32) + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Threads that can still be started.
    spares: Vec<Life>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    running: usize,
    /// What the threads are about.
    begun: Vec<(Notification, u64)>,
    tell: Option<Tell>,
    ended: bool,
}

impl State {
    /// Lets waiting calls go on, whose contents nobody can keep.
    fn give_up(&mut self, errno: i32) {
        for job in std::mem::take(&mut self.jobs) {
            self.leave(&job, errno);
        }
    }

    fn leave(&mut self, job: &Job, errno: i32) {
        if let Some(tell) = &mut self.tell {
            tell(&job.call, job.time, &job.about, errno);
        }
    }
}

/// The threads that keep contents, and their work.
#[derive(Default)]
pub(super) struct Preservers {
    state: Mutex<State>,
    work: Condvar,
    done: Condvar,
}

impl Preservers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the threads ready to be started.
    pub(super) fn prepare<S: RecordSink + Send + 'static>(
        common: &Arc<Common>,
        make_sink: &mut impl FnMut() -> S,
    ) {
        let mut life = || -> Life {
            // Weak, or neither would ever be freed.
            let (out, common) = (RecordWriter::new(make_sink()), Arc::downgrade(common));
            Box::new(move || run(&common, out))
        };
        let spares = (0..THREADS).map(|_| life()).collect();
        let mut out = RecordWriter::new(make_sink());
        let mut state = common.preservers.state();
        state.spares = spares;
        state.tell = Some(Box::new(move |call, time, about, errno| {
            not_kept(&mut out, call, time, about, errno);
        }));
    }

    /// Hands a call over. Does not wait.
    pub(super) fn give(&self, job: Job) {
        let mut state = self.state();
        if state.ended {
            return state.leave(&job, libc::ESHUTDOWN); // dropped, and so answered
        }
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            self.work.notify_one();
            return;
        }
        if let Some(life) = state.spares.pop() {
            match spawn("guard-keep", life) {
                Ok(thread) => {
                    state.threads.push(thread);
                    state.running += 1;
                }
                // Nobody is there to do it.
                Err(error) if state.running == 0 => {
                    state.give_up(error.raw_os_error().unwrap_or(libc::EAGAIN));
                }
                Err(_) => {}
            }
        }
    }

    /// The next call, or none when all is done and nothing more will come.
    fn next(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.begun.push((job.call, job.time));
                return Some(job);
            }
            if state.ended {
                state.running -= 1;
                self.done.notify_all();
                return None;
            }
            state.idle += 1;
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn done(&self, job: Job) {
        self.state()
            .begun
            .retain(|(call, _)| call.id != job.call.id);
        drop(job.waiting);
    }

    /// Ends the threads once they have done what was begun. False: one still waits for a file system.
    pub(super) fn end(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        let mut state = self.state();
        state.ended = true;
        state.spares.clear();
        self.work.notify_all();
        while state.running > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.give_up(libc::ETIMEDOUT);
                let begun = std::mem::take(&mut state.begun);
                if let Some(mut tell) = state.tell.take() {
                    begun
                        .iter()
                        .for_each(|(call, time)| tell(call, *time, &About::Asked, libc::ETIMEDOUT));
                }
                return false;
            }
            let waited = self.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let threads = std::mem::take(&mut state.threads);
        state.tell = None;
        drop(state);
        threads.into_iter().all(|thread| thread.join().is_ok())
    }
}

fn run<S: RecordSink>(common: &Weak<Common>, mut out: RecordWriter<S>) {
    let Some(common) = common.upgrade() else {
        return;
    };
    let mut resolver = Resolver::new(Mounts::new(common.mounts_changed.clone()), true);
    while let Some(job) = common.preservers.next() {
        if let Some(keep) = common.hooks.keep() {
            // No effort is too much here.
            let _ = common.preserve(keep, Effort::Any, &job.at(), &mut resolver, &mut out);
        }
        common.preservers.done(job);
    }
}

impl Common {
    /// With `reads`, what has just been logged or counted may be a read. Before its caller is answered, or no longer counted.
    pub(super) fn tell_read(&self, reads: bool) {
        if let (true, Some(keep)) = (reads, self.hooks.keep()) {
            keep.may_have_read();
        }
    }

    /// Keeps what a call is about to change, if that takes no more effort than this.
    pub(super) fn preserve<S: RecordSink>(
        &self,
        keep: &dyn Keep,
        effort: Effort,
        at: &Occasion<'_>,
        resolver: &mut Resolver,
        out: &mut RecordWriter<S>,
    ) -> Result<(), TooMuch> {
        match at.about {
            About::Seen(all) => {
                for seen in all {
                    let kept = self.seen(keep, effort, at.time, seen, resolver)?;
                    log_kept(out, at, kept);
                }
            }
            About::Asked => log_kept(out, at, self.asked(keep, effort, at, resolver)?),
        }
        Ok(())
    }

    /// What the guard has seen coming. The file is opened only if its content is of interest.
    fn seen(
        &self,
        keep: &dyn Keep,
        effort: Effort,
        time: u64,
        seen: &Seen,
        resolver: &mut Resolver,
    ) -> Result<Option<Done>, TooMuch> {
        let mut open = || {
            let found = find(resolver, &seen.caller, &seen.target, time)?;
            Ok(found.inspect(|(there, _)| {
                keep.changes(there.dev as u32, there.ino);
            }))
        };
        let mut opened = None;
        // Who waited for somebody looks again: the name may lead elsewhere by now.
        let file = match seen.file.filter(|_| effort == Effort::Little) {
            Some(file) => file,
            None => match open()? {
                Some((there, found)) => {
                    opened = Some(found);
                    File::of(&there)
                }
                None => return Ok(None),
            },
        };
        if file.link {
            keep.names_change();
        }
        let mut path = Vec::new();
        let change = self.change(seen.target.kind, file.device, file.inode);
        let kept = keep.keep(&change, effort, &mut || {
            let found = match opened.take() {
                Some(found) => Some(found),
                None => open()?.map(|(_, found)| found),
            };
            Ok(found.inspect(|found| path.clone_from(&found.path)))
        })?;
        Ok(kept.map(|kept| (seen.caller.clone(), path, kept)))
    }

    /// What a recorder asks for; its path is read only if the content is of interest.
    fn asked(
        &self,
        keep: &dyn Keep,
        effort: Effort,
        at: &Occasion<'_>,
        resolver: &mut Resolver,
    ) -> Result<Option<Done>, TooMuch> {
        let Some(change) = self.change_asked(at.call) else {
            keep.names_change();
            return Ok(None);
        };
        let (mut who, kind) = (None, change.kind);
        let kept = keep.keep(&change, effort, &mut || {
            let Some(seen) = self.ask(at, kind) else {
                return Ok(None);
            };
            let found = find(resolver, &seen.caller, &seen.target, at.time)?;
            Ok(found.map(|(_, found)| {
                who = Some((seen.caller, found.path.clone()));
                found
            }))
        })?;
        Ok(kept.and_then(|kept| {
            let (caller, path) = who?;
            Some((caller, path, kept))
        }))
    }

    /// What a recorder asks about; none if only names change.
    pub(super) fn change_asked(&self, call: &Notification) -> Option<Change<'_>> {
        let [_, _, _, place, change, inode] = call.args;
        let kind = match change as u32 & CHANGE_KIND {
            CHANGE_WRITE => ChangeKind::Write,
            CHANGE_PART => ChangeKind::Part,
            CHANGE_UPDATE => ChangeKind::Update,
            CHANGE_REMOVE => ChangeKind::Remove,
            _ => return None,
        };
        Some(self.change(kind, (place >> 32) as u32, inode))
    }

    fn change(&self, kind: ChangeKind, device: u32, inode: u64) -> Change<'_> {
        Change {
            kind,
            device,
            inode,
            queued: &self.queued,
        }
    }

    /// Reads what a recorder asks for out of its memory.
    fn ask(&self, at: &Occasion<'_>, kind: ChangeKind) -> Option<Seen> {
        let [_, _, path, place, change, _] = at.call.args;
        let tid = at.call.tid;
        let caller = self.callers.meet(tid, at.time).ok()?;
        let (mut memory, mut raw) = (Memory::of(tid), Vec::with_capacity(128));
        let mut arguments = Arguments {
            args: &[0, 0, path, 0, 0, 0],
            memory: &mut memory,
            caller: &caller,
            callers: &self.callers,
            cwd: OnceCell::new(),
        };
        arguments.string(2, &mut raw).ok()?;
        let name = arguments.name(place as u32 as i32, &raw);
        if !sys::still_waits(self.listener.as_fd(), at.call.id) {
            return None;
        }
        let follow = change as u32 & CHANGE_ITSELF == 0;
        let target = Target { name, follow, kind };
        Some(Seen {
            caller,
            target,
            file: None,
        })
    }
}

/// Who is about to change what, and what was kept of it.
type Done = (Caller, Vec<u8>, Kept);

/// The file that a call is about to change.
fn find(
    resolver: &mut Resolver,
    caller: &Caller,
    target: &Target,
    time: u64,
) -> Result<Option<(Ident, Found)>, TooMuch> {
    let looked = resolver.look_carefully(caller, &target.name.inside, target.follow, time);
    let Looked::There(there) = looked.map_err(|_| TooMuch)? else {
        return Ok(None);
    };
    let path = where_open(&target.name.path, &there).unwrap_or_else(|| target.name.path.clone());
    let ident = there.ident();
    let file = there.into_fd();
    Ok(file.map(|file| (ident, Found { path, file })))
}

/// Where a file lies, or lay until it lost its name, that is called by a name for what somebody has open (`/dev/fd/3`, `/proc/self/fd/3`,
/// `/dev/stdout`): none of these says whether it is a file of the user's.
fn where_open(name: &[u8], there: &There) -> Option<Vec<u8>> {
    if !name.starts_with(b"/proc/") && !name.starts_with(b"/dev/") {
        return None;
    }
    let path = there.path().filter(|path| !path.starts_with(b"/memfd:"))?;
    Some(match path.strip_suffix(b" (deleted)") {
        Some(path) => path.to_vec(),
        None => path,
    })
}

fn log_kept<S: RecordSink>(out: &mut RecordWriter<S>, at: &Occasion<'_>, done: Option<Done>) {
    let Some((caller, path, kept)) = done else {
        return;
    };
    let fields = Fields {
        arg: kept.number,
        aux: kept.how,
        result: Outcome::Known(-kept.error),
        ident: Some(kept.ident),
        resolved: true,
        ..Fields::of(op::KEPT)
    };
    out.put(at.time, who(&caller, at.call), &fields, &[&path]);
}

/// Logs that nobody could keep what a call changes.
pub(super) fn not_kept<S: RecordSink>(
    out: &mut RecordWriter<S>,
    call: &Notification,
    time: u64,
    about: &About,
    errno: i32,
) {
    let fields = Fields {
        arg: -1,
        result: Outcome::Known(-errno),
        resolved: true,
        ..Fields::of(op::KEPT)
    };
    let nobody = Caller::unknown(call.tid);
    match about {
        About::Seen(all) => {
            for seen in all {
                out.put(
                    time,
                    who(&seen.caller, call),
                    &fields,
                    &[&seen.target.name.path],
                );
            }
        }
        About::Asked => out.put(time, who(&nobody, call), &fields, &[b""]),
    }
}
