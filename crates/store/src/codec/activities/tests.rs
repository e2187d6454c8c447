use std::cell::RefCell;
use std::collections::HashMap;

use backstory_eventlog::event::Via;
use backstory_graph::model::{ActivityId, Interval};
use proptest::prelude::*;

use super::*;
use crate::Error;

fn strings() -> impl Strategy<Value = Vec<Bytes>> {
    let string = proptest::collection::vec(any::<u8>(), 0..30).prop_map(Bytes::from);
    proptest::collection::vec(string, 0..4)
}

prop_compose! {
    fn activity()(
        parent: Option<u32>, pid: u32, epoch: u32, lists in (strings(), strings(), strings(), strings()),
        times: (i64, i64), exit: Option<i32>, signal: Option<i32>, flags: (bool, bool, bool),
    ) -> Activity {
        let (argv, env_set, env_unset, paths) = lists;
        Activity {
            id: ActivityId(0),
            parent: parent.map(ActivityId),
            pid,
            epoch,
            exec_path: paths.first().cloned(),
            argv,
            env_set,
            env_unset,
            cwd: paths.last().cloned().unwrap_or_default(),
            interval: Interval { start: times.0, end: times.1 },
            exit,
            signal,
            execed: flags.0,
            lookups_known: flags.1,
            via: if flags.2 { Via::Kernel } else { Via::Library },
        }
    }
}

proptest! {
    #[test]
    fn activities_come_back_as_they_were(
        activities in proptest::collection::vec((activity(), any::<Option<u32>>()), 0..64),
        first in 0..u32::MAX - 64, base: i64,
    ) {
        // Ids far apart, so that differences are large.
        let texts = RefCell::new(HashMap::new());
        let id_of = |text: &[u8]| {
            let hash = text.iter().fold(7u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
            hash >> 2
        };
        let mut builder = Builder::new(base);
        for (id, (activity, segment)) in (first..).zip(&activities) {
            let activity = Activity { id: ActivityId(id), ..activity.clone() };
            builder.push(&activity, *segment, |text| {
                texts.borrow_mut().insert(id_of(text), text.to_vec());
                Ok(id_of(text))
            }).unwrap();
        }
        prop_assert_eq!(builder.count() as usize, activities.len());
        let block = ActivityBlock::decode(&builder.finish(), first).unwrap();
        prop_assert_eq!(block.count() as usize, activities.len());
        let fetch = |id| texts.borrow().get(&id).cloned().ok_or(Error::Damaged("text"));
        for (position, (activity, segment)) in (0..).zip(&activities) {
            let wanted = Activity { id: ActivityId(first + position), ..activity.clone() };
            prop_assert_eq!(block.segment(position), Some(*segment));
            prop_assert_eq!(block.activity(position, base, fetch).unwrap(), Some(wanted));
        }
        prop_assert_eq!(block.segment(activities.len() as u32), None);
        let mut named: Vec<_> = block.texts().collect();
        let mut stored: Vec<_> = texts.borrow().keys().copied().collect();
        named.sort_unstable();
        stored.sort_unstable();
        prop_assert_eq!(named, stored);
        let long = activities.iter().flat_map(|(activity, _)| long_texts(activity));
        let mut long: Vec<Vec<u8>> = long.map(Cow::into_owned).collect();
        let mut stored: Vec<Vec<u8>> = texts.borrow().values().cloned().collect();
        long.sort_unstable();
        long.dedup();
        stored.sort_unstable();
        prop_assert_eq!(long, stored);
    }
}
