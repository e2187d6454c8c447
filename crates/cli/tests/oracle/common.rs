//! The stage of the oracle, identity and kill tests: the built `backstory` and all fixtures.

use std::path::Path;

use backstory_testkit::fixtures;
use backstory_testkit::oracle::Bench;
use backstory_testkit::stage::Stage;
use backstory_testkit::user::User;

/// A stage for cases run as `user`.
pub fn bench(user: User) -> Bench {
    let stage =
        Stage::of(user, Path::new(env!("CARGO_BIN_EXE_backstory"))).expect("a place for the test");
    for fixture in
        fixtures::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("fixtures compile")
    {
        stage.install(&fixture).expect("a fixture is staged");
    }
    Bench::new(stage)
}
