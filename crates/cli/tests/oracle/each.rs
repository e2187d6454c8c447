//! The corpus, case by case, on several threads.

use std::sync::Mutex;
use std::thread;

use backstory_testkit::need::needs;
use backstory_testkit::oracle::Case;

/// More than one, so that recordings meet other recordings.
const THREADS: usize = 2;

/// Runs `work` for every case whose tools exist, and returns the results in the order of the cases.
/// `BACKSTORY_ORACLE_ONLY` selects the cases whose name contains one of its parts.
pub fn each<T: Send>(
    cases: impl Iterator<Item = &'static Case>,
    work: impl Fn(&'static Case) -> T + Sync,
) -> Vec<(&'static Case, T)> {
    let only = std::env::var("BACKSTORY_ORACLE_ONLY").unwrap_or_default();
    let asked = |case: &Case| only.split(',').any(|part| case.name.contains(part));
    let chosen = cases.filter(|c| asked(c) && needs(c.name, c.needs));
    let queue = Mutex::new(chosen.collect::<Vec<_>>().into_iter().enumerate());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("the queue").next();
                    let Some((place, case)) = next else { break };
                    let result = work(case);
                    done.lock()
                        .expect("the results")
                        .push((place, case, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("the results");
    done.sort_by_key(|(place, ..)| *place);
    done.into_iter()
        .map(|(_, case, result)| (case, result))
        .collect()
}
