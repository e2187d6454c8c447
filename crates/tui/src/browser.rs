//! The history of views, the selection and the search. In: keys. Out: what the terminal has to do.

use std::path::{Path, PathBuf};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::Result;
use crate::destination::Destination;
use crate::page::{Page, Row};
use crate::pages::page;
use crate::viewed_store::ViewedStore;

/// The terminal's next act after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// Draw again.
    Draw,
    /// Give the terminal back and end.
    Quit,
    /// Give the terminal back and stop, as after Ctrl-Z.
    Stop,
}

/// The meaning of typed characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typing {
    /// Commands.
    Keys,
    /// A text to search for.
    Search,
    /// The path of a file to open.
    Path(String),
    /// Nothing: the list of keys is shown, and the next key removes it.
    Help,
}

/// A view in the history.
#[derive(Debug)]
pub struct Visit {
    /// Which.
    pub destination: Destination,
    /// Its content.
    pub page: Page,
    /// The search, in lower case. Empty: all rows are shown.
    pub search: String,
    /// The indexes of the rows that contain it.
    pub shown: Vec<usize>,
    /// The selected one of these.
    pub selected: usize,
}

impl Visit {
    fn new(store: &ViewedStore<'_>, destination: Destination) -> Result<Visit> {
        let page = page(store, &destination)?;
        Ok(Visit {
            shown: (0..page.rows.len()).collect(),
            destination,
            page,
            search: String::new(),
            selected: 0,
        })
    }

    /// Shows the rows that contain the search, and keeps the selected row if it is among them.
    fn search(&mut self) {
        let selected = self.shown.get(self.selected).copied();
        let rows = self.page.rows.iter().enumerate();
        self.shown = rows
            .filter(|(_, row)| row.contains(&self.search))
            .map(|(at, _)| at)
            .collect();
        let same = selected.and_then(|at| self.shown.iter().position(|&one| one == at));
        self.selected = same.unwrap_or(0);
    }

    fn row(&self) -> Option<&Row> {
        self.page.rows.get(*self.shown.get(self.selected)?)
    }

    fn select(&mut self, at: usize) {
        self.selected = at.min(self.shown.len().saturating_sub(1));
    }
}

/// The views over one store.
pub struct Browser<'s> {
    store: ViewedStore<'s>,
    /// The way to the present view, which is the last. Never empty.
    visits: Vec<Visit>,
    /// The meaning of typed characters.
    pub typing: Typing,
    /// Why the last key did nothing. Empty if it did something.
    pub message: String,
    /// The rows that a screen shows, for the keys that turn a screen.
    pub screen: usize,
}

impl<'s> Browser<'s> {
    /// Opens the first view.
    ///
    /// # Errors
    ///
    /// Its subject is not in the store.
    pub fn new(store: ViewedStore<'s>, first: Destination) -> Result<Browser<'s>> {
        let mut visits = Vec::new();
        if first != Destination::Runs {
            visits.push(Visit::new(&store, Destination::Runs)?);
        }
        visits.push(Visit::new(&store, first)?);
        Ok(Browser {
            store,
            visits,
            typing: Typing::Keys,
            message: String::new(),
            screen: 20,
        })
    }

    /// The present view.
    pub fn visit(&self) -> &Visit {
        &self.visits[self.visits.len() - 1]
    }

    fn present(&mut self) -> &mut Visit {
        let last = self.visits.len() - 1;
        &mut self.visits[last]
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Reaction {
        self.message.clear();
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Reaction::Quit,
                KeyCode::Char('z') => return Reaction::Stop,
                _ => {}
            }
        }
        match std::mem::replace(&mut self.typing, Typing::Keys) {
            Typing::Keys => return self.command(key),
            Typing::Search => self.typed_search(key.code),
            Typing::Path(path) => self.typed_path(path, key.code),
            Typing::Help => {}
        }
        Reaction::Draw
    }

    fn command(&mut self, key: KeyEvent) -> Reaction {
        let screen = self.screen.max(1);
        let visit = self.present();
        let (at, last) = (visit.selected, visit.shown.len().saturating_sub(1));
        match key.code {
            KeyCode::Char('q') => return Reaction::Quit,
            KeyCode::Up | KeyCode::Char('k') => visit.select(at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => visit.select(at + 1),
            KeyCode::PageUp => visit.select(at.saturating_sub(screen)),
            KeyCode::PageDown | KeyCode::Char(' ') => visit.select(at + screen),
            KeyCode::Home | KeyCode::Char('g') => visit.select(0),
            KeyCode::End | KeyCode::Char('G') => visit.select(last),
            KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => self.open_row(),
            KeyCode::Esc if !visit.search.is_empty() => {
                visit.search.clear();
                visit.search();
            }
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left | KeyCode::Char('h') => self.back(),
            KeyCode::Tab => self.beside(1),
            KeyCode::BackTab => self.beside(usize::MAX),
            KeyCode::Char('/') => self.typing = Typing::Search,
            KeyCode::Char('o') => self.typing = Typing::Path(String::new()),
            KeyCode::Char('?') => self.typing = Typing::Help,
            _ => {}
        }
        Reaction::Draw
    }

    fn typed_search(&mut self, key: KeyCode) {
        let visit = self.present();
        match key {
            KeyCode::Enter => return,
            KeyCode::Esc => {
                visit.search.clear();
                visit.search();
                return;
            }
            KeyCode::Backspace => drop(visit.search.pop()),
            KeyCode::Char(c) => visit.search.extend(c.to_lowercase()),
            _ => {}
        }
        visit.search();
        self.typing = Typing::Search;
    }

    fn typed_path(&mut self, mut path: String, key: KeyCode) {
        match key {
            KeyCode::Enter if path.is_empty() => return,
            KeyCode::Enter => return self.open(Destination::File(absolute(Path::new(&path)))),
            KeyCode::Esc => return,
            KeyCode::Backspace => drop(path.pop()),
            KeyCode::Char(c) => path.push(c),
            _ => {}
        }
        self.typing = Typing::Path(path);
    }

    fn open_row(&mut self) {
        match self.visit().row().map(|row| row.opens.clone()) {
            Some(Some(destination)) => self.open(destination),
            Some(None) => self.message = "this row leads nowhere".to_owned(),
            None => self.message = "no row is selected".to_owned(),
        }
    }

    fn open(&mut self, destination: Destination) {
        if destination == self.visit().destination {
            self.message = "this is the view of it".to_owned();
            return;
        }
        match Visit::new(&self.store, destination) {
            Ok(visit) => self.visits.push(visit),
            Err(error) => self.message = error.to_string(),
        }
    }

    fn back(&mut self) {
        match self.visits.len() {
            1 => self.message = "this is the first view; q quits".to_owned(),
            _ => drop(self.visits.pop()),
        }
    }

    /// Shows another view of the same subject in the place of the present one.
    fn beside(&mut self, step: usize) {
        let present = &self.visit().destination;
        let all = present.beside();
        let at = all.iter().position(|(_, one)| one == present).unwrap_or(0);
        let next = match step {
            1 => (at + 1) % all.len(),
            _ => (at + all.len() - 1) % all.len(),
        };
        let destination = all[next].1.clone();
        if next == at {
            return;
        }
        match Visit::new(&self.store, destination) {
            Ok(visit) => *self.present() = visit,
            Err(error) => self.message = error.to_string(),
        }
    }
}

/// The path as it is meant from the current directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
