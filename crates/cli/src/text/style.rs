//! Colours, only on a terminal, and only if the user has not declined them (`NO_COLOR`,
//! `TERM=dumb`).

use std::io::IsTerminal;

/// Roles that text can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The subject of the question.
    Subject,
    /// A command line.
    Command,
    /// Lines and ids of runs, which matter less.
    Dim,
    /// A problem.
    Bad,
    /// A success.
    Good,
}

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// No colours.
    #[cfg(test)]
    pub const PLAIN: Style = Style { colour: false };

    /// The style for stdout.
    pub fn of_stdout() -> Style {
        Style::of(std::io::stdout().is_terminal())
    }

    /// The style for stderr.
    pub fn of_stderr() -> Style {
        Style::of(std::io::stderr().is_terminal())
    }

    fn of(terminal: bool) -> Style {
        let declined = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Style {
            colour: !declined && terminal,
        }
    }

    /// The text in its role.
    pub fn paint(self, role: Role, text: &str) -> String {
        let code = match role {
            Role::Subject => "1",
            Role::Command => "36",
            Role::Dim => "2",
            Role::Bad => "31",
            Role::Good => "32",
        };
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
