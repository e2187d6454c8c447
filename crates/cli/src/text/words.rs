//! The words for what activities do to entities, read in either direction, and for numbers of
//! things.

pub use backstory_vocabulary::{counted, grouped, noun};

use backstory_query::answer::Flow;

/// The direction in which a lineage is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `of`: towards causes.
    Of,
    /// `uses`: towards effects.
    Uses,
}

/// The words before the name of the node that a link leads to.
pub fn step(flow: &Flow, direction: Direction) -> &'static str {
    match (flow, direction) {
        (Flow::Used(relation), Direction::Of) | (Flow::Generated(relation), Direction::Uses) => {
            relation.words().active
        }
        (Flow::Used(relation), Direction::Uses) | (Flow::Generated(relation), Direction::Of) => {
            relation.words().passive
        }
        (Flow::Derived, Direction::Of) => "from",
        (Flow::Derived, Direction::Uses) => "became",
        (Flow::Same, _) => "same as",
        (Flow::Alike, _) => "same content as",
        (Flow::Informed(how), Direction::Of) => how.words().cause,
        (Flow::Informed(how), Direction::Uses) => how.words().effect,
    }
}

/// The name of a signal that kills programs.
pub fn signal(number: i32) -> Option<&'static str> {
    const NAMES: [&str; 15] = [
        "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE",
        "SIGKILL", "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM",
    ];
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    match number {
        24 => Some("SIGXCPU"),
        25 => Some("SIGXFSZ"),
        31 => Some("SIGSYS"),
        _ => NAMES.get(index).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_agrees_with_its_number_and_thousands_stand_apart() {
        let files = |number| counted(number, "file", "files");
        assert_eq!(
            [files(0), files(1), files(2)],
            ["0 files", "1 file", "2 files"]
        );
        let numbers = [999, 1_000, 16_184, 1_000_000].map(|number: u64| grouped(number));
        assert_eq!(numbers, ["999", "1,000", "16,184", "1,000,000"]);
    }
}
