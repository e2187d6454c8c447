//! Threads that ask the store. Each has a connection of its own, so that questions run side by
//! side while a recorder's indexer appends.
//!
//! In: a question, as a function of the store. Out: its answer. A question is stopped when its time
//! is over, or when the client has left: its next access to the store fails.
//!
//! Invariant: a connection holds no transaction between two questions.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backstory_store::{DatabaseFiles, Home, Store, StoreEngine, open_store};
use backstory_workflow::ownership::Ownership;
use tokio::sync::oneshot;

use crate::problem::{Answer, Problem};

/// The most threads.
const THREADS: usize = 4;

/// A connection without a question for so long is closed.
const IDLE: Duration = Duration::from_secs(60);

/// The usual time that a question may take, with its time in the queue.
pub const PATIENCE: Duration = Duration::from_secs(30);

type Job = Box<dyn FnOnce(&mut StoreConnection) + Send>;

/// The threads, and the queue of questions before them.
pub struct StoreReaders {
    queue: Arc<JobQueue>,
}

/// A store that a question may read.
pub struct Reading<'r> {
    /// Its graph and facts.
    pub store: &'r dyn Store,
    /// Its directory.
    pub home: &'r Home,
    stop: &'r StopSign,
    owners: &'r RefCell<HashMap<Projects, Ownership>>,
}

/// The directories of projects.
type Projects = BTreeSet<Vec<u8>>;

/// Sets of projects whose files' owners are remembered.
const REMEMBERED: usize = 16;

impl Reading<'_> {
    /// Calls `ask` with what decides whether a file is the user's own, where the user works in
    /// these directories. It remembers the lists of packages, which take long to read.
    pub fn with_owners<T>(&self, projects: Projects, ask: impl FnOnce(&mut Ownership) -> T) -> T {
        let mut owners = self.owners.borrow_mut();
        if owners.len() >= REMEMBERED && !owners.contains_key(&projects) {
            owners.clear();
        }
        let owner = owners.entry(projects).or_insert_with_key(|projects| {
            let projects = projects.iter().map(Vec::as_slice);
            Ownership::new(Path::new("/"), projects)
        });
        ask(owner)
    }

    /// Fails if the question should stop. The store checks it by itself; a long computation without
    /// the store asks here.
    pub fn check(&self) -> Answer<()> {
        match self.stop.is_set() {
            true => Err(Problem::timeout("the question took too long")),
            false => Ok(()),
        }
    }
}

/// Set when a question should stop.
struct StopSign {
    left: AtomicBool,
    until: Instant,
}

impl StopSign {
    fn is_set(&self) -> bool {
        self.left.load(Ordering::Relaxed) || Instant::now() > self.until
    }
}

/// Sets the sign when the client has left: the server drops the future that waits for the answer.
struct StopWhenLeft(Arc<StopSign>);

impl Drop for StopWhenLeft {
    fn drop(&mut self) {
        self.0.left.store(true, Ordering::Relaxed);
    }
}

impl StoreReaders {
    /// Starts the threads. They open the store at their first question.
    pub fn start(home: &Home) -> io::Result<StoreReaders> {
        let queue = Arc::new(JobQueue::default());
        let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get());
        for number in 0..threads.clamp(2, THREADS) {
            let (queue, home) = (queue.clone(), home.clone());
            let thread = std::thread::Builder::new().name(format!("reader {number}"));
            thread.spawn(move || work(&queue, StoreConnection::new(home)))?;
        }
        Ok(StoreReaders { queue })
    }

    /// Asks a question.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Reading<'_>) -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        self.ask_within(PATIENCE, question).await
    }

    /// Asks a question that may take so long.
    pub async fn ask_within<T: Send + 'static>(
        &self,
        patience: Duration,
        question: impl FnOnce(&Reading<'_>) -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        let stop = Arc::new(StopSign {
            left: AtomicBool::new(false),
            until: Instant::now() + patience,
        });
        let (sender, answer) = oneshot::channel();
        let sign = stop.clone();
        self.queue.push(Box::new(move |connection| {
            if !sender.is_closed() {
                // The client may leave meanwhile.
                drop(sender.send(connection.answer(&sign, question)));
            }
        }));
        let _left = StopWhenLeft(stop);
        let lost = || Err(Problem::failed("the question was lost; ask again"));
        answer.await.unwrap_or_else(|_| lost())
    }
}

impl Drop for StoreReaders {
    fn drop(&mut self) {
        self.queue.state().closed = true;
        self.queue.wake.notify_all();
    }
}

/// A thread: takes one question after another.
fn work(queue: &JobQueue, mut connection: StoreConnection) {
    loop {
        match queue.next() {
            NextJob::Job(job) => job(&mut connection),
            NextJob::Idle => connection = StoreConnection::new(connection.home),
            NextJob::Closed => return,
        }
    }
}

#[derive(Default)]
struct JobQueue {
    state: Mutex<QueueState>,
    wake: Condvar,
}

#[derive(Default)]
struct QueueState {
    jobs: VecDeque<Job>,
    closed: bool,
}

enum NextJob {
    Job(Job),
    Idle,
    Closed,
}

impl JobQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: Job) {
        self.state().jobs.push_back(job);
        self.wake.notify_one();
    }

    fn next(&self) -> NextJob {
        let empty = |state: &mut QueueState| state.jobs.is_empty() && !state.closed;
        let waited = self.wake.wait_timeout_while(self.state(), IDLE, empty);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.jobs.pop_front() {
            Some(job) => NextJob::Job(job),
            None if state.closed => NextJob::Closed,
            None => NextJob::Idle,
        }
    }
}

/// The engine of a store, and the device and inode of its database.
type DatabaseIdentity = (StoreEngine, u64, u64);

/// The connection of one thread.
struct StoreConnection {
    home: Home,
    open: Option<(Box<dyn Store>, DatabaseIdentity)>,
    owners: Rc<RefCell<HashMap<Projects, Ownership>>>,
}

impl StoreConnection {
    fn new(home: Home) -> StoreConnection {
        StoreConnection {
            home,
            open: None,
            owners: Rc::default(),
        }
    }

    fn answer<T>(
        &mut self,
        stop: &Arc<StopSign>,
        question: impl FnOnce(&Reading<'_>) -> Answer<T>,
    ) -> Answer<T> {
        let (home, owners) = (self.home.clone(), self.owners.clone());
        let store = self.store()?;
        let sign = stop.clone();
        store.interrupt_when(Some(Box::new(move || sign.is_set())));
        let answer = question(&Reading {
            store,
            home: &home,
            stop,
            owners: &owners,
        });
        store.interrupt_when(None);
        let spoilt = answer.as_ref().is_err_and(Problem::spoils_connection);
        // Other processes wait for a database that only one can have.
        if spoilt || store.is_reading() || store.is_exclusive() {
            self.open = None;
        }
        answer
    }

    /// The store. `backstory store rebuild` replaces the database by another file, and `backstory
    /// store migrate` by one of another engine, which is opened then.
    fn store(&mut self) -> Answer<&dyn Store> {
        let engine = StoreEngine::of(&self.home)?;
        let database = DatabaseFiles::of(&self.home, engine);
        let path = database.path();
        let file = || std::fs::metadata(path).map(|meta| (engine, meta.dev(), meta.ino()));
        let present = file().ok();
        if self.open.as_ref().map(|(_, file)| *file) != present {
            self.open = None;
        }
        if self.open.is_none() {
            let store = open_store(&self.home)?;
            let opened = file().map_err(|error| {
                Problem::failed(format!("cannot look at {}: {error}", path.display()))
            })?;
            // The checkpoint at the close of a connection waits for the disk. Others do it.
            store.leave_log()?;
            self.open = Some((store, opened));
        }
        match &self.open {
            Some((store, _)) => Ok(&**store),
            None => Err(Problem::failed("the store is not open")),
        }
    }
}
