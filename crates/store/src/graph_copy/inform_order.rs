//! The order in which a run's informs were appended.
//!
//! Each inform is in the list of its sender and in the list of its receiver. Both lists have the
//! order of appending, so that the order of all informs is any that agrees with all lists.

use std::collections::{HashMap, VecDeque};

use backstory_graph::model::Inform;

use crate::Stream;

/// All informs of the streams, in an order that agrees with the order of every stream.
///
/// Of lists that agree with no order, as damage makes them, the informs come in the order of their
/// senders.
pub fn in_order(streams: &[Stream]) -> Vec<&Inform> {
    let all: Vec<&Inform> = streams.iter().flat_map(|stream| &stream.informs).collect();
    let mut numbers: HashMap<&Inform, VecDeque<usize>> = HashMap::new();
    for (number, &inform) in all.iter().enumerate() {
        numbers.entry(inform).or_default().push_back(number);
    }
    let mut order = PartialOrder::new(all.len());
    let mut next = 0;
    for stream in streams {
        order.add(next..next + stream.informs.len());
        next += stream.informs.len();
        let received = stream.informed_by.iter();
        order.add(received.filter_map(|inform| numbers.get_mut(inform)?.pop_front()));
    }
    order
        .sorted()
        .into_iter()
        .map(|number| all[number])
        .collect()
}

/// Which numbers come after which.
struct PartialOrder {
    after: Vec<Vec<usize>>,
    /// How many lists have a number before this one.
    before: Vec<u32>,
}

impl PartialOrder {
    fn new(length: usize) -> PartialOrder {
        PartialOrder {
            after: vec![Vec::new(); length],
            before: vec![0; length],
        }
    }

    /// Adds a list of numbers in their order.
    fn add(&mut self, list: impl Iterator<Item = usize>) {
        let mut last = None;
        for number in list {
            if let Some(last) = last.replace(number) {
                self.after[last].push(number);
                self.before[number] += 1;
            }
        }
    }

    fn sorted(mut self) -> Vec<usize> {
        let ready = (0..self.before.len()).filter(|&number| self.before[number] == 0);
        let mut ready: VecDeque<usize> = ready.collect();
        let mut sorted = Vec::with_capacity(self.before.len());
        let mut placed = vec![false; self.before.len()];
        while let Some(number) = ready.pop_front() {
            sorted.push(number);
            placed[number] = true;
            for &after in &self.after[number] {
                self.before[after] -= 1;
                if self.before[after] == 0 {
                    ready.push_back(after);
                }
            }
        }
        sorted.extend((0..placed.len()).filter(|&number| !placed[number]));
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_graph::model::{ActivityId, Informed};

    /// The streams of activities between which these informs were appended, in this order.
    fn streams(informs: &[(u32, u32)]) -> Vec<Stream> {
        let mut streams = vec![Stream::default(); 4];
        for &(from, to) in informs {
            let inform = Inform {
                from: ActivityId(from),
                to: ActivityId(to),
                why: Informed::Signal,
                time: 7,
            };
            streams[from as usize].informs.push(inform);
            streams[to as usize].informed_by.push(inform);
        }
        streams
    }

    #[test]
    fn informs_appended_in_this_order_give_the_same_streams() {
        for informs in [
            vec![(0, 1), (1, 2), (0, 2), (2, 0), (0, 1), (1, 1)],
            vec![(3, 0), (2, 0), (1, 0), (0, 3), (0, 2), (3, 0)],
            vec![],
        ] {
            let streams = streams(&informs);
            let order = in_order(&streams);
            let pairs: Vec<_> = order.iter().map(|one| (one.from.0, one.to.0)).collect();
            assert_eq!(self::streams(&pairs), streams, "{informs:?}: {pairs:?}");
        }
    }

    #[test]
    fn lists_that_agree_with_no_order_lose_no_inform() {
        let mut streams = streams(&[(0, 1), (0, 2), (3, 1), (3, 2)]);
        streams[1].informed_by.reverse();
        streams[2].informed_by.reverse();
        streams[0].informs.reverse();
        assert_eq!(in_order(&streams).len(), 4);
    }
}
