//! Draws a browser: the title with the views beside it, the facts, the table, and a line of keys.

use backstory_vocabulary::Tone;
use backstory_workflow::shell::quote;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell as TableCell, Clear, Paragraph, Row as TableRow, Table};

use crate::browser::{Browser, Typing, Visit};
use crate::page::{Cell, Page};

/// No column but the last is wider.
const WIDEST: u16 = 28;

/// The keys, and what they do.
const KEYS: &[(&str, &str)] = &[
    ("Up Down j k", "select a row"),
    ("PgUp PgDn Space", "turn a screen"),
    ("Home End g G", "select the first or the last row"),
    ("Enter Right l", "open the selected row"),
    ("Left Backspace h", "go back"),
    ("Tab", "show the next view of the same run or file"),
    (
        "/",
        "search: only rows with the text are shown, Esc shows all",
    ),
    ("o", "open a file by its path"),
    ("Ctrl-Z", "stop until fg"),
    ("q Ctrl-C", "quit"),
];

/// The terminal's own colour for a tone. The terminal's theme decides how it looks.
fn style(tone: Tone) -> Style {
    let style = Style::new();
    match tone {
        Tone::Ink => style,
        Tone::Quiet => style.add_modifier(Modifier::DIM),
        Tone::Good => style.fg(Color::Green),
        Tone::Bad => style.fg(Color::Red),
        Tone::Warn => style.fg(Color::Yellow),
        Tone::Accent => style.fg(Color::Cyan),
        Tone::File => style.fg(Color::Blue),
        Tone::Step => style.fg(Color::Magenta),
        Tone::System => style.fg(Color::DarkGray),
    }
}

/// Draws the present view.
pub fn draw(frame: &mut Frame<'_>, browser: &mut Browser<'_>) {
    let visit = browser.visit();
    // However many facts there are, some rows are seen.
    let facts = visit
        .page
        .facts
        .len()
        .min(usize::from(frame.area().height / 3));
    let [title, above, table, below] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(facts as u16),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(heading(visit)), title);
    let lines: Vec<Line<'_>> = visit.page.facts.iter().take(facts).map(line).collect();
    frame.render_widget(Paragraph::new(lines), above);
    let rows = usize::from(table.height.saturating_sub(1));
    draw_table(frame, visit, table, rows);
    frame.render_widget(Paragraph::new(last_line(browser)), below);
    if browser.typing == Typing::Help {
        draw_keys(frame, table);
    }
    browser.screen = rows;
}

fn line(cell: &Cell) -> Line<'_> {
    Line::styled(cell.text.as_str(), style(cell.tone))
}

/// The subject, and the views beside this one.
fn heading(visit: &Visit) -> Line<'_> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut spans = vec![Span::styled(visit.page.title.as_str(), bold)];
    for (title, destination) in visit.destination.beside() {
        let look = match destination == visit.destination {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => style(Tone::Quiet),
        };
        spans.push(Span::raw("  "));
        spans.push(Span::styled(format!(" {title} "), look));
    }
    Line::from(spans)
}

fn draw_table(frame: &mut Frame<'_>, visit: &Visit, area: Rect, rows: usize) {
    let page = &visit.page;
    // The selected row is in the middle where that is possible.
    let most = visit.shown.len().saturating_sub(rows);
    let first = visit.selected.saturating_sub(rows / 2).min(most);
    let seen: Vec<usize> = visit.shown.iter().skip(first).take(rows).copied().collect();
    let body = seen.iter().enumerate().map(|(at, &row)| {
        let cells = page.rows[row].cells.iter();
        let cells = cells.map(|cell| TableCell::from(line(cell)));
        let look = match first + at == visit.selected {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        TableRow::new(cells).style(look)
    });
    let header = TableRow::new(page.columns.iter().copied()).style(style(Tone::Quiet));
    let table = Table::new(body, widths(page, &seen))
        .header(header)
        .column_spacing(2);
    frame.render_widget(table, area);
}

/// Each column is as wide as its widest seen cell. The last one takes the rest.
fn widths(page: &Page, seen: &[usize]) -> Vec<Constraint> {
    let last = page.columns.len().saturating_sub(1);
    let width = |at: usize| {
        let cells = seen.iter().filter_map(|&row| page.rows[row].cells.get(at));
        let widest = cells.map(|cell| line(cell).width()).max().unwrap_or(0);
        (widest.max(page.columns[at].len()) as u16).min(WIDEST)
    };
    (0..page.columns.len())
        .map(|at| match at == last {
            true => Constraint::Fill(1),
            false => Constraint::Length(width(at)),
        })
        .collect()
}

/// A message, what is being typed, or the most important keys.
fn last_line<'b>(browser: &'b Browser<'_>) -> Line<'b> {
    let visit = browser.visit();
    if !browser.message.is_empty() {
        return Line::styled(quoted(&browser.message), style(Tone::Bad));
    }
    let found = format!("{} of {}", visit.shown.len(), visit.page.rows.len());
    match &browser.typing {
        Typing::Search => Line::from(format!("/{}\u{2588}  {found}", visit.search)),
        Typing::Path(path) => Line::from(format!("open file: {path}\u{2588}")),
        _ if !visit.search.is_empty() => Line::styled(
            format!("/{}  {found}, Esc shows all", visit.search),
            style(Tone::Accent),
        ),
        _ => {
            let keys = "Enter open  Left back  Tab next view  / search  o file  ? keys  q quit";
            Line::styled(keys, style(Tone::Quiet))
        }
    }
}

/// A message may name a path, and a path may have control characters.
fn quoted(message: &str) -> String {
    match message.chars().any(char::is_control) {
        true => quote(message.as_bytes()),
        false => message.to_owned(),
    }
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect) {
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(keys, what)| {
            Line::from(vec![
                Span::styled(format!("{keys:<18}"), style(Tone::Accent)),
                Span::raw(*what),
            ])
        })
        .collect();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines), area);
}
