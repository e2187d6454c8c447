//! Answers the requests of recorders to redirect instructions (`record --deep --time exact`).
//!
//! In: processes that begin a program or load a library, and wait. One thread writes jumps into
//! their code, which lead to the recorder.
//!
//! Invariant: a process waits as long as its files take to be read, and no receiver waits.

use backstory_guard::ParkedCall;
use backstory_instructions::{Answering, Redirection, Redirector};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// A request: the process, the address of the recorder's code, and the call that waits.
type Request = (u32, u64, ParkedCall);

/// The thread that redirects instructions.
pub(crate) struct InstructionRedirections {
    requests: Mutex<Sender<Request>>,
}

impl InstructionRedirections {
    /// Starts the thread. It ends with this.
    pub(crate) fn start() -> io::Result<InstructionRedirections> {
        let (requests, arriving) = channel();
        std::thread::Builder::new()
            .name("instructions".into())
            .spawn(move || answer_all(&arriving))?;
        Ok(InstructionRedirections {
            requests: Mutex::new(requests),
        })
    }

    /// Passes a request on. The call waits until it is answered.
    pub(crate) fn request(&self, pid: u32, to: u64, parked: ParkedCall) {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        // If the thread has ended, the call is dropped and answered so.
        let _ = requests.send((pid, to, parked));
    }
}

fn answer_all(requests: &Receiver<Request>) {
    let mut redirector = Redirector::default();
    for (pid, to, parked) in requests {
        let (to, in_use) = (to & !1, to & 1 != 0);
        let answers = Answering::by_function(to);
        let request = Redirection {
            pid,
            answers: &answers,
            // The recorder is the file at that address. Its own instructions stay.
            except: Some(to),
            may_write: !in_use,
            still_waits: &|| parked.still_waits(),
        };
        let done = redirector.redirect(&request);
        if matches!(done, Ok(true)) {
            parked.grant();
        }
    }
}
