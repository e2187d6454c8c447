//! Threads that look at processes for the threads that serve requests.
//!
//! A look into `/proc` can wait for a process that itself waits for this file system: see
//! [`process_facts`](crate::process_facts). A thread that serves requests must never be part of
//! such a circle. So each of them has an observer, asks it, and waits for [`PATIENCE`] at most.
//!
//! Invariants:
//!
//! - A thread that serves requests reads nothing of another process in `/proc`.
//! - It holds no lock while it waits for its observer.
//! - An observer that is late is given up. It ends when the kernel lets it go.

use crate::process_facts::{Introduction, SeenThread, SeenThreads, introduction};
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Longest wait for an observer. It is long because it ends a deadlock, and nothing else.
const PATIENCE: Duration = Duration::from_secs(3);
/// Most observers, with those that were given up.
const MOST: usize = 128;

static OBSERVERS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OWN: RefCell<Option<Observer>> = const { RefCell::new(None) };
}

#[derive(Debug, Clone, Copy)]
enum Question {
    Thread(u32),
    Process(u32),
}

#[derive(Debug)]
enum Observation {
    Thread(Option<SeenThread>),
    Process(Option<Box<Introduction>>),
}

/// Looks at a thread. `None` if it has ended, is not visible here, or cannot be seen in time.
pub(crate) fn seen(thread: u32) -> Option<SeenThread> {
    match ask(Question::Thread(thread))? {
        Observation::Thread(seen) => seen,
        Observation::Process(_) => None,
    }
}

/// Reads the facts about a process. `None` as for a thread.
pub(crate) fn introduced(pid: u32) -> Option<Box<Introduction>> {
    match ask(Question::Process(pid))? {
        Observation::Process(facts) => facts,
        Observation::Thread(_) => None,
    }
}

/// Asks the observer of this thread. `None` if it is late: the next question has another observer.
fn ask(question: Question) -> Option<Observation> {
    let observer = OWN.take().or_else(Observer::start)?;
    observer.questions.send(question).ok()?;
    let answer = observer.answers.recv_timeout(PATIENCE).ok()?;
    OWN.set(Some(observer));
    Some(answer)
}

struct Observer {
    questions: SyncSender<Question>,
    answers: Receiver<Observation>,
}

/// Counts a thread while it lives.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        OBSERVERS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Observer {
    fn start() -> Option<Observer> {
        let before = OBSERVERS.fetch_add(1, Ordering::Relaxed);
        let counted = Counted;
        if before >= MOST {
            return None;
        }
        let (questions, asked) = sync_channel(1);
        let (answered, answers) = sync_channel(1);
        let observe = move || {
            let _counted = counted;
            let mut threads = SeenThreads::default();
            for question in asked {
                let answer = match question {
                    Question::Thread(thread) => Observation::Thread(threads.look(thread)),
                    Question::Process(pid) => Observation::Process(introduction(pid).map(Box::new)),
                };
                if answered.send(answer).is_err() {
                    break;
                }
            }
        };
        let name = "observer".to_owned();
        let started = std::thread::Builder::new().name(name).spawn(observe);
        started.ok().map(|_| Observer { questions, answers })
    }
}
