//! Where the bytes of a difference came from: the lineage of the first difference.
//!
//! In: a deep log, its requests, and the words of a difference. Out: for each word the last input
//! before that output which holds it. Such an input is likely the source, and no proof: a program
//! may have made the same word itself. Absent: words that two reads split, and files that the log
//! refers to.

use crate::divergence::ByteOrigin;
use crate::read_log::last_inputs;
use crate::recorded::{FoundInput, RecordedRun, SoughtWord};
use crate::unit::RecordedUnit;
use crate::verdict::Reconstruction;
use backstory_deep::DeepLog;

/// Shortest word that is looked for. A shorter one is somewhere in any input.
const SHORTEST: usize = 3;

/// Finds the origins of the first difference in the log, which is read for that. `units`: the
/// requests of the log.
pub fn find(log: &DeepLog, units: &[Option<RecordedUnit>], reconstruction: &mut Reconstruction) {
    let all = reconstruction.processes.iter_mut();
    let Some(first) = all.filter_map(|process| process.divergence.as_mut()).next() else {
        return;
    };
    // The word that came now may have entered the recorded run at any time.
    let both = [(&first.words.0, first.time), (&first.words.1, u64::MAX)];
    let is_long = |word: &[u8]| word.len() >= SHORTEST;
    if !both.iter().any(|(word, _)| is_long(&word[..])) {
        return;
    }
    let sought = both.map(|(word, before)| SoughtWord::new(word, before));
    let (run, sought) = last_inputs(log, sought.into());
    let found = sought.iter().zip(both);
    let found = found.map(|(sought, (word, _))| {
        let found = sought.found.filter(|_| is_long(&word[..]));
        found.map(|found| described(&run, units, found))
    });
    let mut origins = found.collect::<Vec<_>>().into_iter();
    first.origins = (origins.next().flatten(), origins.next().flatten());
}

/// An input in words. `units`: the requests of the run.
fn described(run: &RecordedRun, units: &[Option<RecordedUnit>], found: FoundInput) -> ByteOrigin {
    let FoundInput { id, time, .. } = found;
    let process = &run.processes[found.process];
    let belongs =
        |unit: &RecordedUnit| Some(unit.connection) == id && unit.has(found.process, time);
    let mut all = units.iter();
    let request = all.position(|unit| unit.as_ref().is_some_and(belongs));
    ByteOrigin {
        pid: process.pid,
        program: String::from_utf8_lossy(&process.start.program).into_owned(),
        object: match id {
            Some(id) => run.resources[id].label(),
            None => "the random numbers of the kernel".to_owned(),
        },
        position: found.position,
        time,
        request: request.map(|at| at + 1),
    }
}
