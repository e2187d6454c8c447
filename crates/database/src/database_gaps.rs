//! The gaps in the record of a database, as reasons of its run.

use std::collections::BTreeSet;

use backstory_eventlog::Reason;
use backstory_eventlog::calendar::utc_second;

use crate::change_budget::{MOST_BYTES, MOST_ROWS};

/// The gaps in the record of a database. Each is reported once.
#[derive(Debug, Default)]
pub struct DatabaseGaps {
    sentences: BTreeSet<String>,
    /// Statements that did not parse.
    unparsed: u64,
    /// Row changes that were too many for their transactions.
    left_out: u64,
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

    /// Notes row changes of a transaction that were too many to be kept.
    pub fn left_out(&mut self, count: u64) {
        self.left_out += count;
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

    /// Notes the number of all row changes that were left out.
    fn note_left_out(&mut self) {
        let (changes_are, their_transaction) = match self.left_out {
            1 => ("row change is", "its transaction has"),
            _ => ("row changes are", "their transactions have"),
        };
        let most = MOST_BYTES >> 20;
        let what = format!(
            "{changes_are} unknown, because {their_transaction} more than {MOST_ROWS} changes, or \
             more than {most} MiB of them"
        );
        self.count(self.left_out, &what);
    }

    /// The reasons of the run.
    pub fn reasons(mut self) -> Vec<Reason> {
        self.note_left_out();
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

    #[test]
    fn changes_that_were_too_many_for_their_transactions_are_counted_together() {
        let reported = |counts: &[u64]| {
            let mut gaps = DatabaseGaps::default();
            counts.iter().for_each(|count| gaps.left_out(*count));
            let reasons = gaps.reasons().into_iter();
            reasons.map(|reason| reason.to_string()).collect::<Vec<_>>()
        };
        assert!(reported(&[0]).is_empty());
        let one = reported(&[1]);
        assert!(one[0].contains("1 row change is unknown"), "{one:?}");
        let several = reported(&[2, 0, 3]);
        assert_eq!(several.len(), 1, "{several:?}");
        for part in ["5 row changes are unknown", "100000 changes", "256 MiB"] {
            assert!(several[0].contains(part), "{part}: {several:?}");
        }
    }
}
