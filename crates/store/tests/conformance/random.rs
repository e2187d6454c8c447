//! Random graphs come back the same from every engine, also when they share versions over runs.

use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::{Bytes, Via};
use backstory_files::Ident;
use backstory_graph::model::*;
use backstory_store::{
    ActivityKey, EntityKey, Label, RunKey, RunRecord, Store, Stream, VersionMatch, copy_run,
    digest_of_run, may_be_directory,
};
use proptest::prelude::*;

use crate::engines::{all_stores, local_stores};
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
                if length % 2 == 0 && done.insert((who, what, RENAME)) {
                    let renamed = edge(who.0, what.0, Relation::Rename, start, start + length);
                    sink.edge(&renamed)?;
                }
            }
        }
    }
    Ok(())
}

/// The number of [`Relation::Rename`] in [`relation`].
const RENAME: u8 = 8;

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

/// Directories below a directory; what was made in it.
type DirectoryAnswers = (Vec<Bytes>, Vec<(Bytes, EntityKey)>);

/// The answers of a store about a run.
#[derive(Debug, PartialEq)]
struct Answers {
    activities: Vec<Activity>,
    entities: Vec<Entity>,
    record: Option<RunRecord>,
    directories: Vec<DirectoryAnswers>,
    directories_of: Vec<Bytes>,
    streams: Vec<Stream>,
    of_entities: Vec<EntityAnswers>,
    /// For each identity of the run the entities that runs made, asked for at once.
    made: Vec<Vec<EntityKey>>,
    /// For each path of the run the renamed entities, each list sorted.
    renamed: BTreeMap<Bytes, Vec<EntityKey>>,
}

/// The answers of a store about an entity, each list sorted.
#[derive(Debug, PartialEq)]
struct EntityAnswers {
    touching: Vec<(ActivityId, bool)>,
    generators: Vec<ActivityId>,
    at_path: Vec<EntityKey>,
    below: Vec<EntityKey>,
    /// The entities of its identity: those that were made, and all.
    same: Vec<Vec<EntityKey>>,
}

fn answers(store: &dyn Store, graph: &Random, run: RunKey) -> Answers {
    // Half of the questions see one state, as those of a command do.
    let _one_state = (run.0 % 2 == 1).then(|| store.reading().unwrap());
    let entities = store.entities(run).unwrap();
    let stream = |id| store.stream(ActivityKey::new(run, ActivityId(id))).unwrap();
    let directories = [&b"/"[..], b"/d1/", b"/d2/", b"/nowhere/"];
    let directory = |directory: &[u8]| {
        let below = store.directories_below(directory).unwrap();
        (below, sorted(store.made_in(directory).unwrap()))
    };
    let idents: Vec<Ident> = entities.iter().filter_map(|one| one.ident).collect();
    let made = store.made_versions(&idents).unwrap().into_iter();
    let paths = entities.iter().map(|one| one.path.clone());
    let paths = paths.chain(entities.iter().flat_map(|one| one.aliases.clone()));
    let paths: BTreeSet<Bytes> = paths.collect();
    let renamed = paths.into_iter().map(|path| {
        let mut found = store.rename_candidates(&path).unwrap();
        found.retain(|key| is_renamed(store, *key));
        (path, sorted(found))
    });
    Answers {
        renamed: renamed.collect(),
        made: made.map(sorted).collect(),
        activities: store.activities(run).unwrap(),
        record: store.run_by_key(run).unwrap(),
        directories: directories.map(directory).into(),
        directories_of: store.directories_of(run).unwrap(),
        streams: (0..graph.activities).map(stream).collect(),
        of_entities: entities
            .iter()
            .map(|entity| entity_answers(store, entity, run))
            .collect(),
        entities,
    }
}

/// Whether an activity renamed an entity, to its path or away from it, and it may be a directory.
fn is_renamed(store: &dyn Store, key: EntityKey) -> bool {
    let may_be = |id| {
        let entity = store.entity(EntityKey::new(key.run(), id)).unwrap();
        may_be_directory(entity.kind, entity.ident.as_ref())
    };
    let doers = store.touching(key).unwrap().into_iter();
    let mut streams = doers.map(|(doer, _)| {
        let stream = store.stream(ActivityKey::new(key.run(), doer));
        stream.unwrap()
    });
    streams.any(|Stream { edges, derived, .. }| {
        let named = |edge: &Edge, id| edge.entity == id && edge.relation == Relation::Rename;
        derived.iter().any(|one| {
            [one.entity, one.from].contains(&key.local())
                && edges.iter().any(|edge| named(edge, one.entity))
                && may_be(one.entity)
                && may_be(one.from)
        })
    })
}

fn entity_answers(store: &dyn Store, entity: &Entity, run: RunKey) -> EntityAnswers {
    let key = EntityKey::new(run, entity.id);
    let half = &entity.path[..entity.path.len() / 2];
    let wanted = |path: &[u8]| path.last() == entity.path.last();
    let roles = [VersionMatch::Made, VersionMatch::Any];
    let same = |ident: Ident| roles.map(|role| sorted(store.same(&ident, role).unwrap()));
    EntityAnswers {
        touching: sorted(store.touching(key).unwrap()),
        generators: sorted(store.generators(key).unwrap()),
        at_path: sorted(store.at_path(&entity.path).unwrap()),
        below: sorted(store.below(half, &wanted).unwrap()),
        same: entity.ident.map(same).into_iter().flatten().collect(),
    }
}

/// Fails unless all stores answer as the first of them does.
fn answer_alike(mut stores: Vec<(tempfile::TempDir, Box<dyn Store>)>, runs: &[Random]) {
    let (reference, others) = stores.split_at_mut(1);
    let reference = &mut *reference[0].1;
    for (i, graph) in runs.iter().enumerate() {
        let head = header(&format!("run{i}"), i as i64);
        let a = reference
            .append(&head, &end(), 0, &mut |sink| build(graph, sink))
            .unwrap();
        let right = answers(reference, graph, a);
        for (_, other) in others.iter_mut() {
            let b = other
                .append(&head, &end(), 0, &mut |sink| build(graph, sink))
                .unwrap();
            assert_eq!(a, b);
            assert_eq!(right, answers(&**other, graph, a));
        }
    }
    let right = answers(reference, &runs[0], RunKey(1));
    for (_, other) in others.iter() {
        assert_eq!(right, answers(&**other, &runs[0], RunKey(1)));
    }
    reference.remove("run0").unwrap();
    for (_, other) in others.iter_mut() {
        other.remove("run0").unwrap();
    }
    for (i, graph) in runs.iter().enumerate().skip(1) {
        let key = RunKey(i as u32 + 1);
        let right = answers(reference, graph, key);
        for (_, other) in others.iter() {
            assert_eq!(right, answers(&**other, graph, key));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn every_engine_returns_the_same_graphs(runs in prop::collection::vec(random(), 1..4)) {
        answer_alike(local_stores(), &runs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 72, ..ProptestConfig::default() })]
    #[test]
    #[ignore = "minutes, as the same test of fewer graphs"]
    fn every_engine_returns_the_same_of_many_graphs(runs in prop::collection::vec(random(), 1..4)) {
        answer_alike(local_stores(), &runs);
    }
}

proptest! {
    // Each look-up of a server takes a tenth of a millisecond.
    #![proptest_config(ProptestConfig { cases: 2, ..ProptestConfig::default() })]
    #[test]
    fn a_server_returns_the_same_graphs(runs in prop::collection::vec(random(), 1..3)) {
        answer_alike(all_stores(), &runs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]
    #[test]
    fn a_copied_run_has_the_digest_of_the_original(graph in random(), at in 0usize..9) {
        let mut stores = all_stores();
        let mut head = header("run0", 7);
        head.name = Some("first".into());
        let from = at % stores.len();
        let original = &mut stores[from].1;
        let key = original.append(&head, &end(), 11, &mut |sink| build(&graph, sink)).unwrap();
        original.set_label("run0", Label::Name, (at > 4).then_some("second")).unwrap();
        original.set_label("run0", Label::Note, Some("a note")).unwrap();
        let record = original.run_by_key(key).unwrap().unwrap();
        let right = digest_of_run(&**original, &record).unwrap();
        let (_, original) = stores.swap_remove(from);
        for (_, copy) in &mut stores {
            copy_run(&*original, &record, &mut **copy).unwrap();
            let copied = copy.run("run0").unwrap().unwrap();
            prop_assert_eq!(digest_of_run(&**copy, &copied).unwrap(), right);
            // The digest changes with the content.
            copy.set_label("run0", Label::Note, Some("another")).unwrap();
            let changed = copy.run("run0").unwrap().unwrap();
            prop_assert_ne!(digest_of_run(&**copy, &changed).unwrap(), right);
        }
    }
}
