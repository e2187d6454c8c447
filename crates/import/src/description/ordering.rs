//! Orders activities: by their begin, those that start others before these.

use super::moments::DescribedMoments;
use super::statements::Description;
use backstory_graph::lineage;
use backstory_graph::model::Informed;
use backstory_ordering::SmallSort;

/// The order of activities.
#[derive(Debug, Default)]
pub(super) struct ActivityOrder {
    /// Their numbers in the document, in the order of the run.
    pub(super) all: Vec<u32>,
    /// The place of each in `all`.
    pub(super) place: Vec<u32>,
    /// The activity that started each, by the numbers of the document.
    pub(super) parent: Vec<Option<u32>>,
    /// The number of each program in its process.
    pub(super) epoch: Vec<u32>,
    /// Which ended by an exec.
    pub(super) execed: Vec<bool>,
}

impl ActivityOrder {
    /// The order of a description's activities.
    pub(super) fn of(description: &Description, moments: &DescribedMoments) -> ActivityOrder {
        let many = description.activities.len();
        let mut order = ActivityOrder {
            parent: vec![None; many],
            epoch: vec![1; many],
            execed: vec![false; many],
            ..ActivityOrder::default()
        };
        let starts = description
            .informings
            .iter()
            .filter(|one| lineage::informs(one.why));
        let mut became = vec![false; many];
        for one in starts {
            let (from, to) = (one.from.0 as usize, one.to.0 as usize);
            order.parent[to].get_or_insert(one.from.0);
            if one.why == Informed::Exec {
                order.execed[from] = true;
                became[to] = true;
            }
        }
        order.cut_cycles();
        let mut by_begin: Vec<u32> = (0..many as u32).collect();
        by_begin.sort_small_by_key(|&at| (moments.activities[at as usize].start, at));
        order.place = vec![u32::MAX; many];
        let mut chain = Vec::new();
        for at in by_begin {
            let mut next = Some(at);
            while let Some(one) = next.filter(|&one| order.place[one as usize] == u32::MAX) {
                order.place[one as usize] = 0;
                chain.push(one);
                next = order.parent[one as usize];
            }
            while let Some(one) = chain.pop() {
                order.place[one as usize] = order.all.len() as u32;
                order.all.push(one);
                let parent = order.parent[one as usize].filter(|_| became[one as usize]);
                if let Some(parent) = parent {
                    let before = order.epoch[parent as usize];
                    order.epoch[one as usize] = (before + 1).min(255);
                }
            }
        }
        order
    }

    /// Drops a starter that the activity itself started, directly or not.
    fn cut_cycles(&mut self) {
        // 0: not visited; otherwise the number of the walk that visited it.
        let mut walk = vec![0u32; self.parent.len()];
        for at in 0..self.parent.len() {
            let (mut one, number) = (at, at as u32 + 1);
            while walk[one] == 0 {
                walk[one] = number;
                match self.parent[one] {
                    Some(parent) if walk[parent as usize] == number => self.parent[one] = None,
                    Some(parent) => one = parent as usize,
                    None => break,
                }
            }
        }
    }
}
