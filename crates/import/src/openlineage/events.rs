//! Collects run events.

use crate::description::{
    ActivityNumber, DescribedActivity, Description, DescriptionGaps, EntityNumber, Flow, Locations,
    NamedStates, Span,
};
use backstory_eventlog::event::Time;
use backstory_eventlog::job_rank::{JOB_FACET, JobRank, RANK_FACET};
use backstory_graph::model::{EntityKind, Informed, Relation};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The most bytes of a text of a facet that becomes an attribute.
const LONGEST: usize = 4_000;

/// Collects the events of files.
pub(super) struct EventReader {
    description: Description,
    locations: Locations,
    gaps: DescriptionGaps,
    states: NamedStates,
    runs: HashMap<Box<str>, ActivityNumber>,
    /// Entities with a version of their own.
    versions: HashMap<(Box<[u8]>, Box<str>), EntityNumber>,
    /// Flows of entities with versions that were stated already.
    stated: std::collections::HashSet<(ActivityNumber, EntityNumber, bool)>,
    /// Runs that failed. Whether they wrote their outputs is not known.
    failed: std::collections::HashSet<ActivityNumber>,
    /// Jobs of launchers of parallel work, with the run of the launcher if it is stated.
    rank_jobs: HashMap<Box<str>, Option<Box<str>>>,
    /// Their ranks, each with its job.
    ranks: BTreeMap<ActivityNumber, Option<Box<str>>>,
    /// The name of the first job.
    name: Option<String>,
}

impl EventReader {
    pub(super) fn new(locations: Locations) -> EventReader {
        EventReader {
            description: Description::default(),
            locations,
            gaps: DescriptionGaps::default(),
            states: NamedStates::default(),
            runs: HashMap::new(),
            versions: HashMap::new(),
            stated: std::collections::HashSet::new(),
            failed: std::collections::HashSet::new(),
            rank_jobs: HashMap::new(),
            ranks: BTreeMap::new(),
            name: None,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.description.is_full()
    }

    pub(super) fn has_events(&self) -> bool {
        !self.runs.is_empty()
    }

    /// The name of the first job, for a run of several jobs.
    pub(super) fn name(&self) -> String {
        self.name.clone().unwrap_or_default()
    }

    /// Takes an event.
    pub(super) fn event(&mut self, event: &Value) -> Result<(), String> {
        if !event.is_object() {
            return Err("an event is an object".to_owned());
        }
        let run = event.pointer("/run/runId").and_then(Value::as_str);
        let Some(run) = run else {
            // Events about jobs and datasets alone say nothing that ran.
            match event.get("job").or(event.get("dataset")) {
                Some(_) => self.gaps.unplaced("events without a run"),
                None => return Err("an event has a \"run\" and a \"job\"".to_owned()),
            }
            return Ok(());
        };
        let job = event.get("job").ok_or("an event has a \"job\"")?;
        if self.rank_job(run, event) {
            return Ok(());
        }
        let activity = self.run(run, job.get("name").and_then(Value::as_str));
        let time = self.time(event);
        let kind = event.get("eventType").and_then(Value::as_str);
        let span = match kind {
            Some("START") => Span {
                start: time,
                end: None,
            },
            Some("COMPLETE" | "FAIL" | "ABORT") => Span {
                start: None,
                end: time,
            },
            _ => Span::default(),
        };
        let known = self.description.activity_mut(activity);
        known.span.join(span);
        if let Some(state @ ("FAIL" | "ABORT")) = kind {
            note(known, "state", state);
            self.failed.insert(activity);
        }
        self.facets(activity, event, job);
        for (side, relation) in [("inputs", Relation::Read), ("outputs", Relation::Write)] {
            let all = event.get(side).and_then(Value::as_array);
            for dataset in all.into_iter().flatten() {
                self.dataset(activity, relation, dataset);
            }
        }
        Ok(())
    }

    /// Takes an event about a job of a launcher of parallel work, which backstory writes as a run
    /// above its ranks. False for any other event.
    fn rank_job(&mut self, run: &str, event: &Value) -> bool {
        let facets = event.pointer("/run/facets");
        if facets.and_then(|facets| facets.get(JOB_FACET)).is_none() {
            return false;
        }
        let parent = event.pointer("/run/facets/parent/run/runId");
        let parent = parent.and_then(Value::as_str).map(Box::from);
        self.rank_jobs.insert(run.into(), parent);
        true
    }

    /// The activity of a run.
    fn run(&mut self, id: &str, job: Option<&str>) -> ActivityNumber {
        let number = match self.runs.get(id) {
            Some(known) => *known,
            None => {
                let number = self.description.activity(DescribedActivity {
                    is_part: true,
                    ..DescribedActivity::default()
                });
                self.runs.insert(id.into(), number);
                number
            }
        };
        let activity = self.description.activity_mut(number);
        if let Some(job) = job.filter(|_| activity.words.is_empty()) {
            activity.words = vec![job.as_bytes().to_vec()];
            self.name.get_or_insert_with(|| job.to_owned());
        }
        number
    }

    fn time(&mut self, event: &Value) -> Option<Time> {
        let text = event.get("eventTime")?.as_str()?;
        let time = crate::prov_json::time(text);
        self.gaps.unread_times += usize::from(time.is_none());
        time
    }

    fn facets(&mut self, activity: ActivityNumber, event: &Value, job: &Value) {
        let facets = event.pointer("/run/facets");
        let parent = facets.and_then(|facets| facets.pointer("/parent"));
        let parent_run = parent.and_then(|one| one.pointer("/run/runId")?.as_str());
        let rank = facets.and_then(|facets| facets.get(RANK_FACET));
        if let Some(rank) = rank {
            self.ranks.insert(activity, parent_run.map(Box::from));
            self.description.activity_mut(activity).job_rank = JobRank::of_terms(|name| {
                let part = rank.get(name)?;
                Some(
                    part.as_str()
                        .map_or_else(|| part.to_string(), str::to_owned),
                )
            });
        } else if let Some(id) = parent_run {
            let name = parent.and_then(|one| one.pointer("/job/name")?.as_str());
            let parent = self.run(id, name);
            self.description
                .inform(parent, activity, Informed::Fork, None);
        }
        let source = job.pointer("/facets/sourceCode/sourceCode");
        let source = source.and_then(Value::as_str);
        let query = job.pointer("/facets/sql/query").and_then(Value::as_str);
        let error = facets.and_then(|facets| facets.pointer("/errorMessage/message")?.as_str());
        let own = facets.and_then(|facets| facets.get("backstory_process"));
        if let Some(own) = own {
            self.own_process(activity, own, source);
            return;
        }
        let known = self.description.activity_mut(activity);
        let namespace = job.get("namespace").and_then(Value::as_str);
        for (key, text) in [
            ("job namespace", namespace),
            ("source code", source),
            ("sql", query),
            ("error", error),
        ] {
            if let Some(text) = text {
                note(known, key, text);
            }
        }
    }

    /// The facet that backstory's export adds.
    fn own_process(&mut self, activity: ActivityNumber, own: &Value, source: Option<&str>) {
        let cwd = own.get("cwd").and_then(Value::as_str);
        let cwd = cwd.and_then(|cwd| self.locations.path(cwd.as_bytes()));
        let number = |name: &str| own.get(name).and_then(Value::as_i64);
        let narrow = |name: &str| number(name).and_then(|one| i32::try_from(one).ok());
        let exit = narrow("exit").map(|exit| (exit & 0xff) << 8);
        let signal = narrow("signal").map(|signal| signal & 0x7f);
        let argv = own.get("argv").and_then(Value::as_array);
        let argv = argv.into_iter().flatten().filter_map(Value::as_str);
        let argv: Vec<Vec<u8>> = argv.map(|word| word.as_bytes().to_vec()).collect();
        let known = self.description.activity_mut(activity);
        known.is_part = false;
        known.cwd = cwd.unwrap_or_default();
        known.status = signal.or(exit);
        known.pid = number("pid").and_then(|pid| u32::try_from(pid).ok());
        known.words = match (argv.is_empty(), source) {
            (true, Some(line)) => vec![line.as_bytes().to_vec()],
            _ => argv,
        };
    }

    fn dataset(&mut self, activity: ActivityNumber, relation: Relation, dataset: &Value) {
        let text = |name: &str| dataset.get(name).and_then(Value::as_str);
        let (Some(namespace), Some(name)) = (text("namespace"), text("name")) else {
            self.gaps.unplaced("datasets without a name");
            return;
        };
        let (path, kind) = self.named(namespace, name);
        let side = match relation.is_use() {
            true => "/inputFacets/backstory_edge",
            false => "/outputFacets/backstory_edge",
        };
        let own = dataset.pointer(side);
        let own_entity = own.and_then(|own| own.get("entity")?.as_str());
        let stated = dataset.pointer("/facets/version/datasetVersion");
        let Some(version) = own_entity.or(stated.and_then(Value::as_str)) else {
            match relation.is_use() {
                true => self.states.read(activity, relation, &path, kind),
                false => self
                    .states
                    .made(&mut self.description, activity, &path, kind),
            }
            return;
        };
        let key = (path.clone().into(), version.into());
        let entity = match self.versions.get(&key) {
            Some(known) => *known,
            None => {
                let entity = self.description.entity(path, kind);
                self.versions.insert(key, entity);
                entity
            }
        };
        if self.stated.insert((activity, entity, relation.is_use())) {
            let certainty = own.and_then(|own| own.get("certainty")?.as_str());
            self.description.flow(Flow {
                activity,
                entity,
                relation,
                is_certain: certainty != Some("possible"),
                span: Span::default(),
            });
        }
    }

    /// The path or the URI of a dataset, as the standard's naming rules form it.
    fn named(&mut self, namespace: &str, name: &str) -> (Vec<u8>, EntityKind) {
        let is_file = namespace == "file" || namespace.starts_with("file:/");
        if is_file && let Some(path) = self.locations.path(name.as_bytes()) {
            return (path, EntityKind::File);
        }
        let (namespace, name) = (
            namespace.trim_end_matches('/'),
            name.trim_start_matches('/'),
        );
        let uri = format!("{namespace}/{name}");
        (
            uri.as_bytes()[..uri.len().min(LONGEST)].to_vec(),
            EntityKind::Resource,
        )
    }

    /// The launcher started the ranks of its job.
    fn start_ranks(&mut self) {
        for (rank, job) in std::mem::take(&mut self.ranks) {
            let launcher = job.and_then(|job| self.rank_jobs.get(&job).cloned().flatten());
            if let Some(launcher) = launcher {
                let launcher = self.run(&launcher, None);
                self.description
                    .inform(launcher, rank, Informed::Fork, None);
            }
        }
    }

    /// All that was collected.
    pub(super) fn finish(mut self) -> (Description, Locations, DescriptionGaps) {
        self.start_ranks();
        for (id, number) in &self.runs {
            // A parent whose own events are not in the log.
            let activity = self.description.activity_mut(*number);
            if activity.words.is_empty() {
                activity.words = vec![id.as_bytes().to_vec()];
            }
        }
        self.states.finish(&mut self.description);
        let is_own = |flow: &Flow| !self.description.activities[flow.activity.0 as usize].is_part;
        let unsure = |flow: &Flow| {
            !flow.relation.is_use() && self.failed.contains(&flow.activity) && !is_own(flow)
        };
        let unsure: Vec<usize> = self
            .description
            .flows
            .iter()
            .enumerate()
            .filter(|(_, flow)| unsure(flow))
            .map(|(at, _)| at)
            .collect();
        for at in unsure {
            self.description.flows[at].is_certain = false;
        }
        (self.description, self.locations, self.gaps)
    }
}

fn note(activity: &mut DescribedActivity, key: &str, text: &str) {
    let text = &text.as_bytes()[..text.len().min(LONGEST)];
    let note = (key.as_bytes().to_vec(), text.to_vec());
    if !activity.notes.contains(&note) {
        activity.notes.push(note);
    }
}
