//! One line of text with colours that fits the width of the terminal.

use super::style::{Role, Style};

/// The least that is left of the part that gives way.
const LEAST: usize = 16;

/// A line in parts. One part, such as a command, is shortened if the line does not fit.
#[derive(Debug, Default)]
pub struct Line {
    parts: Vec<(Option<Role>, String)>,
    gives_way: Option<usize>,
}

impl Line {
    /// Adds a part.
    pub fn add(&mut self, role: impl Into<Option<Role>>, text: impl Into<String>) -> &mut Line {
        self.parts.push((role.into(), text.into()));
        self
    }

    /// Adds the part that is shortened if the line does not fit.
    pub fn add_flexible(&mut self, role: impl Into<Option<Role>>, text: &str) -> &mut Line {
        self.gives_way = Some(self.parts.len());
        self.add(role, text)
    }

    /// The line, at most as wide as `columns`.
    pub fn text(mut self, style: Style, columns: Option<usize>) -> String {
        let over = |parts: &[(Option<Role>, String)]| {
            let all: usize = parts.iter().map(|(_, text)| width(text)).sum();
            columns.map_or(0, |columns| all.saturating_sub(columns))
        };
        if let Some(at) = self.gives_way {
            let own = width(&self.parts[at].1);
            let wanted = own.saturating_sub(over(&self.parts)).max(LEAST);
            self.parts[at].1 = cut(&self.parts[at].1, wanted);
        }
        let mut at = self.parts.len();
        while let (left @ 1.., Some(last)) = (over(&self.parts), at.checked_sub(1)) {
            let wanted = width(&self.parts[last].1).saturating_sub(left);
            self.parts[last].1 = cut(&self.parts[last].1, wanted);
            at = last;
        }
        let painted = self.parts.iter().map(|(role, text)| match role {
            Some(role) if !text.is_empty() => style.paint(*role, text),
            _ => text.clone(),
        });
        painted.collect()
    }
}

/// The columns of the terminal that stdout is, or that `$COLUMNS` says. `None` if stdout is no
/// terminal: then lines are not shortened.
pub fn columns() -> Option<usize> {
    let stdout = std::io::stdout();
    if !std::io::IsTerminal::is_terminal(&stdout) {
        return None;
    }
    let said = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let size = rustix::termios::tcgetwinsize(&stdout).ok();
    let columns = said.or(size.map(|size| usize::from(size.ws_col)));
    columns.filter(|columns| *columns >= 20).or(Some(80))
}

/// A line of a file or command as text without control characters, which could change the terminal.
/// A tab stays, and a newline, as in the text of `sh -c`, becomes a space. A carriage return at the
/// end is left out.
pub fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(' '),
            c if c.is_control() && c != '\t' => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// The text without control characters, cut to `columns`.
pub fn excerpt(text: &str, columns: usize) -> String {
    cut(&printable(text.as_bytes()), columns)
}

/// The text, cut to `columns` with `…` at its end if it is wider.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += char_width(c);
        if used > columns {
            break;
        }
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// A text that ends with a file's name, cut at its beginning, so that the name stays.
pub fn cut_before_name(text: &str, columns: usize) -> String {
    let mut over = width(text).saturating_sub(columns);
    if over == 0 {
        return text.to_owned();
    }
    // The sign for the part that is left out takes a column.
    over += 1;
    let mut rest = text.char_indices();
    let mut left_out = 0;
    let from = rest.find_map(|(at, c)| match left_out >= over {
        true => Some(at),
        false => {
            left_out += char_width(c);
            None
        }
    });
    let tail = &text[from.unwrap_or(text.len())..];
    // Whole names of directories, unless that leaves little.
    let slash = tail
        .find('/')
        .filter(|at| at + 1 < tail.len() && 2 * at <= tail.len());
    let tail = &tail[slash.unwrap_or(0)..];
    match columns {
        0 => String::new(),
        _ => format!("…{tail}"),
    }
}

/// The columns that a text takes on a terminal.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Characters of East Asian scripts and pictures take two columns, combining marks take none. A tab
/// takes eight columns at most.
fn char_width(c: char) -> usize {
    match c as u32 {
        0x9 => 8,
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flexible_part_gives_way_and_then_the_last() {
        let line = |columns| {
            let mut line = Line::default();
            line.add(None, "id  ");
            line.add_flexible(Role::Command, "a long command with words");
            line.add(None, "  # note");
            line.text(Style::PLAIN, columns)
        };
        assert_eq!(line(None), "id  a long command with words  # note");
        assert_eq!(line(Some(30)), "id  a long command wi…  # note");
        assert_eq!(line(Some(22)), "id  a long command … …");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!((width("日本"), width("e\u{301}")), (4, 1));
        assert_eq!(cut("日本語", 4), "日…");
    }

    #[test]
    fn a_path_is_cut_before_its_name() {
        let path = "/home/anna/projects/survey/results/table.csv (+2)";
        assert_eq!(cut_before_name(path, 60), path);
        assert_eq!(cut_before_name(path, 32), "…/survey/results/table.csv (+2)");
        assert_eq!(
            cut_before_name("a-long-name-without-directory", 8),
            "…rectory"
        );
        assert_eq!(cut_before_name("/日本語/表.csv", 10), "…/表.csv");
        assert_eq!(cut_before_name("abc", 0), "");
    }

    #[test]
    fn a_text_with_control_characters_is_one_harmless_line() {
        assert_eq!(excerpt("a\nb", 10), "a b");
        assert_eq!(excerpt("abcdef", 4), "abc…");
        assert_eq!(excerpt("a\u{1b}[2J", 20), "a\\u{1b}[2J");
        assert_eq!(printable(b"\tx\xff\r"), "\tx\u{fffd}");
        assert_eq!(excerpt("\ta\tb", 12), "\ta…");
    }
}
