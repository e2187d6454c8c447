//! The real terminal: takes it over, reads keys and sizes, and gives it back.
//!
//! Invariant: however the program ends, the terminal is as before. A guard restores it on return,
//! a hook before a panic is printed, and a thread when SIGTERM, SIGHUP or SIGINT arrives.

use std::io::{self, stdin, stdout};
use std::os::fd::AsFd;
use std::panic;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use backstory_sys as sys;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::Result;
use crate::browser::{Browser, Reaction};
use crate::destination::Destination;
use crate::drawing::draw;
use crate::viewed_store::ViewedStore;

/// Held while the modes of the terminal are changed.
static MODES: Mutex<()> = Mutex::new(());

/// Shows views until the user quits.
///
/// # Errors
///
/// The first view has no subject, or the terminal cannot be used.
pub fn run(store: ViewedStore<'_>, first: Destination) -> Result<()> {
    let mut browser = Browser::new(store, first)?;
    give_back_before_a_panic_is_printed();
    // Without a thread for it, a signal leaves the terminal as it is. `reset` mends that.
    let _ = sys::when_asked_to_end(|_| give_back());
    let taken = Taken::take()?;
    let mut terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
    loop {
        terminal.draw(|frame| draw(frame, &mut browser))?;
        match next(&mut browser)? {
            Reaction::Draw => {}
            Reaction::Quit => break,
            Reaction::Stop => {
                give_back();
                kill_process(getpid(), Signal::TSTP).map_err(io::Error::from)?;
                take_over()?;
                terminal.clear()?;
            }
        }
    }
    drop(taken);
    Ok(())
}

/// Waits for a key or another size of the window.
fn next(browser: &mut Browser<'_>) -> io::Result<Reaction> {
    loop {
        // A terminal that is gone would be ready for ever.
        if !event::poll(Duration::from_secs(3600))? {
            continue;
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => return Ok(browser.key(key)),
            Event::Resize(..) => {
                ask_again_for_keys();
                return Ok(Reaction::Draw);
            }
            _ => {}
        }
    }
}

/// Lets the kernel notify this process again of keys that were pressed before it read a change of
/// the size. Crossterm (0.29) has then dropped the only notification of them, and would wait for
/// the next key. Setting the modes wakes all readers of a terminal, even if no mode changes.
fn ask_again_for_keys() {
    let _held = MODES.lock().unwrap_or_else(PoisonError::into_inner);
    // If stdin is no terminal, crossterm reads another descriptor of the terminal.
    let (input, output) = (stdin(), stdout());
    for descriptor in [input.as_fd(), output.as_fd()] {
        if let Ok(modes) = tcgetattr(descriptor) {
            let _ = tcsetattr(descriptor, OptionalActions::Now, &modes);
            return;
        }
    }
}

/// The terminal while the views have it.
struct Taken;

impl Taken {
    fn take() -> io::Result<Taken> {
        // From here on the terminal is given back, even if taking it over fails half-way.
        let taken = Taken;
        take_over()?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

fn take_over() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, Hide)
}

/// A terminal that is gone cannot be restored, and needs not to be.
fn give_back() {
    let _held = MODES.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

fn give_back_before_a_panic_is_printed() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |about| {
        give_back();
        print(about);
    }));
}
