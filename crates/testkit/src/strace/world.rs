//! Replays the calls to keep the process tree and the current directory of every process.

use std::collections::HashMap;
use std::rc::Rc;

use super::calls::{Call, What};
use super::line::{Arg, Returned};
use super::lookup::{self, Loaded};
use super::view::{Descriptors, View};

/// One successful exec.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Path of the program as given, made absolute.
    pub path: Vec<u8>,
    /// Arguments. `true` marks one that strace has cut.
    pub argv: Vec<(Vec<u8>, bool)>,
    /// Interpreters the kernel loaded for it.
    pub interpreters: Vec<Vec<u8>>,
    /// Dynamically linked, like all images before it, so that look-ups are expected to be known.
    pub dynamic: bool,
}

/// The end of a process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Killed(String),
    /// It outlived the trace, or strace lost it.
    Unknown,
}

/// A process (not a thread).
#[derive(Debug, Clone)]
pub struct Process {
    /// Index of the process that made it.
    pub parent: Option<usize>,
    /// The image of its parent that it was forked from, as an index into the parent's `images`.
    /// `None` before the first.
    pub parent_image: Option<usize>,
    /// The programs it ran, in order. Empty if it never called exec.
    pub images: Vec<Image>,
    /// How it ended.
    pub end: End,
    /// It shares its parent's memory and halts it until its exec: `vfork`, or what `posix_spawn`
    /// does.
    pub borrowed: bool,
    /// It began in a dynamically linked program, after dynamically linked ones only.
    pub dynamic: bool,
    /// It operated on a file.
    pub acted: bool,
}

impl Process {
    /// True if an account may leave it out. It has no exec, touched no file and had no recorder, so
    /// that nothing could reveal it. The child of a `posix_spawn` whose exec failed also counts,
    /// because not even its parent learns its id.
    pub fn traceless(&self) -> bool {
        let failed_spawn = self.borrowed && self.end == End::Exited(127);
        self.images.is_empty() && (!self.acted && !self.dynamic || failed_spawn)
    }
}

/// The context of a call.
#[derive(Debug, Clone)]
pub struct Context {
    /// Index of its process.
    pub process: usize,
    /// Current directory of its process before the call.
    pub cwd: Vec<u8>,
    /// The process's current program is dynamically linked, after dynamically linked ones only.
    pub dynamic: bool,
    /// Path of that program.
    pub program: Option<Vec<u8>>,
    /// The names of files in its process before the call.
    pub view: Rc<View>,
}

/// Replays the calls; the n-th context belongs to the n-th call.
pub fn replay(calls: &[Call], cwd: &[u8]) -> (Vec<Process>, Vec<Context>) {
    let mut world = World {
        processes: Vec::new(),
        places: Vec::new(),
        threads: HashMap::new(),
        start: cwd.to_vec(),
        unreturned: Vec::new(),
    };
    let contexts = calls.iter().map(|call| world.step(call)).collect();
    (world.processes, contexts)
}

/// The directories and names in which the kernel looks up the paths of a process. A fork copies it.
#[derive(Clone, Default)]
struct Place {
    cwd: Vec<u8>,
    /// The names of files.
    view: Rc<View>,
    /// The open files.
    descriptors: Descriptors,
}

struct World {
    processes: Vec<Process>,
    /// The place of each process, by its index.
    places: Vec<Place>,
    /// The process of each thread, and whether the thread is its first.
    threads: HashMap<u32, (usize, bool)>,
    start: Vec<u8>,
    /// Processes in a fork that never returned, and whether it made a thread.
    unreturned: Vec<(usize, bool)>,
}

fn makes_thread(args: &[Arg]) -> bool {
    args.iter().any(|a| a.raw().contains("CLONE_THREAD"))
}

impl World {
    fn step(&mut self, call: &Call) -> Context {
        let (process, first) = self.who(call.tid);
        if let What::Call { args, .. } = &call.what
            && let Some(Arg::Fd { path, .. }) = args.iter().find(|a| is_cwd(a))
        {
            self.places[process].cwd.clone_from(path);
        }
        let context = Context {
            process,
            cwd: self.places[process].cwd.clone(),
            view: self.places[process].view.clone(),
            program: self.program(process),
            dynamic: self.processes[process]
                .images
                .last()
                .is_some_and(|i| i.dynamic)
                || self.inherited_dynamic(process),
        };
        match &call.what {
            What::Call {
                name,
                args,
                returned,
            } => self.call(process, name, args, returned),
            What::Exited(status) if first => self.processes[process].end = End::Exited(*status),
            What::Killed(signal) if first => {
                self.processes[process].end = End::Killed(signal.clone())
            }
            What::Superseded { by } => {
                self.threads.insert(*by, (process, false));
                self.threads.insert(call.tid, (process, true));
            }
            _ => {}
        }
        context
    }

    fn who(&mut self, tid: u32) -> (usize, bool) {
        if let Some(known) = self.threads.get(&tid) {
            return *known;
        }
        // The child of a call whose caller died in it, so that its id was not returned; else the
        // command itself.
        let known = match self.unreturned.pop() {
            Some((process, true)) => (process, false),
            Some((parent, false)) => (self.add(Some(parent)), true),
            None => (self.add(None), true),
        };
        self.threads.insert(tid, known);
        known
    }

    fn add(&mut self, parent: Option<usize>) -> usize {
        let parent_image = parent.and_then(|p| self.processes[p].images.len().checked_sub(1));
        self.places.push(match parent {
            Some(parent) => self.places[parent].clone(),
            None => Place {
                cwd: self.start.clone(),
                ..Place::default()
            },
        });
        self.processes.push(Process {
            parent,
            parent_image,
            images: Vec::new(),
            end: End::Unknown,
            borrowed: false,
            dynamic: false,
            acted: false,
        });
        let process = self.processes.len() - 1;
        self.processes[process].dynamic = self.inherited_dynamic(process);
        process
    }

    /// A fork child runs its parent's image until it calls exec.
    fn inherited_dynamic(&self, process: usize) -> bool {
        let this = &self.processes[process];
        match (this.images.last(), this.parent, this.parent_image) {
            (Some(image), ..) => image.dynamic,
            (None, Some(parent), Some(image)) => self.processes[parent].images[image].dynamic,
            (None, Some(parent), None) => self.inherited_dynamic(parent),
            (None, None, _) => true,
        }
    }

    fn program(&self, process: usize) -> Option<Vec<u8>> {
        let this = &self.processes[process];
        match (this.images.last(), this.parent, this.parent_image) {
            (Some(image), ..) => Some(image.path.clone()),
            (None, Some(parent), Some(image)) => {
                Some(self.processes[parent].images[image].path.clone())
            }
            (None, Some(parent), None) => self.program(parent),
            (None, None, _) => None,
        }
    }

    fn call(&mut self, process: usize, name: &str, args: &[Arg], returned: &Returned) {
        let forks = ["fork", "vfork", "clone", "clone3"].contains(&name);
        if forks && returned.value.is_none() {
            self.unreturned.push((process, makes_thread(args)));
        }
        if !returned.ok() {
            return;
        }
        if let (Some(descriptor), Some(path)) = (returned.value, &returned.path) {
            let place = &mut self.places[process];
            let path = place.view.outside(path);
            place.descriptors.insert(descriptor, path);
        }
        if ["chroot", "pivot_root", "mount", "umount", "umount2"].contains(&name) {
            let place = &mut self.places[process];
            let view = Rc::make_mut(&mut place.view);
            view.follow(&place.cwd, &place.descriptors, name, args);
        }
        match name {
            "chdir" => {
                if let Some(Arg::Text { bytes, .. }) = args.first() {
                    self.places[process].cwd = lookup::absolute(&self.places[process].cwd, bytes);
                }
            }
            "fchdir" => {
                if let Some(Arg::Fd { path, .. }) = args.first() {
                    self.places[process].cwd.clone_from(path);
                }
            }
            "fork" | "vfork" | "clone" | "clone3" => self.fork(process, name, args, returned),
            "execve" | "execveat" => self.exec(process, name, args),
            _ => {}
        }
    }

    fn fork(&mut self, parent: usize, name: &str, args: &[Arg], returned: &Returned) {
        let child = returned
            .outer_pid
            .or_else(|| returned.value.and_then(|v| u32::try_from(v).ok()));
        let Some(child) = child else { return };
        let thread = makes_thread(args);
        let process = if thread {
            parent
        } else {
            self.add(Some(parent))
        };
        if !thread {
            let flags = |flag: &str| args.iter().any(|a| a.raw().contains(flag));
            self.processes[process].borrowed =
                name == "vfork" || flags("CLONE_VM") && flags("CLONE_VFORK");
        }
        self.threads.insert(child, (process, !thread));
    }

    fn exec(&mut self, process: usize, name: &str, args: &[Arg]) {
        let program = self.program(process);
        let Some(path) = exec_path(&self.places[process].cwd, program, name, args) else {
            return;
        };
        let Loaded {
            interpreters,
            dynamic,
        } = lookup::loaded(&path);
        let argv = args.iter().find_map(|a| {
            if let Arg::List(list) = a {
                Some(list)
            } else {
                None
            }
        });
        let argv = argv.into_iter().flatten().filter_map(|a| match a {
            Arg::Text { bytes, cut } => Some((bytes.clone(), *cut)),
            _ => None,
        });
        let image = Image {
            path,
            argv: argv.collect(),
            interpreters,
            dynamic: dynamic && self.inherited_dynamic(process),
        };
        self.processes[process].images.push(image);
    }
}

/// The absolute path that an exec names. A process that executes itself again keeps its `program`.
pub fn exec_path(
    cwd: &[u8],
    program: Option<Vec<u8>>,
    name: &str,
    args: &[Arg],
) -> Option<Vec<u8>> {
    let (base, text) = match (name, args) {
        ("execveat", [Arg::Fd { path, .. }, text, ..]) => (path.as_slice(), text),
        (_, [text, ..]) => (cwd, text),
        _ => return None,
    };
    match text {
        Arg::Text { bytes, .. } if bytes.is_empty() => Some(base.to_vec()),
        Arg::Text { bytes, .. } if bytes == b"/proc/self/exe" && program.is_some() => program,
        Arg::Text { bytes, .. } => Some(lookup::absolute(base, bytes)),
        _ => None,
    }
}

fn is_cwd(arg: &Arg) -> bool {
    matches!(arg, Arg::Fd { cwd: true, .. })
}
