//! Chooses the stored contents that a store loses first.
//!
//! In: the stored contents, and the recorded runs that made some of them. Out: contents to drop,
//! each with a run that can make it again, if there is one.
//!
//! 1. Contents that a run can make again from inputs that stay. These inputs are then needed.
//! 2. Contents that nothing needs: sources.
//! 3. Contents that (1) needs.
//!
//! Contents of sealed runs go after all others, in the same three groups. Within each group the
//! large and old ones go first.
//!
//! Invariant: the inputs that stand for a dropped content go after everything else that is sealed
//! like them.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use backstory_files::Digest;
use backstory_ordering::SmallSort;

/// A stored content.
#[derive(Debug, Clone, Copy)]
pub struct StoredContent {
    pub digest: Digest,
    pub size: u64,
    /// The time of the last change of its newest file, in ns since 1970.
    pub time: i64,
    /// A sealed run has it.
    pub sealed: bool,
}

/// A run that can be replayed: it was complete and succeeded, and all it read is known.
#[derive(Debug, Clone, Default)]
pub struct MakerRun {
    pub id: String,
    /// Its inputs among the stored contents.
    pub inputs: Vec<Digest>,
    /// The contents that it left.
    pub made: Vec<Digest>,
}

/// Contents of at least `bytes` together, if there are so many, in the order in which they go.
/// `spared` stay.
pub fn least_valuable(
    contents: &[StoredContent],
    makers: &[MakerRun],
    spared: &HashSet<Digest>,
    bytes: u64,
    now: i64,
) -> Vec<(Digest, Option<String>)> {
    let age = |time: i64| now.saturating_sub(time).max(0).unsigned_abs();
    let mut order: Vec<&StoredContent> = contents
        .iter()
        .filter(|one| !spared.contains(&one.digest))
        .collect();
    order.sort_small_by_key(|one| {
        let weight = u128::from(one.size) * u128::from(age(one.time));
        (Reverse(weight), one.digest)
    });
    let stored: HashSet<Digest> = contents.iter().map(|one| one.digest).collect();
    let mut of: HashMap<Digest, Vec<&MakerRun>> = HashMap::new();
    for maker in makers {
        for digest in &maker.made {
            of.entry(*digest).or_default().push(maker);
        }
    }
    let (mut needed, mut gone) = (HashSet::new(), HashSet::new());
    let (mut chosen, mut freed) = (Vec::new(), 0);
    for sealed in [false, true] {
        let group = order.iter().filter(|one| one.sealed == sealed);
        for one in group.clone() {
            if freed >= bytes {
                return chosen;
            }
            let stays = |digest: &Digest| {
                *digest != one.digest && stored.contains(digest) && !gone.contains(digest)
            };
            let mut makers = of.get(&one.digest).into_iter().flatten();
            let again = makers.find(|maker| maker.inputs.iter().all(stays));
            if let Some(maker) = again.filter(|_| !needed.contains(&one.digest)) {
                needed.extend(maker.inputs.iter().copied());
                gone.insert(one.digest);
                chosen.push((one.digest, Some(maker.id.clone())));
                freed += one.size;
            }
        }
        for is_needed in [false, true] {
            for one in group.clone() {
                if freed >= bytes {
                    return chosen;
                }
                if needed.contains(&one.digest) == is_needed && gone.insert(one.digest) {
                    chosen.push((one.digest, None));
                    freed += one.size;
                }
            }
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000;

    fn digest(number: u8) -> Digest {
        Digest([number; 32])
    }

    fn content(number: u8, size: u64) -> StoredContent {
        StoredContent {
            digest: digest(number),
            size,
            time: NOW - 100,
            sealed: false,
        }
    }

    fn maker(id: &str, inputs: &[u8], made: &[u8]) -> MakerRun {
        MakerRun {
            id: id.to_owned(),
            inputs: inputs.iter().copied().map(digest).collect(),
            made: made.iter().copied().map(digest).collect(),
        }
    }

    fn chosen(
        contents: &[StoredContent],
        makers: &[MakerRun],
        bytes: u64,
    ) -> Vec<(u8, Option<String>)> {
        let all = least_valuable(contents, makers, &HashSet::new(), bytes, NOW);
        all.into_iter()
            .map(|(digest, by)| (digest.0[0], by))
            .collect()
    }

    #[test]
    fn what_a_run_can_make_again_goes_before_a_larger_source() {
        let contents = [content(1, 1_000), content(2, 10), content(3, 500)];
        let makers = [maker("r", &[1], &[2])];
        let by = Some("r".to_owned());
        assert_eq!(chosen(&contents, &makers, 0), []);
        assert_eq!(chosen(&contents, &makers, 10), [(2, by.clone())]);
        // Then sources that nothing needs, and last those that stand for what is gone.
        let all = [(2, by), (3, None), (1, None)];
        assert_eq!(chosen(&contents, &makers, u64::MAX), all);
    }

    #[test]
    fn what_stands_for_a_dropped_content_is_not_dropped_as_one_that_can_be_made_again() {
        // 1 makes 2, and 2 makes 3. The largest goes first, and its input stays.
        let contents = [content(1, 10), content(2, 20), content(3, 30)];
        let makers = [maker("a", &[1], &[2]), maker("b", &[2], &[3])];
        let found = chosen(&contents, &makers, 40);
        assert_eq!(found[0], (3, Some("b".to_owned())));
        assert_eq!(found[1], (1, None), "2 is needed for 3, and no more for 1");
    }

    #[test]
    fn a_run_whose_input_is_lost_or_is_its_own_output_makes_nothing_again() {
        let contents = [content(1, 100), content(2, 10)];
        for inputs in [[9], [2]] {
            let makers = [maker("r", &inputs, &[2])];
            assert_eq!(chosen(&contents, &makers, 1), [(1, None)]);
        }
    }

    #[test]
    fn spared_contents_stay() {
        let contents = [content(1, 100), content(2, 10)];
        let spared = HashSet::from([digest(1)]);
        let found = least_valuable(&contents, &[], &spared, u64::MAX, NOW);
        assert_eq!(found, [(digest(2), None)]);
    }

    #[test]
    fn contents_of_sealed_runs_go_after_all_others() {
        let sealed = |number, size| StoredContent {
            sealed: true,
            ..content(number, size)
        };
        // 4 makes 2: a sealed product goes after the last source that is not sealed.
        let contents = [
            content(1, 10),
            sealed(2, 1_000),
            content(3, 20),
            sealed(4, 1),
        ];
        let makers = [maker("r", &[4], &[2])];
        let by = Some("r".to_owned());
        let all = [(3, None), (1, None), (2, by), (4, None)];
        assert_eq!(chosen(&contents, &makers, u64::MAX), all);
        assert_eq!(chosen(&contents, &makers, 30), all[..2]);
    }

    #[test]
    fn old_contents_go_before_young_ones_of_the_same_size() {
        let young = StoredContent {
            time: NOW - 1,
            ..content(1, 10)
        };
        assert_eq!(chosen(&[young, content(2, 10)], &[], 1), [(2, None)]);
    }
}
