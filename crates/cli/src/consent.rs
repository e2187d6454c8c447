//! A question that only the user can answer, before something that cannot be taken back.

use std::io::{self, BufRead, IsTerminal, Write};

/// True if a user at a terminal can be asked.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on stderr. Only `y` and `yes` agree.
///
/// # Errors
///
/// If the terminal cannot be written or read.
pub fn ask(question: &str) -> io::Result<bool> {
    write!(io::stderr(), "{question} [y/N] ")?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}
