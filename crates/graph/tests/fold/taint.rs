//! Compares the graph with an idealised world in which bytes carry labels.
//!
//! [`sim`] executes random histories on a file system and processes of its own. It knows which
//! initial files truly flowed where, and emits the events that capture would have logged. It shares
//! no code with the graph.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod expansion;
mod sim;

use std::collections::{BTreeMap, BTreeSet};

use crate::common;
use backstory_eventlog::event::Pid;
use backstory_graph::Fold;
use backstory_graph::lineage::{Follow, GraphNode, LineageSearch};
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{Certainty, EntityId, EntityKind, Interval, Relation};
use proptest::prelude::*;
use sim::{Label, Manner, Step, World};

fn graph(world: &World) -> MemorySink {
    let header = common::header(&["root"]);
    let after = world.manner.settled.then(|| world.after());
    common::folded(&header, &world.end(), &world.events, after.as_ref())
}

/// The nodes that stand for the initial content of a file: its first version, by any name that it
/// ever had.
fn sources(world: &World, graph: &MemorySink, label: Label) -> BTreeSet<EntityId> {
    let names = world.names_of(label);
    let first = |e: &&backstory_graph::model::Entity| e.version == 0 && e.kind == EntityKind::File;
    let named = |e: &&backstory_graph::model::Entity| names.contains(&*e.path);
    graph
        .entities
        .values()
        .filter(first)
        .filter(named)
        .map(|e| e.id)
        .collect()
}

/// The node that stands for the initial content of a file, if no directory is renamed. A file that
/// was first used by another name than the initial one is another file here.
fn source(world: &World, graph: &MemorySink, label: Label) -> Option<EntityId> {
    let name = world.first_name_of(label);
    let mut files = graph
        .entities
        .values()
        .filter(|e| e.version == 0 && e.kind == EntityKind::File);
    files.find(|e| *e.path == *name).map(|e| e.id)
}

/// The labels that truly ended in each final file, and in the memory of every epoch.
fn ends(
    world: &World,
    graph: &MemorySink,
    strict: bool,
) -> Vec<(String, Vec<GraphNode>, BTreeSet<Label>)> {
    let mut found = Vec::new();
    for (path, labels) in world.final_files() {
        if labels.is_empty() {
            continue;
        }
        let last = graph
            .entities
            .values()
            .filter(|e| e.kind == EntityKind::File && e.last);
        let named = last.filter(|e| *e.path == *path || e.aliases.iter().any(|a| **a == *path));
        // The name may have been given to another file since. A file that still exists keeps the
        // name as an alias.
        let nodes: Vec<GraphNode> = named.map(|e| GraphNode::Entity(e.id)).collect();
        // A file that no process touched has no node, and no data flowed into it.
        if nodes.is_empty() {
            let name = common::text(&path);
            assert!(
                labels.len() == 1,
                "{name} has no node but holds {labels:?}\n{}",
                describe(world, graph)
            );
            continue;
        }
        found.push((common::text(&path), nodes, labels));
    }
    for ((pid, epoch), labels) in &world.memories {
        let same = |number: u32| number == *epoch || *epoch == 0 && number == 1;
        let of_epoch = graph
            .activities
            .values()
            .filter(|a| a.pid == *pid && same(a.epoch));
        // Epoch 0 may belong to the program that it became.
        if let Some(activity) = of_epoch.min_by_key(|a| a.epoch)
            && (activity.epoch == *epoch || *epoch == 0 && !strict)
        {
            found.push((
                format!("{pid}#{epoch}"),
                vec![GraphNode::Activity(activity.id)],
                labels.clone(),
            ));
        }
    }
    found
}

fn describe(world: &World, graph: &MemorySink) -> String {
    let events: Vec<String> = world
        .events
        .iter()
        .map(|e| {
            format!(
                "{} {:?} {:?} {:?} {:?}",
                e.pid, e.via, e.op, e.outcome, e.ident
            )
        })
        .collect();
    format!("{}\n--\n{}", events.join("\n"), common::told(graph))
}

/// Asserts that every true flow is in the lineage, backwards and forwards.
fn sound(world: &World) -> Result<(), TestCaseError> {
    let graph = graph(world);
    let lineage = LineageSearch::new(&graph, Follow::default());
    for (name, nodes, labels) in ends(world, &graph, false) {
        for &label in &labels {
            let sources = sources(world, &graph, label);
            let pairs = || {
                nodes
                    .iter()
                    .flat_map(|n| sources.iter().map(|s| (*n, GraphNode::Entity(*s))))
            };
            prop_assert!(
                pairs().any(|(node, source)| lineage.ancestors(node).contains(source)),
                "{name} holds {label}, which is not among its ancestors\n{}",
                describe(world, &graph)
            );
            prop_assert!(
                pairs().any(|(node, source)| lineage.descendants(source).contains(node)),
                "{label} does not reach {name}\n{}",
                describe(world, &graph)
            );
        }
    }
    Ok(())
}

/// Asserts that the lineage contains only true flows.
fn exact(world: &World) -> Result<(), TestCaseError> {
    let graph = graph(world);
    let lineage = LineageSearch::new(&graph, Follow::default());
    for (name, nodes, labels) in ends(world, &graph, true) {
        let node = nodes[nodes.len() - 1];
        let reached = lineage.ancestors(node);
        for label in world.labels() {
            let Some(source) = source(world, &graph, label) else {
                continue;
            };
            let itself = GraphNode::Entity(source) == node;
            let found = reached.contains(GraphNode::Entity(source));
            prop_assert!(
                !found || itself || labels.contains(&label),
                "{name} does not hold {label}, but it is among its ancestors\n{}",
                describe(world, &graph)
            );
        }
    }
    Ok(())
}

/// A use of a version or channel by a process: its pid, what it used, and how.
type Use = (Pid, String, u32, Relation);

/// All uses, each from its first to its last moment. Only the pid distinguishes processes, because
/// one between a fork and an exec can become the next program.
fn uses(graph: &MemorySink) -> BTreeMap<Use, (Interval, Certainty)> {
    let mut uses: BTreeMap<Use, (Interval, Certainty)> = BTreeMap::new();
    for edge in &graph.edges {
        let (pid, entity) = (
            graph.activities[&edge.activity].pid,
            &graph.entities[&edge.entity],
        );
        let name = common::text(&entity.path);
        let known = uses.entry((pid, name, entity.version, edge.relation));
        let (interval, certainty) = known.or_insert((edge.interval, edge.certainty));
        interval.start = interval.start.min(edge.interval.start);
        interval.end = interval.end.max(edge.interval.end);
        *certainty = (*certainty).max(edge.certainty);
    }
    uses
}

fn manner() -> impl Strategy<Value = Manner> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(settled, idents, births)| Manner {
        settled,
        idents,
        births,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_true_flow_is_in_the_lineage(manner in manner(), steps in prop::collection::vec(Step::any(), 1..60)) {
        sound(&World::run(manner, &steps))?;
    }

    #[test]
    fn lineage_respects_time(manner in manner(), steps in prop::collection::vec(Step::whole(), 1..40)) {
        let world = World::run(manner, &steps);
        sound(&world)?;
        exact(&world)?;
    }

    #[test]
    fn the_time_expansion_has_no_cycles(manner in manner(), steps in prop::collection::vec(Step::any(), 1..40)) {
        let world = World::run(manner, &steps);
        let graph = graph(&world);
        let expansion = expansion::Expansion::of(&graph);
        prop_assert!(expansion.acyclic(), "{}", describe(&world, &graph));
        let lineage = LineageSearch::new(&graph, Follow::default());
        for (name, nodes, _) in ends(&world, &graph, false) {
            let node = nodes[0];
            let reached: BTreeSet<GraphNode> = lineage.ancestors(node).nodes.into_keys().collect();
            prop_assert_eq!(expansion.ancestors(node), reached, "{}\n{}", name, describe(&world, &graph));
        }
    }

    #[test]
    fn an_epoch_cut_at_its_generations_has_no_cycles_without_races(
        manner in manner(),
        steps in prop::collection::vec(Step::whole(), 1..40),
    ) {
        let world = World::run(manner, &steps);
        let graph = graph(&world);
        prop_assert!(expansion::cut_acyclic(&graph), "{}", describe(&world, &graph));
    }

    #[test]
    fn what_a_look_tells_is_in_the_graph_of_the_whole_run(
        manner in manner(),
        steps in prop::collection::vec(Step::any(), 1..40),
        looks in any::<u64>(),
    ) {
        // A look can name a version by what its file is called by then.
        let keeps_names = |step: &&Step| {
            use Step::{Link, Rename, RenameDir, Symlink};
            !matches!(step, Link(..) | Rename(..) | RenameDir(_) | Symlink(..))
        };
        let steps: Vec<Step> = steps.iter().filter(keeps_names).cloned().collect();
        let world = World::run(Manner { settled: false, ..manner }, &steps);
        let header = common::header(&["root"]);
        let mut sink = MemorySink::default();
        let Ok(()) = backstory_graph::fold(&header, None, world.events.iter().cloned(), &(), &mut sink);
        let whole = uses(&sink);
        let mut fold = Fold::new(&header, None, &(), MemorySink::default()).noting_news();
        for (number, event) in world.events.iter().enumerate() {
            let Ok(()) = fold.event(event.clone());
            if looks >> (number % 64) & 1 == 1 {
                let Ok(_) = fold.tell_news(event.time);
            }
        }
        for (told, (interval, certainty)) in uses(fold.sink()) {
            let found = whole.get(&told).is_some_and(|(of_whole, certain)| {
                of_whole.start <= interval.start && interval.end <= of_whole.end && certainty <= *certain
            });
            prop_assert!(found, "{told:?} {interval:?} {certainty:?}, but {:?}\n{}", whole.get(&told), describe(&world, &sink));
        }
    }

    #[test]
    fn the_same_events_give_the_same_graph(manner in manner(), steps in prop::collection::vec(Step::any(), 1..40)) {
        let world = World::run(manner, &steps);
        let (one, two) = (graph(&world), graph(&world));
        prop_assert_eq!(format!("{one:?}"), format!("{two:?}"));
    }
}

/// The history of a copy of a static program that reads a file between its birth and its exec. The
/// next program has a recorder, which sees no use of the descriptor.
#[test]
fn a_copy_of_a_static_program_can_have_read_the_files_that_its_exec_keeps_open() {
    let manner = Manner {
        settled: false,
        idents: false,
        births: false,
    };
    let (a, b, rdwr) = (0, 1, common::RDWR);
    let steps = [
        Step::Exec(0, true),
        Step::Open(0, a, rdwr),
        Step::Fork(0),
        Step::Fork(0),
        Step::Open(2, b, rdwr),
        Step::Read(2, 1),
        Step::Write(2, 0),
        Step::Read(1, 0),
        Step::Exec(1, false),
    ];
    let world = World::run(manner, &steps);
    assert_eq!(world.memories[&(3, 0)], BTreeSet::from([0, 1]));
    sound(&world).unwrap();
}
