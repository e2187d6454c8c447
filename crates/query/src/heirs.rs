//! Later versions with the same content: a version's content is found in a later one if no process
//! wrote in between.

use std::collections::{HashMap, HashSet, VecDeque};

use backstory_files::Ident;
use backstory_graph::model::Entity;

/// Two lists of later versions, nearest first: those with the same content, because no process
/// wrote in between, and the others. `derived` maps a version's number to the versions derived from
/// it. `wrote` says whether a process wrote the version with this number.
pub fn heirs(
    of: &Entity,
    entities: &[Entity],
    derived: &HashMap<u32, Vec<u32>>,
    wrote: &dyn Fn(u32) -> bool,
) -> (Vec<Ident>, Vec<Ident>) {
    let (mut same, mut other, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    let mut waiting = VecDeque::from([(of.id.0, false)]);
    while let Some((at, written)) = waiting.pop_front() {
        for &next in derived.get(&at).into_iter().flatten() {
            let written = written || wrote(next);
            let Some(entity) = entities.get(next as usize).filter(|_| seen.insert(next)) else {
                continue;
            };
            let grown = of
                .ident
                .zip(entity.ident)
                .is_some_and(|(then, now)| then.size != now.size);
            let list = if written || grown {
                &mut other
            } else {
                &mut same
            };
            list.extend(entity.ident);
            waiting.push_back((next, written || grown));
        }
    }
    (same, other)
}
