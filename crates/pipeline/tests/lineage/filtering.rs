//! Filters on random graphs: what every configuration promises.

use std::path::Path;

use backstory_eventlog::run::RunHeader;
use backstory_graph::lineage::{Follow, GraphNode, LineageSearch};
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{ActivityId, Inform, Informed};
use backstory_pipeline::configuration::Owner;
use backstory_pipeline::{FilteredRun, Pipeline, PipelineReport, configuration};
use proptest::prelude::*;

use super::graphs;
use toml::de::DeTable;

fn pipeline(text: &str) -> Pipeline {
    let file = DeTable::parse(text).unwrap();
    let value = file.get_ref().get("filter").unwrap();
    let (filters, mistakes) =
        configuration::filters(value, text, Path::new("/c/config.toml"), Owner::User);
    assert_eq!(mistakes, [], "{text}");
    Pipeline::new(filters).unwrap()
}

fn filtered(graph: MemorySink, text: &str) -> (MemorySink, PipelineReport) {
    let header = RunHeader {
        command: vec![b"make".to_vec()],
        ..RunHeader::default()
    };
    let mut run = FilteredRun { header, graph };
    let report = pipeline(text).apply(&mut run, &|_| false);
    (run.graph, report)
}

/// Gives each process but the first a fork by its parent, before anything else that it did.
fn with_forks(mut graph: MemorySink) -> MemorySink {
    graph.informs = graph
        .activities
        .values()
        .filter_map(|activity| {
            Some(Inform {
                from: activity.parent?,
                to: activity.id,
                why: Informed::Fork,
                time: -1,
            })
        })
        .collect();
    graph
}

/// All pairs of files, by name, of which the second comes from the first.
fn pairs(graph: &MemorySink, possible: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let lineage = LineageSearch::new(
        graph,
        Follow {
            possible,
            lookups: true,
        },
    );
    let mut pairs = Vec::new();
    for from in graph.entities.values() {
        for to in lineage.descendants(GraphNode::Entity(from.id)).entities() {
            pairs.push((from.path.to_vec(), graph.entities[&to].path.to_vec()));
        }
    }
    pairs.sort();
    pairs
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn a_step_loses_no_lineage_and_makes_none_more_certain(random in graphs::any_graph()) {
        let before = with_forks(random.graph());
        let (after, _) = filtered(
            with_forks(random.graph()),
            "[[filter]]\naction = 'abstract'\nprogram = ['p1', 'p3']\n",
        );
        let (all, certain) = (pairs(&after, true), pairs(&after, false));
        for pair in pairs(&before, true) {
            prop_assert!(all.binary_search(&pair).is_ok(), "lost {pair:?}");
        }
        let was_certain = pairs(&before, false);
        for pair in certain {
            prop_assert!(was_certain.binary_search(&pair).is_ok(), "more certain {pair:?}");
        }
        for activity in after.activities.values().filter(|activity| activity.id.0 > 0) {
            let parent = activity.parent.map(|parent| &after.activities[&parent]);
            let in_step = |path: &Option<Box<[u8]>>| matches!(path.as_deref(), Some(b"/bin/p1" | b"/bin/p3"));
            prop_assert!(!parent.is_some_and(|parent| in_step(&parent.exec_path)), "{activity:?} is in a step");
        }
    }

    #[test]
    fn the_same_filters_give_the_same_graph_and_honest_counts(random in graphs::any_graph()) {
        let text = "[[filter]]\naction = 'sample'\npath = '/f*'\nkeep = 0.5\n\
            [[filter]]\naction = 'deduplicate'\npath = '/f*'\ntext = '[02468]$'\nto = 'even'\n\
            [[filter]]\naction = 'drop'\non = 'process'\nprogram = 'p2'\n\
            [[filter]]\naction = 'rename'\ntext = '^/f'\nto = '/g'\n";
        let before = random.graph();
        let (one, report) = filtered(random.graph(), text);
        let (two, again) = filtered(random.graph(), text);
        prop_assert_eq!(format!("{one:?}"), format!("{two:?}"));
        prop_assert_eq!(&report, &again);
        let nodes = before.entities.len() + before.activities.len();
        let left = one.entities.len() + one.activities.len();
        let removed = report.removed.files + report.removed.processes;
        prop_assert_eq!(nodes - left, removed);
        let hidden = report.anonymous.files + report.anonymous.processes;
        let taken: usize = report.filters[..3].iter().map(|one| one.files + one.processes).sum();
        // Files whose processes were all taken leave the graph with them.
        prop_assert!(removed + hidden >= taken, "{report:?}");
        let names = one.entities.values().filter(|entity| entity.path.starts_with(b"dropped:"));
        prop_assert_eq!(names.count(), report.anonymous.files);
        prop_assert!(!one.entities.values().any(|entity| entity.path.starts_with(b"/f")));
    }
}

#[test]
fn variables_of_a_dropped_process_are_those_of_its_children() {
    let mut graph = MemorySink::default();
    let activity = |id: u32, set: &[&str], unset: &[&str]| backstory_graph::model::Activity {
        id: ActivityId(id),
        parent: id.checked_sub(1).map(ActivityId),
        pid: id + 1,
        epoch: 1,
        exec_path: Some(format!("/bin/p{id}").into_bytes().into()),
        argv: Vec::new(),
        env_set: set.iter().map(|text| text.as_bytes().into()).collect(),
        env_unset: unset.iter().map(|text| text.as_bytes().into()).collect(),
        cwd: b"/".as_slice().into(),
        interval: backstory_graph::model::Interval { start: 0, end: 9 },
        exit: None,
        signal: None,
        execed: false,
        lookups_known: true,
        via: backstory_eventlog::event::Via::Library,
    };
    for one in [
        activity(0, &["A=0", "B=0", "C=0"], &[]),
        activity(1, &["A=1", "D=1"], &["B"]),
        activity(2, &["A=2"], &["C"]),
        activity(3, &["E=3"], &["D"]),
    ] {
        graph.activities.insert(one.id, one);
    }
    let (after, _) = filtered(
        graph,
        "[[filter]]\naction = 'drop'\non = 'process'\nprogram = ['p1', 'p2']\n",
    );
    let last = after.activities.values().next_back().unwrap();
    let texts = |all: &[Box<[u8]>]| {
        all.iter()
            .map(|text| String::from_utf8(text.to_vec()).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(last.parent, Some(ActivityId(0)));
    assert_eq!(texts(&last.env_set), ["E=3", "A=2"]);
    assert_eq!(texts(&last.env_unset), ["D", "C", "B"]);
}
