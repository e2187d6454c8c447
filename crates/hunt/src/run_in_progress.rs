//! The graph of a run in progress, which grows with its log.
//!
//! In: the log, again and again. Out: each time the graph that a fold of the whole log gives.
//!
//! The events that will not change any more are folded once. The rest, and the end of everything
//! that still goes on, are folded on a copy of the state, and taken back after the look. If the
//! log turns out to have changed where it was read before, all of it is folded anew.
//!
//! The memory is that of a fold of the whole log, and of one copy of its state without the graph.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

use backstory_eventlog::event::{Event, Time};
use backstory_eventlog::run::RunHeader;
use backstory_eventlog::{Events, Log, Patience, Prefix};
use backstory_graph::Fold;
use backstory_graph::model::{Activity, ActivityId, Derived, Edge, Entity, Inform, Sink};

use crate::run_graph::RunGraph;

/// A run that goes on.
pub struct RunInProgress<'a> {
    header: &'a RunHeader,
    graph: SharedGraph,
    /// The state after the events of `prefix`.
    fold: Fold<'a, SharedGraph>,
    prefix: Prefix,
    patience: Patience,
    /// How often all of the log was folded.
    beginnings: usize,
}

/// A graph to which a fold and its copy add nodes and edges.
#[derive(Clone, Default)]
struct SharedGraph(Rc<RefCell<MarkedGraph>>);

/// A graph that can be taken back to the state in which it was marked.
#[derive(Default)]
struct MarkedGraph {
    graph: RunGraph,
    former: Option<FormerState>,
}

/// The facts that lead back to a former state.
#[derive(Default)]
struct FormerState {
    /// How many activities, entities, edges, informs and derivations there were.
    lengths: [usize; 5],
    /// The nodes that were replaced since, in this order.
    activities: Vec<Activity>,
    entities: Vec<Entity>,
}

impl MarkedGraph {
    fn mark(&mut self) {
        let graph = &self.graph;
        self.former = Some(FormerState {
            lengths: [
                graph.activities.len(),
                graph.entities.len(),
                graph.edges.len(),
                graph.informs.len(),
                graph.derived.len(),
            ],
            ..FormerState::default()
        });
    }

    fn take_back(&mut self) {
        let Some(former) = self.former.take() else {
            return;
        };
        let graph = &mut self.graph;
        for activity in former.activities.into_iter().rev() {
            let at = activity.id.0 as usize;
            graph.activities[at] = activity;
        }
        for entity in former.entities.into_iter().rev() {
            let at = entity.id.0 as usize;
            graph.entities[at] = entity;
        }
        let [activities, entities, edges, informs, derived] = former.lengths;
        graph.activities.truncate(activities);
        graph.entities.truncate(entities);
        graph.edges.truncate(edges);
        graph.informs.truncate(informs);
        graph.derived.truncate(derived);
    }
}

impl<'a> RunInProgress<'a> {
    /// A run before its first event.
    pub fn new(header: &'a RunHeader, patience: Patience) -> RunInProgress<'a> {
        let graph = SharedGraph::default();
        RunInProgress {
            header,
            fold: Fold::new(header, None, &(), graph.clone()),
            graph,
            prefix: Prefix::default(),
            patience,
            beginnings: 1,
        }
    }

    /// Shows `look` the graph of what the log has by now. A log that has its end is folded once
    /// more as a whole, because the end says more about earlier events.
    pub fn look<T>(&mut self, log: &Log, look: impl FnOnce(&RunGraph) -> T) -> T {
        if log.end().is_some() || log.header() != self.header {
            let mut graph = RunGraph::default();
            let Ok(()) =
                backstory_graph::fold(log.header(), log.end(), log.events(), &(), &mut graph);
            graph.complete();
            return look(&graph);
        }
        let (events, next) = self.go_on(log);
        self.graph.0.borrow_mut().mark();
        let mut rest = self.fold.snapshot(self.graph.clone());
        for event in next.into_iter().chain(events) {
            let Ok(()) = rest.event(event);
        }
        let Ok(()) = rest.finish();
        self.graph.0.borrow_mut().graph.complete();
        let seen = look(&self.graph.0.borrow().graph);
        self.graph.0.borrow_mut().take_back();
        seen
    }

    /// How often all events of the log were folded. One is the least.
    pub fn beginnings(&self) -> usize {
        self.beginnings
    }

    /// Folds what will not change any more. Returns the rest: the next event, and those after it.
    fn go_on<'l>(&mut self, log: &'l Log) -> (Events<'l>, Option<Event>) {
        let mut events = match log.events_behind(&self.prefix, self.patience) {
            Some((events, returned)) if self.return_waits(&returned) => events,
            _ => {
                let beginnings = self.beginnings + 1;
                *self = RunInProgress::new(self.header, self.patience);
                self.beginnings = beginnings;
                log.tracked_events(self.patience)
            }
        };
        let mut mark = events.mark();
        let mut next = None;
        while let Some(event) = events.next() {
            if !events.is_settled() {
                next = Some(event);
                break;
            }
            let Ok(()) = self.fold.event(event);
            mark = events.mark();
        }
        self.prefix = events.prefix(mark);
        (events, next)
    }

    /// Takes the results of waits that were folded before. False if only a new fold can do that.
    fn return_waits(&mut self, returned: &[Event]) -> bool {
        returned.iter().all(|event| {
            let Ok(is_taken) = self.fold.wait_returned(event);
            is_taken
        })
    }
}

impl Sink for SharedGraph {
    type Error = Infallible;

    fn activity(&mut self, activity: &Activity) -> Result<(), Infallible> {
        let MarkedGraph { graph, former } = &mut *self.0.borrow_mut();
        let known = graph.activities.get(activity.id.0 as usize);
        if let (Some(former), Some(known)) = (former, known) {
            former.activities.push(known.clone());
        }
        Sink::activity(graph, activity)
    }

    fn entity(&mut self, entity: &Entity) -> Result<(), Infallible> {
        let MarkedGraph { graph, former } = &mut *self.0.borrow_mut();
        let known = graph.entities.get(entity.id.0 as usize);
        if let (Some(former), Some(known)) = (former, known) {
            former.entities.push(known.clone());
        }
        Sink::entity(graph, entity)
    }

    fn edge(&mut self, edge: &Edge) -> Result<(), Infallible> {
        self.0.borrow_mut().graph.edge(edge)
    }

    fn inform(&mut self, inform: &Inform) -> Result<(), Infallible> {
        self.0.borrow_mut().graph.inform(inform)
    }

    fn derived(&mut self, derived: &Derived) -> Result<(), Infallible> {
        self.0.borrow_mut().graph.derived(derived)
    }

    fn extended(&mut self, _: ActivityId, _: Time, _: &[u8], _: &[u8]) -> Result<(), Infallible> {
        Ok(())
    }

    fn unknown(&mut self, _: &str) -> Result<(), Infallible> {
        Ok(())
    }
}
