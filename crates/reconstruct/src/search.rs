//! The search for what a request needs: earlier requests, and the right moment.
//!
//! In: the verdicts of attempts. Out: the next attempt. The order is:
//!
//! 1. the request alone; one of a client comes with all before it
//! 2. with the earlier requests on its connection
//! 3. with those that wrote a file which it opened
//! 4. with those that have a rare word in common with it
//! 5. with those of its process
//! 6. with all earlier ones
//!
//! If these suffice, fewer of them are tried, by halves. If the time may be the reason for a
//! difference, the same is tried with a shifted clock before. A whole run has such attempts only.
//!
//! - If a date differs, the shift by which it becomes the recorded one comes first, with any set.
//! - Then come shifts that the record allows, for the request alone and with its connection. Most
//!   of them come behind the last set, so they use up no attempt of another one.
//! - The usual shifts, which nothing suggests, are the last ones before the next set.
//!
//! Invariant: the number of attempts has a bound, and the result is an attempt that was made.

use crate::shift::ClockShift;
use backstory_ordering::SmallCollect;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// One attempt: what is fed beside the request, and the change of the clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Attempt {
    /// Numbers of earlier requests.
    pub fed: Vec<usize>,
    /// The change of the clock.
    pub shift: ClockShift,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptResult {
    /// The output is equal.
    Equal,
    /// It differs.
    Different,
    /// It differs, perhaps in a date, and the program took the time.
    DifferentWithTime,
}

/// Requests that a request may need.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    /// The earlier ones on its connection.
    pub connection: Vec<usize>,
    /// The earlier ones that wrote a file which it opened.
    pub writers: Vec<usize>,
    /// The earlier ones that have a rare word in common with it: a key, a name, a session.
    pub related: Vec<usize>,
    /// The earlier ones that the same process served.
    pub process: Vec<usize>,
    /// All earlier ones of the run's servers.
    pub earlier: Vec<usize>,
    /// For each of them the one before it on its own connection, which it needs itself: a login.
    pub before: HashMap<usize, usize>,
}

/// Shifts of all times that are tried last, in ns. The record does not say that they are right.
const SHIFTS: [i64; 4] = [2_000_000, -2_000_000, 50_000_000, -50_000_000];

/// Shifts of a date and from the record that are tried for a set while another set follows. With
/// the usual ones, the request alone and its connection leave attempts for all four other sets.
const SHIFTS_BEFORE_SETS: usize = 2;

/// The search for one request, or for the moment of a whole run.
#[derive(Debug, Clone)]
pub struct Search {
    /// Attempts to make before any halving.
    planned: Vec<Attempt>,
    /// The set that suffices, and the halves of it that are tried next.
    sufficient: Option<Vec<usize>>,
    halves: Vec<Vec<usize>>,
    current: Attempt,
    connection: BTreeSet<usize>,
    before: HashMap<usize, usize>,
    /// Shifts that the record allows, and those that are tried behind them. The next is the last.
    allowed: Vec<ClockShift>,
    usual: Vec<ClockShift>,
    /// Attempts with further shifts, behind all sets.
    later: VecDeque<Attempt>,
    tries: u32,
    most: u32,
}

impl Search {
    /// A search of at most `most` attempts.
    pub fn new(candidates: &Candidates, most: u32) -> Search {
        let connection: BTreeSet<usize> = candidates.connection.iter().copied().into_tree();
        let before = &candidates.before;
        let with = |more: &[usize]| with_those_before(before, connection.iter().chain(more));
        let mut sets = vec![Vec::new()];
        let (writers, process) = (&candidates.writers, &candidates.process);
        let related = [&writers[..], &candidates.related].concat();
        for more in [&[][..], writers, &related, process, &candidates.earlier] {
            let set = with(more);
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
        let plain = |fed| Attempt {
            fed,
            shift: ClockShift::default(),
        };
        let of_all = |ns: &i64| ClockShift {
            ns: *ns,
            behind: None,
        };
        let mut planned: Vec<Attempt> = sets.into_iter().map(plain).collect();
        planned.reverse();
        Search {
            planned,
            sufficient: None,
            halves: Vec::new(),
            current: Attempt::default(),
            before: candidates.before.clone(),
            connection,
            allowed: Vec::new(),
            usual: SHIFTS.iter().rev().map(of_all).collect(),
            later: VecDeque::new(),
            tries: 0,
            most: most.max(1),
        }
    }

    /// The next attempt. `None`: the search is over.
    pub fn attempt(&mut self) -> Option<Attempt> {
        if self.tries == self.most {
            return None;
        }
        let next = match &self.sufficient {
            Some(_) => Attempt {
                fed: self.halves.pop()?,
                shift: self.current.shift,
            },
            None => self.planned.pop().or_else(|| self.later.pop_front())?,
        };
        self.tries += 1;
        self.current = next.clone();
        Some(next)
    }

    /// True if the present attempt has all earlier requests of the connection. Without these, a
    /// program may take the request for the first one there, and refuse it.
    pub fn has_connection(&self) -> bool {
        // Sets are in order, and a kept connection can have a hundred thousand requests.
        let fed = &self.current.fed;
        let mut own = self.connection.iter();
        own.all(|number| fed.binary_search(number).is_ok())
    }

    /// Number of attempts so far.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// Most attempts that are made.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// The last attempt ended so. `dated`: the changes of the clock by which a date that differs
    /// becomes the recorded one. `shifts`: those that the record allows.
    pub fn ended(&mut self, result: AttemptResult, dated: &[ClockShift], shifts: &[ClockShift]) {
        match result {
            AttemptResult::Equal => {
                let set = self.current.fed.clone();
                self.halves = self.halves_of(&set);
                self.sufficient = Some(set);
            }
            _ if self.sufficient.is_some() => {}
            _ if self.is_simple() => self.shift(result, &[dated, shifts].concat()),
            _ => self.shift_by_date(dated),
        }
    }

    /// Plans the same at another moment.
    fn shift(&mut self, result: AttemptResult, shifts: &[ClockShift]) {
        if self.current.shift == ClockShift::default() {
            let most = match self.planned.is_empty() {
                true => shifts.len(),
                false => SHIFTS_BEFORE_SETS.min(shifts.len()),
            };
            let (first, others) = shifts.split_at(most);
            self.allowed = first.iter().rev().copied().collect();
            let fed = &self.current.fed;
            self.later.extend(others.iter().map(|shift| Attempt {
                fed: fed.clone(),
                shift: *shift,
            }));
        }
        let next = match (self.allowed.pop(), result) {
            (None, AttemptResult::DifferentWithTime) => self.usual.pop(),
            (allowed, _) => allowed,
        };
        if let Some(shift) = next {
            let fed = self.current.fed.clone();
            self.planned.push(Attempt { fed, shift });
        }
    }

    /// Plans the same set of further requests with the last change that a date suggests. If the
    /// dates are close, that is one of the whole clock. No other set is left out for it.
    fn shift_by_date(&mut self, dated: &[ClockShift]) {
        let is_first = self.current.shift == ClockShift::default();
        let has_room = self.planned.len() < (self.most - self.tries) as usize;
        if let Some(shift) = dated.last().copied().filter(|_| is_first && has_room) {
            let fed = self.current.fed.clone();
            self.planned.push(Attempt { fed, shift });
        }
    }

    /// Other moments are tried for the request and its connection alone.
    fn is_simple(&self) -> bool {
        self.current.fed.iter().all(|n| self.connection.contains(n))
    }

    /// The later and the earlier half of those that another connection made. The later is tried
    /// first.
    fn halves_of(&self, set: &[usize]) -> Vec<Vec<usize>> {
        let own: Vec<usize> = set
            .iter()
            .copied()
            .filter(|n| self.connection.contains(n))
            .collect();
        let others: Vec<usize> = set
            .iter()
            .copied()
            .filter(|n| !self.connection.contains(n))
            .collect();
        if others.len() < 2 {
            return Vec::new();
        }
        let (earlier, later) = others.split_at(others.len() / 2);
        let with = |half: &[usize]| with_those_before(&self.before, half.iter().chain(&own));
        let mut halves = vec![with(earlier), with(later)];
        halves.retain(|half| half.len() < set.len());
        halves
    }
}

/// These requests, each with those before it on its own connection.
fn with_those_before<'a>(
    before: &HashMap<usize, usize>,
    requests: impl Iterator<Item = &'a usize>,
) -> Vec<usize> {
    let mut all: BTreeSet<usize> = BTreeSet::new();
    for number in requests {
        let mut next = Some(*number);
        while let Some(number) = next.filter(|number| all.insert(*number)) {
            next = before.get(&number).copied();
        }
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::{Attempt, AttemptResult, Candidates, SHIFTS, Search};
    use crate::shift::{self, ClockShift};
    use std::collections::HashMap;

    /// Searches for a request that needs all of these.
    fn search(candidates: &Candidates, needs: &[usize], most: u32) -> (Option<Attempt>, u32) {
        let mut search = Search::new(candidates, most);
        let mut best = None;
        while let Some(attempt) = search.attempt() {
            let equal = needs.iter().all(|need| attempt.fed.contains(need));
            let result = match equal {
                true => AttemptResult::Equal,
                false => AttemptResult::Different,
            };
            search.ended(result, &[], &[]);
            if equal {
                best = Some(attempt);
            }
        }
        (best, search.tries())
    }

    fn candidates() -> Candidates {
        Candidates {
            connection: vec![40],
            writers: vec![7],
            related: Vec::new(),
            process: Vec::new(),
            earlier: (1..50).collect(),
            before: HashMap::new(),
        }
    }

    #[test]
    fn a_request_on_another_connection_comes_with_those_before_it_there() {
        let candidates = Candidates {
            earlier: (1..50).collect(),
            before: HashMap::from([(30, 29), (29, 28), (7, 6)]),
            ..candidates()
        };
        let fed = |needs: &[usize]| search(&candidates, needs, 20).0.map(|found| found.fed);
        assert_eq!(fed(&[7]), Some(vec![6, 7, 40]));
        assert_eq!(fed(&[30]), Some(vec![28, 29, 30, 40]));
        assert_eq!(fed(&[28]), Some(vec![28, 40]));
    }

    #[test]
    fn a_request_that_needs_nothing_takes_one_attempt() {
        let (found, tries) = search(&candidates(), &[], 14);
        assert_eq!((found, tries), (Some(Attempt::default()), 1));
    }

    #[test]
    fn connection_writers_and_all_earlier_requests_are_tried_in_this_order() {
        let fed = |needs: &[usize]| search(&candidates(), needs, 14).0.map(|found| found.fed);
        assert_eq!(fed(&[40]), Some(vec![40]));
        assert_eq!(fed(&[7]), Some(vec![7, 40]));
        assert_eq!(fed(&[30]), Some(vec![30, 40]));
    }

    #[test]
    fn an_attempt_without_the_earlier_requests_of_the_connection_is_told_from_the_others() {
        let mut search = Search::new(&candidates(), 3);
        let mut has = Vec::new();
        while search.attempt().is_some() {
            has.push(search.has_connection());
            search.ended(AttemptResult::Different, &[], &[]);
        }
        assert_eq!(has, [false, true, true]);
    }

    #[test]
    fn requests_with_a_word_in_common_are_tried_before_all_those_of_the_process() {
        let candidates = Candidates {
            related: vec![11, 12],
            process: (1..50).collect(),
            ..candidates()
        };
        let (found, tries) = search(&candidates, &[11, 12], 14);
        assert_eq!(found.map(|found| found.fed), Some(vec![11, 12, 40]));
        // The request alone, its connection, the writers, the related ones, and three halves.
        assert_eq!(tries, 7);
    }

    #[test]
    fn the_number_of_attempts_is_bounded_and_the_best_attempt_is_the_result() {
        let (found, tries) = search(&candidates(), &[3, 45], 6);
        assert_eq!(tries, 6);
        assert!(found.is_some_and(|found| found.fed.contains(&3) && found.fed.contains(&45)));
        assert_eq!(search(&candidates(), &[99], 14), (None, 4));
    }

    /// All attempts, if each of them ends so, and the record allows these shifts, in ns.
    fn attempts(
        candidates: &Candidates,
        result: AttemptResult,
        (allowed, most): (&[i64], u32),
    ) -> Vec<Attempt> {
        let shift = |ns: &i64| ClockShift {
            ns: *ns,
            behind: Some(1),
        };
        let allowed: Vec<ClockShift> = allowed.iter().map(shift).collect();
        let mut search = Search::new(candidates, most);
        let mut tried = Vec::new();
        while let Some(attempt) = search.attempt() {
            tried.push(attempt);
            search.ended(result, &[], &allowed);
        }
        tried
    }

    /// The shifts of all attempts at a whole run, in ns.
    fn shifts(result: AttemptResult, allowed: &[i64], most: u32) -> Vec<i64> {
        let tried = attempts(&Candidates::default(), result, (allowed, most));
        tried.iter().map(|attempt| attempt.shift.ns).collect()
    }

    #[test]
    fn every_set_of_earlier_requests_is_tried_however_many_shifts_the_record_allows() {
        let candidates = Candidates {
            related: vec![11, 12],
            process: (1..20).collect(),
            ..candidates()
        };
        let allowed: Vec<i64> = (1..).take(shift::MOST).collect();
        for result in [AttemptResult::Different, AttemptResult::DifferentWithTime] {
            let tried = attempts(&candidates, result, (&allowed[..], 14));
            let sets = tried.iter().filter(|one| one.shift.ns == 0);
            let sets: Vec<usize> = sets.map(|one| one.fed.len()).collect();
            assert_eq!(sets, [0, 1, 2, 4, 20, 49], "{result:?}");
            assert_eq!(tried.len(), 14, "{result:?}");
        }
    }

    #[test]
    fn further_shifts_that_the_record_allows_come_behind_all_sets() {
        let allowed = (&[7, 8, 9][..], 14);
        let tried = attempts(&candidates(), AttemptResult::Different, allowed);
        let tried = tried.iter().map(|one| (one.fed.len(), one.shift.ns));
        let mut expected: Vec<(usize, i64)> = vec![(0, 0), (0, 7), (0, 8)];
        expected.extend([(1, 0), (1, 7), (1, 8)]);
        expected.extend([(2, 0), (49, 0), (0, 9), (1, 9)]);
        assert_eq!(tried.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn another_moment_is_tried_if_the_program_took_the_time() {
        let timed = AttemptResult::DifferentWithTime;
        assert_eq!(shifts(timed, &[], 3), [0, 2_000_000, -2_000_000]);
        assert_eq!(shifts(timed, &[], 14), [&[0][..], &SHIFTS].concat());
    }

    /// A change of the whole clock by a second.
    const BY_DATE: ClockShift = ClockShift {
        ns: -1_000_000_000,
        behind: None,
    };

    /// All attempts with the number of their requests and their shift. Each one is different in a
    /// date unless `is_equal` is true for it.
    fn dated(
        (candidates, most): (&Candidates, u32),
        is_equal: impl Fn(&Attempt) -> bool,
        allowed: &[ClockShift],
    ) -> Vec<(usize, i64)> {
        let mut search = Search::new(candidates, most);
        let mut tried = Vec::new();
        while let Some(attempt) = search.attempt() {
            tried.push((attempt.fed.len(), attempt.shift.ns));
            let result = match is_equal(&attempt) {
                true => AttemptResult::Equal,
                false => AttemptResult::DifferentWithTime,
            };
            search.ended(result, &[BY_DATE], allowed);
        }
        tried
    }

    #[test]
    fn the_shift_of_a_date_is_tried_before_all_sets_and_all_other_shifts() {
        let allowed = [7, 8].map(|ns| ClockShift {
            ns,
            behind: Some(1),
        });
        let tried = dated((&candidates(), 14), |one| one.shift == BY_DATE, &allowed);
        assert_eq!(tried, [(0, 0), (0, BY_DATE.ns)]);
        let tried = dated((&candidates(), 4), |_| false, &allowed);
        assert_eq!(tried, [(0, 0), (0, BY_DATE.ns), (0, 7), (0, SHIFTS[0])]);
    }

    #[test]
    fn a_set_of_requests_that_differs_in_a_date_is_tried_with_its_shift_at_once() {
        let by_date = |one: &Attempt| one.fed.len() == 2 && one.shift == BY_DATE;
        let tried = dated((&candidates(), 14), by_date, &[]);
        assert_eq!(tried[tried.len() - 2..], [(2, 0), (2, BY_DATE.ns)]);
        assert_eq!(tried.len(), 10);
    }

    #[test]
    fn the_shifts_of_dates_leave_an_attempt_for_each_set() {
        let candidates = Candidates {
            related: vec![11, 12],
            process: (1..20).collect(),
            ..candidates()
        };
        let allowed = [7, 8, 9].map(|ns| ClockShift {
            ns,
            behind: Some(1),
        });
        let tried = dated((&candidates, 14), |_| false, &allowed);
        let sets = tried.iter().filter(|one| one.1 == 0).map(|one| one.0);
        assert_eq!(sets.collect::<Vec<_>>(), [0, 1, 2, 4, 20, 49]);
        assert_eq!(tried.len(), 14);
    }

    #[test]
    fn the_moments_that_the_record_allows_come_before_the_usual_ones() {
        let timed = AttemptResult::DifferentWithTime;
        assert_eq!(
            shifts(timed, &[80, 90], 14),
            [&[0, 80, 90][..], &SHIFTS].concat()
        );
        assert_eq!(shifts(timed, &[80, 90], 2), [0, 80]);
    }

    #[test]
    fn other_bytes_than_a_date_are_tried_at_allowed_moments_only() {
        assert_eq!(shifts(AttemptResult::Different, &[80], 14), [0, 80]);
        assert_eq!(shifts(AttemptResult::Different, &[], 14), [0]);
    }

    #[test]
    fn an_equal_execution_is_tried_at_no_other_moment() {
        assert_eq!(shifts(AttemptResult::Equal, &[80], 14), [0]);
    }
}
