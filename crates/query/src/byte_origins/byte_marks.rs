//! Refines the links of a graph by bytes: which inputs gave the files behind them a byte.
//!
//! In: the nodes and links of a graph, as a picture or an export has them. Out: marks. A mark is
//! about the files of the graph alone, and within one run.
//!
//! Invariant: no link is added or taken away, and a mark is made only of what is certain.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use backstory_store::{EntityKey, RunKey};
use backstory_vocabulary::vocabulary;

use super::byte_sources::ByteSources;
use super::refined_runs::RefinedRuns;

vocabulary! {
    /// Whether bytes of an input came into the files that its reader led to.
    pub enum ByteUse: "use of bytes" {
        /// Into at least one of them.
        Given = "some",
        /// Into none of them. A branch may have depended on the input all the same.
        Absent = "none",
    }
}

/// A node of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteNode<'g> {
    /// A command or a process.
    Activity,
    /// A version of one of the user's files, with its path.
    File(EntityKey, &'g [u8]),
    /// All else: pipes, connections, files of the system.
    Other,
}

/// The meaning of a link for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// The content of a file was read.
    Read,
    /// A file was executed. The engine counts the bytes of programs as constants.
    Execute,
    /// Any other flow.
    Other,
    /// A wait for a process, or a signal. No byte takes this way.
    Signal,
}

/// A link between two nodes, by their indexes, in the direction in which information flowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteLink {
    /// The source.
    pub from: usize,
    /// The destination.
    pub to: usize,
    /// Its meaning.
    pub kind: LinkKind,
}

/// The marks of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ByteMarks {
    /// For each link that read an input of a run: whether its bytes came into the files behind.
    pub uses: Vec<Option<ByteUse>>,
    /// For each node: the inputs, as nodes, of which the file has no byte.
    pub none_of: Vec<BTreeSet<usize>>,
    /// Why results of a refined run have no marks, one sentence each.
    pub unreadable: BTreeSet<String>,
}

/// The knowledge about a file that a run made.
#[derive(Debug, Clone)]
enum Made {
    /// It is no result: it was removed or replaced by the same run.
    Passing,
    /// The sources of its bytes.
    Known(ByteSources),
    /// The engine has no write to it.
    Unknown,
}

/// The facts that marks are made of.
trait ByteFacts {
    fn is_refined(&mut self, run: RunKey) -> crate::Result<bool>;
    fn made(&mut self, version: EntityKey) -> crate::Result<Made>;
    /// True if the run made a version of a file with this path.
    fn makes(&mut self, run: RunKey, path: &[u8]) -> crate::Result<bool>;
}

/// The facts of a store.
struct StoredFacts<'f, 's> {
    runs: &'f mut RefinedRuns<'s>,
    /// How many more files may be looked at.
    left: usize,
    /// The runs whose bytes cannot be read, and why. The marks are an addition to another answer.
    unreadable: BTreeMap<RunKey, String>,
}

impl ByteFacts for StoredFacts<'_, '_> {
    fn is_refined(&mut self, run: RunKey) -> crate::Result<bool> {
        let id = self.runs.store().run_id(run)?;
        Ok(id.is_some_and(|id| self.runs.has(&id)))
    }

    fn made(&mut self, version: EntityKey) -> crate::Result<Made> {
        if !self.runs.store().entity(version)?.last {
            return Ok(Made::Passing);
        }
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(Made::Unknown);
        };
        self.left = left;
        if self.unreadable.contains_key(&version.run()) {
            return Ok(Made::Unknown);
        }
        match ByteSources::of_version(self.runs, version) {
            Ok(sources) => Ok(sources.map_or(Made::Unknown, Made::Known)),
            Err(crate::Error::Bytes(error)) => {
                self.unreadable.insert(version.run(), error.to_string());
                Ok(Made::Unknown)
            }
            Err(error) => Err(error),
        }
    }

    fn makes(&mut self, run: RunKey, path: &[u8]) -> crate::Result<bool> {
        let store = self.runs.store();
        for key in store.at_path(path)? {
            if key.run() == run && store.entity(key)?.version > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl ByteMarks {
    /// The marks of a graph. At most `most` results are looked at: links to others get no mark.
    pub fn of(
        runs: &mut RefinedRuns<'_>,
        nodes: &[ByteNode<'_>],
        links: &[ByteLink],
        most: usize,
    ) -> crate::Result<ByteMarks> {
        let left = if runs.is_empty() { 0 } else { most };
        let mut facts = StoredFacts {
            runs,
            left,
            unreadable: BTreeMap::new(),
        };
        let mut found = marks(nodes, links, &mut facts)?;
        let whys = facts.unreadable.into_values();
        let unmarked = whys.map(|why| format!("{why}; its results have no marks of bytes"));
        found.unreadable = unmarked.collect();
        Ok(found)
    }
}

fn marks(
    nodes: &[ByteNode<'_>],
    links: &[ByteLink],
    facts: &mut dyn ByteFacts,
) -> crate::Result<ByteMarks> {
    let graph = FlowGraph::new(nodes, links);
    let (mut refined, mut known) = (BTreeMap::new(), BTreeMap::new());
    let mut found = ByteMarks {
        uses: vec![None; links.len()],
        none_of: vec![BTreeSet::new(); nodes.len()],
        unreadable: BTreeSet::new(),
    };
    let (mut results, mut rewritten) = (BTreeMap::new(), BTreeMap::new());
    for (at, link) in links.iter().enumerate() {
        let Some((run, path)) = graph.input(link) else {
            continue;
        };
        if !*remembered(&mut refined, run, || facts.is_refined(run))? {
            continue;
        }
        let input = BTreeSet::from([path.to_vec()]);
        let (mut some, mut none, mut unknown) = (false, false, false);
        let behind = results.entry((link.to, run));
        let behind = behind.or_insert_with(|| graph.results(link.to, run));
        for &(result, version) in behind.iter() {
            // The engine follows no connection to another run.
            let verdict = match version.run() == run {
                false => None,
                true => match remembered(&mut known, version, || facts.made(version))? {
                    Made::Passing => continue,
                    Made::Known(sources) => sources.has_bytes_read_of(&input),
                    Made::Unknown => None,
                },
            };
            // The engine knows files by their paths: bytes can be those of a version that the run
            // made.
            let verdict = match verdict {
                Some(true)
                    if *remembered(&mut rewritten, (run, path), || facts.makes(run, path))? =>
                {
                    None
                }
                verdict => verdict,
            };
            match verdict {
                Some(true) => some = true,
                Some(false) => {
                    none = true;
                    found.none_of[result].insert(link.from);
                }
                None => unknown = true,
            }
        }
        found.uses[at] = match (some, none, unknown) {
            (true, ..) => Some(ByteUse::Given),
            (false, true, false) => Some(ByteUse::Absent),
            _ => None,
        };
    }
    Ok(found)
}

fn remembered<K: Ord, V>(
    known: &mut BTreeMap<K, V>,
    key: K,
    ask: impl FnOnce() -> crate::Result<V>,
) -> crate::Result<&V> {
    Ok(match known.entry(key) {
        Entry::Occupied(old) => old.into_mut(),
        Entry::Vacant(new) => new.insert(ask()?),
    })
}

/// The graph, with what leads where.
struct FlowGraph<'m, 'g> {
    nodes: &'m [ByteNode<'g>],
    next: Vec<Vec<usize>>,
    executed: BTreeSet<usize>,
    /// The nodes that a command or process made.
    made: Vec<bool>,
}

impl<'m, 'g> FlowGraph<'m, 'g> {
    fn new(nodes: &'m [ByteNode<'g>], links: &[ByteLink]) -> FlowGraph<'m, 'g> {
        let mut next = vec![Vec::new(); nodes.len()];
        let mut made = vec![false; nodes.len()];
        for link in links {
            if link.kind != LinkKind::Signal {
                next[link.from].push(link.to);
            }
            made[link.to] |= nodes[link.from] == ByteNode::Activity;
        }
        let executes = links.iter().filter(|link| link.kind == LinkKind::Execute);
        FlowGraph {
            nodes,
            next,
            executed: executes.map(|link| link.from).collect(),
            made,
        }
    }

    /// The run and path of a file that a link reads, and that was there before the run.
    fn input(&self, link: &ByteLink) -> Option<(RunKey, &'g [u8])> {
        let ByteNode::File(version, path) = self.nodes[link.from] else {
            return None;
        };
        let was_there = !self.made[link.from] && !self.executed.contains(&link.from);
        (link.kind == LinkKind::Read && was_there).then_some((version.run(), path))
    }

    fn version(&self, at: usize) -> Option<EntityKey> {
        match self.nodes[at] {
            ByteNode::File(version, _) => Some(version),
            _ => None,
        }
    }

    /// The files that were made behind an activity. No link between two versions leads into
    /// another run.
    fn results(&self, activity: usize, run: RunKey) -> Vec<(usize, EntityKey)> {
        let mut seen = BTreeSet::from([activity]);
        let mut pending = vec![activity];
        while let Some(at) = pending.pop() {
            for &to in &self.next[at] {
                let enters = self.version(to).is_some_and(|to| to.run() != run);
                let is_between = self.version(at).is_some() && enters;
                if !is_between && seen.insert(to) {
                    pending.push(to);
                }
            }
        }
        let made = seen.into_iter().filter(|&at| self.made[at]);
        made.filter_map(|at| Some((at, self.version(at)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LinkKind::{Execute, Other, Read};
    use backstory_graph::model::EntityId;

    /// `a.csv` and `b.csv` are read by a command that makes `out`.
    const NODES: [ByteNode<'_>; 4] = [
        file(0, b"/a.csv"),
        file(1, b"/b.csv"),
        ByteNode::Activity,
        file(3, b"/out"),
    ];
    const LINKS: [ByteLink; 3] = [link(0, 2, Read), link(1, 2, Read), link(2, 3, Other)];

    const fn file(number: u64, path: &[u8]) -> ByteNode<'_> {
        ByteNode::File(EntityKey(1 << 32 | number), path)
    }

    const fn link(from: usize, to: usize, kind: LinkKind) -> ByteLink {
        ByteLink { from, to, kind }
    }

    /// The facts of results, by their numbers.
    struct Given(Vec<(u32, Made)>);

    impl ByteFacts for Given {
        fn is_refined(&mut self, run: RunKey) -> crate::Result<bool> {
            Ok(run == RunKey(1))
        }

        fn made(&mut self, version: EntityKey) -> crate::Result<Made> {
            let known = self
                .0
                .iter()
                .find(|(id, _)| EntityId(*id) == version.local());
            Ok(known.map_or(Made::Unknown, |(_, made)| made.clone()))
        }

        fn makes(&mut self, _run: RunKey, path: &[u8]) -> crate::Result<bool> {
            Ok(path == b"/again.csv")
        }
    }

    fn of(passed: &[u8], is_possible: bool) -> Made {
        Made::Known(ByteSources {
            run: "r".to_owned(),
            path: b"/out".to_vec(),
            length: 1,
            from: BTreeSet::new(),
            passed: BTreeSet::from([passed.to_vec()]),
            from_others: false,
            is_possible,
            is_open: false,
        })
    }

    fn uses(
        nodes: &[ByteNode<'_>],
        links: &[ByteLink],
        made: Vec<(u32, Made)>,
    ) -> Vec<Option<ByteUse>> {
        marks(nodes, links, &mut Given(made)).unwrap().uses
    }

    #[test]
    fn an_input_without_a_byte_in_a_result_is_marked() {
        let found = marks(&NODES, &LINKS, &mut Given(vec![(3, of(b"/a.csv", false))])).unwrap();
        let expected = [Some(ByteUse::Given), Some(ByteUse::Absent), None];
        assert_eq!(found.uses, expected);
        assert_eq!(found.none_of[3], BTreeSet::from([1]));
    }

    #[test]
    fn nothing_is_marked_that_is_not_certain() {
        for made in [vec![], vec![(3, of(b"/x", true))], vec![(3, Made::Passing)]] {
            assert_eq!(uses(&NODES, &LINKS, made), [None; 3]);
        }
        let executed = [LINKS[0], link(1, 2, Execute), LINKS[1], LINKS[2]];
        let found = uses(&NODES, &executed, vec![(3, of(b"/a.csv", false))]);
        assert_eq!(found[1..], [None; 3]);
    }

    #[test]
    fn bytes_of_a_path_that_the_run_made_again_may_be_those_of_its_own_version() {
        let mut nodes = NODES;
        nodes[0] = file(0, b"/again.csv");
        for (passed, expected) in [(&b"/again.csv"[..], None), (b"/x", Some(ByteUse::Absent))] {
            let found = uses(&nodes, &LINKS, vec![(3, of(passed, false))]);
            assert_eq!(found[0], expected);
        }
    }

    #[test]
    fn a_second_result_that_is_unknown_or_has_a_byte_decides() {
        let nodes = [
            &NODES[..],
            &[ByteNode::Other, ByteNode::Activity, file(6, b"/more")],
        ]
        .concat();
        let more = [link(2, 4, Other), link(4, 5, Other), link(5, 6, Other)];
        let links = [&LINKS[..], &more].concat();
        for (second, expected) in [
            (Made::Unknown, None),
            (of(b"/b.csv", false), Some(ByteUse::Given)),
            (of(b"/a.csv", false), Some(ByteUse::Absent)),
            (Made::Passing, Some(ByteUse::Absent)),
        ] {
            let made = vec![(3, of(b"/a.csv", false)), (6, second)];
            assert_eq!(uses(&nodes, &links, made)[1], expected);
        }
    }

    #[test]
    fn no_byte_goes_from_a_program_to_the_one_that_waits_for_it() {
        let nodes = [&NODES[..], &[ByteNode::Activity, file(5, b"/more")]].concat();
        let more = |kind| {
            let links = [link(2, 4, kind), link(4, 5, Other)];
            let made = vec![(3, of(b"/a.csv", false)), (5, Made::Unknown)];
            uses(&nodes, &[&LINKS[..], &links].concat(), made)[1]
        };
        assert_eq!(more(LinkKind::Signal), Some(ByteUse::Absent));
        assert_eq!(more(Other), None);
    }

    #[test]
    fn a_file_of_another_run_is_behind_no_link_but_that_of_a_connection() {
        let other = ByteNode::File(EntityKey(2 << 32 | 7), b"/far");
        let nodes = [&NODES[..], &[other, ByteNode::Activity, ByteNode::Other]].concat();
        let made = || vec![(3, of(b"/a.csv", false))];
        let same = [link(3, 4, Other), link(4, 5, Read)];
        let found = uses(&nodes, &[&LINKS[..], &same].concat(), made());
        assert_eq!(found[1], Some(ByteUse::Absent));
        let far = [link(2, 6, Other), link(6, 5, Other), link(5, 4, Other)];
        let found = uses(&nodes, &[&LINKS[..], &far].concat(), made());
        assert_eq!(found[1], None);
    }
}
