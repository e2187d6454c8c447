//! What the oracle, identity and kill tests start from: a place with the built `backstory` and all fixtures in it.

use std::path::Path;
use std::sync::Mutex;
use std::thread;

use backstory_testkit::fixtures;
use backstory_testkit::need::needs;
use backstory_testkit::oracle::{Bench, Case};
use backstory_testkit::stage::Stage;
use backstory_testkit::user::User;

/// Cases are run by this many threads: more than one, so that recordings meet other recordings.
const THREADS: usize = 2;

/// A place for cases run as `user`.
pub fn bench(user: User) -> Bench {
    let stage = Stage::of(user, Path::new(env!("CARGO_BIN_EXE_backstory"))).expect("a place for the test");
    for fixture in fixtures::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("fixtures compile") {
        stage.install(&fixture).expect("a fixture is staged");
    }
    Bench::new(stage)
}

/// Runs `work` for every case whose tools are there (and, if `BACKSTORY_ORACLE_ONLY` is set, whose name contains it), and returns
/// what it returned, in the order of the cases.
pub fn each<T: Send>(cases: impl Iterator<Item = &'static Case>, work: impl Fn(&'static Case) -> T + Sync) -> Vec<(&'static str, T)> {
    let only = std::env::var("BACKSTORY_ORACLE_ONLY").unwrap_or_default();
    let chosen = cases.filter(|c| c.name.contains(&only) && needs(c.name, c.needs)).enumerate();
    let queue = Mutex::new(chosen);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("the queue").next();
                    let Some((place, case)) = next else { break };
                    let result = work(case);
                    done.lock().expect("the results").push((place, case.name, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("the results");
    done.sort_by_key(|(place, ..)| *place);
    done.into_iter().map(|(_, name, result)| (name, result)).collect()
}
