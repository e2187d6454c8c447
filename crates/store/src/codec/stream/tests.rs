//! Streams come back as they were, and regular ones are small.

use super::*;
use crate::Stream;
use crate::codec::edge_lists;
use backstory_eventlog::event::Via;
use backstory_graph::model::{Certainty, EntityId, Informed, Interval, Relation};
use proptest::prelude::*;

fn edges() -> impl Strategy<Value = Vec<Edge>> {
    let edge = (
        0usize..11,
        any::<u32>(),
        any::<i64>(),
        any::<i64>(),
        any::<bool>(),
        any::<bool>(),
    );
    let edge = edge.prop_map(|(relation, entity, start, end, seen, kernel)| Edge {
        activity: ActivityId(5),
        entity: EntityId(entity),
        relation: Relation::ALL[relation],
        interval: Interval { start, end },
        certainty: if seen {
            Certainty::Seen
        } else {
            Certainty::Possible
        },
        via: if kernel { Via::Kernel } else { Via::Library },
    });
    proptest::collection::vec(edge, 0..300)
}

proptest! {
    #[test]
    fn a_stream_comes_back_as_it_was(edges in edges(), other: u32, time: i64, base: i64) {
        let me = ActivityId(5);
        let mut builder = Builder::new(me, base);
        let by = Inform { from: ActivityId(other), to: me, why: Informed::Wait, time };
        let to = Inform { from: me, to: ActivityId(other), why: Informed::Signal, time };
        let derived = Derived { entity: EntityId(other), from: EntityId(7), activity: me, time };
        builder.informed_by(&by);
        for edge in &edges {
            builder.edge(edge);
        }
        builder.derived(&derived);
        builder.informs(&to);
        let segment = builder.finish(Some(8));
        let mut stream = Stream::default();
        prop_assert_eq!(decode(&segment, me, base, &mut stream).unwrap(), Some(8));
        prop_assert_eq!(stream, Stream { edges, informed_by: vec![by], informs: vec![to], derived: vec![derived] });
    }
}

#[test]
fn a_regular_stream_takes_less_than_a_tenth_of_its_columns() {
    let me = ActivityId(0);
    let mut builder = Builder::new(me, 0);
    let edges: Vec<Edge> = (0..1000u32)
        .map(|i| Edge {
            activity: me,
            entity: EntityId(i),
            relation: if i % 2 == 0 {
                Relation::Read
            } else {
                Relation::Write
            },
            interval: Interval {
                start: i64::from(i) * 20_000,
                end: i64::from(i) * 20_000 + 9_000,
            },
            certainty: Certainty::Seen,
            via: Via::Library,
        })
        .collect();
    edges.iter().for_each(|edge| builder.edge(edge));
    let columns = builder.tags.len() + builder.starts.len() + builder.lengths.len();
    let segment = builder.finish(None);
    let mut row = edge_lists::Builder::default();
    row.push(&segment);
    let row = row.finish();
    assert!(row.len() * 10 < columns, "{} of {columns}", row.len());
    let mut stream = Stream::default();
    decode(&segment, me, 0, &mut stream).unwrap();
    assert_eq!(stream.edges, edges);
}

#[test]
fn each_relation_keeps_its_number() {
    for (number, relation) in Relation::ALL.iter().enumerate() {
        assert_eq!(usize::from(relation.number()), number);
    }
}
