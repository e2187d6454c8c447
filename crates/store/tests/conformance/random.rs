//! Random graphs come back the same from every engine, also when they share versions over runs.

use backstory_eventlog::event::Via;
use backstory_graph::model::*;
use backstory_store::{ActivityKey, EntityKey, RunKey, Store, VersionMatch};
use proptest::prelude::*;

use crate::engines::all_stores;
use crate::graph::*;

#[derive(Debug, Clone)]
struct Random {
    activities: u32,
    entities: Vec<(u8, u8, u8, bool)>,
    facts: Vec<(u8, u32, u32, i64, i64)>,
    /// Whether it is known what was done by which name.
    by_name: bool,
}

fn random() -> impl Strategy<Value = Random> {
    let entity = (0u8..5, 0u8..8, 0u8..6, any::<bool>());
    let fact = (
        0u8..15,
        any::<u32>(),
        any::<u32>(),
        0i64..1 << 40,
        0i64..1 << 30,
    );
    (
        1u32..6,
        prop::collection::vec(entity, 1..300),
        prop::collection::vec(fact, 0..200),
        any::<bool>(),
    )
        .prop_map(|(activities, entities, facts, by_name)| Random {
            activities,
            entities,
            facts,
            by_name,
        })
}

fn build(
    graph: &Random,
    sink: &mut dyn Sink<Error = backstory_store::Error>,
) -> Result<(), backstory_store::Error> {
    for id in 0..graph.activities {
        sink.activity(&activity(id, id.checked_sub(1)))?;
    }
    for (id, (dir, name, state, known)) in graph.entities.iter().enumerate() {
        let inode = u64::from(*dir) * 8 + u64::from(*name);
        let mut one = entity(
            id as u32,
            &format!("/d{dir}/n{name}"),
            u32::from(*state),
            known.then(|| ident(inode, i64::from(*state))),
        );
        if *state == 5 {
            one.aliases = vec![bytes(&format!("/d{name}/alias"))];
            let by = |seen, possible| ByName { seen, possible };
            one.by_name = vec![by(u16::from(*dir), 0), by(1 << *name, 3)];
            one.by_name.retain(|_| graph.by_name);
        }
        one.previous = (id as u32).checked_sub(u32::from(*state) + 1).map(EntityId);
        sink.entity(&one)?;
    }
    let mut done = std::collections::HashSet::new();
    for &(kind, a, b, start, length) in &graph.facts {
        let who = ActivityId(a % graph.activities);
        let what = EntityId(b % graph.entities.len() as u32);
        match kind {
            0..11 => {
                let mut edge = edge(who.0, what.0, relation(kind), start, start + length);
                edge.via = if length % 2 == 0 {
                    Via::Kernel
                } else {
                    Via::Library
                };
                edge.certainty = if start % 2 == 0 {
                    Certainty::Possible
                } else {
                    Certainty::Seen
                };
                if done.insert((who, what, kind)) {
                    sink.edge(&edge)?;
                }
            }
            11..14 => {
                let to = ActivityId(b % graph.activities);
                sink.inform(&Inform {
                    from: who,
                    to,
                    why: Informed::Wait,
                    time: start,
                })?;
            }
            _ => {
                let from = EntityId(a % graph.entities.len() as u32);
                sink.derived(&Derived {
                    entity: what,
                    from,
                    activity: who,
                    time: start,
                })?;
            }
        }
    }
    Ok(())
}

fn relation(kind: u8) -> Relation {
    use Relation::*;
    [
        Read, Execute, Stat, List, Missing, Link, Write, Delete, Rename, Meta, Make,
    ][usize::from(kind)]
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

fn compare(a: &dyn Store, b: &dyn Store, graph: &Random, run: RunKey) {
    assert_eq!(a.activities(run).unwrap(), b.activities(run).unwrap());
    assert_eq!(a.entities(run).unwrap(), b.entities(run).unwrap());
    assert_eq!(a.run_by_key(run).unwrap(), b.run_by_key(run).unwrap());
    for directory in [&b"/"[..], b"/d1/", b"/d2/", b"/nowhere/"] {
        let below = a.directories_below(directory).unwrap();
        assert_eq!(below, b.directories_below(directory).unwrap());
        let made = sorted(a.made_in(directory).unwrap());
        assert_eq!(made, sorted(b.made_in(directory).unwrap()));
    }
    for id in 0..graph.activities {
        let key = ActivityKey::new(run, ActivityId(id));
        assert_eq!(a.stream(key).unwrap(), b.stream(key).unwrap());
    }
    for entity in a.entities(run).unwrap() {
        let key = EntityKey::new(run, entity.id);
        assert_eq!(
            sorted(a.touching(key).unwrap()),
            sorted(b.touching(key).unwrap())
        );
        assert_eq!(
            sorted(a.at_path(&entity.path).unwrap()),
            sorted(b.at_path(&entity.path).unwrap())
        );
        let half = &entity.path[..entity.path.len() / 2];
        let wanted = |path: &[u8]| path.last() == entity.path.last();
        assert_eq!(
            sorted(a.below(half, &wanted).unwrap()),
            sorted(b.below(half, &wanted).unwrap())
        );
        if let Some(ident) = entity.ident {
            for role in [VersionMatch::Made, VersionMatch::Any] {
                assert_eq!(
                    sorted(a.same(&ident, role).unwrap()),
                    sorted(b.same(&ident, role).unwrap()),
                    "{ident:?}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn every_engine_returns_the_same_graphs(runs in prop::collection::vec(random(), 1..4)) {
        let mut stores = all_stores();
        let (reference, others) = stores.split_at_mut(1);
        let reference = &mut *reference[0].1;
        for (i, graph) in runs.iter().enumerate() {
            let head = header(&format!("run{i}"), i as i64);
            let a = reference.append(&head, &end(), 0, &mut |sink| build(graph, sink)).unwrap();
            for (_, other) in others.iter_mut() {
                let b = other.append(&head, &end(), 0, &mut |sink| build(graph, sink)).unwrap();
                prop_assert_eq!(a, b);
                compare(reference, &**other, graph, a);
            }
        }
        for (_, other) in others.iter() {
            compare(reference, &**other, &runs[0], RunKey(1));
        }
        reference.remove("run0").unwrap();
        for (_, other) in others.iter_mut() {
            other.remove("run0").unwrap();
            for (i, graph) in runs.iter().enumerate().skip(1) {
                compare(reference, &**other, graph, RunKey(i as u32 + 1));
            }
        }
    }
}
