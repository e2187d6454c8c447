//! The gaps in the record of a database, as reasons of its run.

use std::collections::BTreeSet;

use backstory_eventlog::Reason;
use backstory_eventlog::calendar::utc_second;

/// The gaps in the record of a database. Each is reported once.
#[derive(Debug, Default)]
pub struct DatabaseGaps {
    sentences: BTreeSet<String>,
    /// Statements that did not parse.
    unparsed: u64,
}

impl DatabaseGaps {
    /// Notes a gap.
    pub fn note(&mut self, what: String) {
        self.sentences.insert(what);
    }

    /// Something is unknown from one time to another, in ns since 1970. `None`: to the end.
    pub fn between(&mut self, what: &str, from: i64, to: Option<i64>, why: &str) {
        let until = match to {
            Some(to) => format!("until {}", utc_second(to)),
            None => "on".to_owned(),
        };
        let from = utc_second(from);
        self.note(format!(
            "{what} from {from} {until} are unknown, because {why}"
        ));
    }

    /// Notes how often something happened, if it did.
    pub fn count(&mut self, count: u64, what: &str) {
        if count > 0 {
            self.note(format!("{count} {what}"));
        }
    }

    /// Notes statements that did not parse.
    pub fn unparsed(&mut self, count: u64) {
        self.unparsed += count;
    }

    /// Notes lines of the server's log that could not be read.
    pub fn unreadable_lines(&mut self, count: u64) {
        let what = match count {
            1 => "line of the server's log has another form",
            _ => "lines of the server's log have another form",
        };
        self.count(count, what);
    }

    /// Lines of the server's log were removed. `count`: how many, if that is known. `between`: the
    /// times before and after them.
    pub fn removed_lines(&mut self, count: Option<u64>, between: &(String, String)) {
        let count = count.map_or(String::new(), |count| format!("{count} "));
        let (begin, end) = between;
        self.note(format!(
            "{count}lines of the server's log, written between {begin} and {end}, were removed \
             before they were read"
        ));
    }

    /// The reasons of the run.
    pub fn reasons(self) -> Vec<Reason> {
        let gaps = self.sentences.into_iter();
        let gaps = gaps.map(|what| Reason::DatabaseGap { what });
        let unparsed = (self.unparsed > 0).then(|| Reason::unparsed(self.unparsed));
        gaps.chain(unparsed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_and_one_statement_are_reported_in_the_singular() {
        let reported = |count| {
            let mut gaps = DatabaseGaps::default();
            gaps.unparsed(count);
            gaps.unreadable_lines(count);
            gaps.reasons()
        };
        let lines = |what: &str| {
            let what = what.to_owned();
            Reason::DatabaseGap { what }
        };
        let one = lines("1 line of the server's log has another form");
        assert_eq!(reported(1), [one, Reason::unparsed(1)]);
        let two = lines("2 lines of the server's log have another form");
        assert_eq!(reported(2), [two, Reason::unparsed(2)]);
        assert_eq!(reported(0), []);
    }
}
