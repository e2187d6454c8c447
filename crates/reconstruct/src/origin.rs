//! Where the bytes of a difference came from: the lineage of the first difference.
//!
//! In: the whole recorded run, and a word of an output. Out: the last input before that output
//! which holds the word. Such an input is likely the source, and no proof: a program may have made
//! the same word itself. Absent: words that two reads split, and files that the log refers to.

use crate::divergence::{ByteOrigin, Divergence};
use crate::recorded::RecordedRun;
use crate::verdict::Reconstruction;

/// Shortest word that is looked for. A shorter one is somewhere in any input.
const SHORTEST: usize = 3;

/// The last input before a time that holds this word.
fn origin_of(run: &RecordedRun, word: &[u8], before: u64) -> Option<ByteOrigin> {
    if word.len() < SHORTEST {
        return None;
    }
    let mut found: Option<ByteOrigin> = None;
    for (index, process) in run.processes.iter().enumerate() {
        let streams = process.streams.iter().map(|(id, s)| (Some(*id), &s.input));
        for (id, input) in streams.chain([(None, &process.random)]) {
            let Some((time, position)) = input.last_with(word, before) else {
                continue;
            };
            if found.as_ref().is_some_and(|found| time <= found.time) {
                continue;
            }
            let belongs = |unit: &crate::unit::RecordedUnit| {
                Some(unit.connection) == id && unit.has(index, time)
            };
            let mut units = run.units.iter();
            let request = units.position(|unit| unit.as_ref().is_some_and(belongs));
            found = Some(ByteOrigin {
                pid: process.pid,
                program: String::from_utf8_lossy(&process.start.program).into_owned(),
                object: match id {
                    Some(id) => run.resources[id].label(),
                    None => "the random numbers of the kernel".to_owned(),
                },
                position,
                time,
                request: request.map(|at| at + 1),
            });
        }
    }
    found
}

/// Finds the origins of the first difference.
pub fn find(run: &RecordedRun, reconstruction: &mut Reconstruction) {
    let all = reconstruction.processes.iter_mut();
    let Some(first) = all.filter_map(|process| process.divergence.as_mut()).next() else {
        return;
    };
    let Divergence { words, time, .. } = &*first;
    let then = origin_of(run, &words.0, *time);
    // The word that came now may have entered the recorded run at any time.
    let now = origin_of(run, &words.1, u64::MAX);
    first.origins = (then, now);
}

#[cfg(test)]
mod tests {
    use super::origin_of;
    use crate::input::InputItem;
    use crate::process::{RecordedProcess, ResourceStreams};
    use crate::recorded::RecordedRun;
    use crate::resource::{Origin, Resource};

    #[test]
    fn a_word_came_from_the_last_input_before_it_that_holds_it() {
        let mut streams = ResourceStreams::default();
        for (time, text) in [(10, "set yellow"), (20, "set purple"), (30, "yellow again")] {
            let bytes = InputItem::Bytes(text.into());
            streams.input.push_at(bytes, time);
        }
        let mut process = RecordedProcess::default();
        process.streams.insert(0, streams);
        let run = RecordedRun {
            processes: vec![process],
            resources: vec![Resource::new(Origin::Opened, b"/in", libc::S_IFIFO)],
            ..RecordedRun::default()
        };
        let at = |word: &str, before| {
            let found = origin_of(&run, word.as_bytes(), before);
            found.map(|found| (found.object, found.position, found.time))
        };
        assert_eq!(at("yellow", 25), Some(("/in".to_owned(), 4, 10)));
        assert_eq!(at("yellow", 40), Some(("/in".to_owned(), 20, 30)));
        assert_eq!(at("purple", 15), None);
        assert_eq!(at("ye", 40), None);
    }
}
