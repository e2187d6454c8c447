//! Versions that come after one: what that held is found at them where nobody wrote between.

use std::collections::{HashMap, HashSet, VecDeque};

use backstory_files::Ident;
use backstory_graph::model::Entity;

/// The versions that hold what this one held, since nobody wrote on the way to them; and those that hold what became of it, nearest first.
/// `derived`: by a version's number those that came of it; `wrote`: whether somebody wrote the version with this number.
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
