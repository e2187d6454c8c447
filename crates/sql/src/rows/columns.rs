//! The cells of one row, in the order of its view's columns.
//!
//! In: what the store has of a run, a process, a version or a link. Out: a row.

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{Activity, Derived, Edge, Entity, EntityId, Inform};
use backstory_query::ConnectionEnd;
use backstory_query::answer::PeerContact;
use backstory_store::{ActivityKey, EntityKey, RunKey, RunRecord};
use backstory_vocabulary::Word;

use super::{Row, Rows};
use crate::cell::Cell;
use crate::error::Result;

pub(super) fn run_row(record: RunRecord) -> Row {
    let run = backstory_query::summary(&record);
    let header = &record.header;
    let (boot, version) = (Cell::text(&header.boot_id), Cell::text(&header.version));
    let (since_boot, uid) = (header.since_boot, header.uid);
    let source = Cell::of(header.source.as_deref(), Cell::text);
    vec![
        Cell::text(&run.id),
        Cell::of(run.name, |name| Cell::text(&name)),
        Cell::of(run.note, |note| Cell::text(&note)),
        Cell::of(run.repeats, |run| Cell::text(&run)),
        Cell::Command(run.command),
        Cell::Bytes(run.cwd),
        Cell::Time(run.started),
        Cell::of(run.ended, Cell::Time),
        Cell::number(run.exit),
        Cell::number(run.signal),
        Cell::Integer(run.complete.into()),
        Cell::text(&run.host),
        Cell::Integer(run.processes as i64),
        Cell::Integer(run.files_read as i64),
        Cell::Integer(run.files_written as i64),
        Cell::Integer(run.started),
        Cell::Integer(since_boot),
        boot,
        Cell::Integer(uid.into()),
        source,
        match &record.header.repeats {
            Some(_) => Cell::Undone(Box::new(record)),
            None => Cell::Integer(0),
        },
        version,
    ]
}

impl Rows {
    pub(super) fn process_row(&mut self, run: RunKey, one: &Activity) -> Result<Row> {
        let key = |id| Cell::Integer(ActivityKey::new(run, id).0 as i64);
        Ok(vec![
            key(one.id),
            self.run(run)?,
            Cell::of(one.parent, key),
            Cell::Integer(one.pid.into()),
            Cell::of(one.exec_path.clone(), Cell::Bytes),
            Cell::Command(one.argv.clone()),
            Cell::Bytes(one.cwd.clone()),
            Cell::Time(one.interval.start),
            Cell::Time(one.interval.end),
            Cell::number(one.exit),
            Cell::number(one.signal),
            Cell::Integer(one.interval.start),
            Cell::Integer(one.interval.end),
        ])
    }

    pub(super) fn file_row(&mut self, run: RunKey, one: Entity) -> Result<Row> {
        let key = |id| Cell::Integer(EntityKey::new(run, id).0 as i64);
        let ident = one.ident;
        Ok(vec![
            key(one.id),
            self.run(run)?,
            Cell::Bytes(one.path),
            Cell::Word(one.kind.word()),
            Cell::Integer(one.version.into()),
            Cell::of(one.previous, key),
            Cell::number(ident.map(|ident| ident.size)),
            Cell::of(ident, |ident| Cell::Time(ident.mtime)),
            Cell::of(ident, Cell::Digest),
            Cell::number(ident.map(|ident| ident.dev as i64)),
            Cell::number(ident.map(|ident| ident.ino as i64)),
            Cell::Integer(one.last.into()),
            Cell::number(ident.map(|ident| ident.mtime)),
            Cell::number(ident.map(|ident| ident.ctime)),
            Cell::number(ident.map(|ident| ident.birth)),
            Cell::Command(one.aliases),
        ])
    }

    pub(super) fn edge_row(&mut self, run: RunKey, edge: &Edge) -> Result<Row> {
        let flow = if edge.relation.is_use() {
            "used"
        } else {
            "generated"
        };
        Ok(vec![
            Cell::Integer(ActivityKey::new(run, edge.activity).0 as i64),
            Cell::Integer(EntityKey::new(run, edge.entity).0 as i64),
            self.run(run)?,
            Cell::Word(edge.relation.words().word),
            Cell::Word(flow),
            Cell::Word(edge.certainty.word()),
            Cell::Time(edge.interval.start),
            Cell::Time(edge.interval.end),
            Cell::Word(edge.via.word()),
            Cell::Integer(edge.interval.start),
            Cell::Integer(edge.interval.end),
        ])
    }

    pub(super) fn derivation_row(&mut self, run: RunKey, one: Derived) -> Result<Row> {
        let file = |id| Cell::Integer(EntityKey::new(run, id).0 as i64);
        Ok(vec![
            file(one.entity),
            file(one.from),
            Cell::Integer(ActivityKey::new(run, one.activity).0 as i64),
            self.run(run)?,
            Cell::Time(one.time),
            Cell::Integer(one.time),
        ])
    }

    pub(super) fn connection_row(
        &mut self,
        run: RunKey,
        end: &ConnectionEnd,
        (requests, replies): (Option<EntityId>, Option<EntityId>),
    ) -> Result<Row> {
        let entity = |id| Cell::of(id, |id| Cell::Integer(EntityKey::new(run, id).0 as i64));
        Ok(vec![
            Cell::Integer(ActivityKey::new(run, end.activity).0 as i64),
            entity(requests),
            entity(replies),
            self.run(run)?,
            Cell::Word(if end.accepted { "server" } else { "client" }),
            Cell::text(&end.own.to_string()),
            Cell::text(&end.other.to_string()),
            Cell::Word(end.scope().word()),
            Cell::Time(end.began),
            Cell::Integer(end.began),
            Cell::Integer(end.network as i64),
        ])
    }

    pub(super) fn peer_row(&mut self, run: RunKey, peer: &PeerContact) -> Result<Row> {
        let bytes = |which: fn((u64, u64)) -> u64| {
            Cell::of(peer.bytes, |both| Cell::Integer(which(both) as i64))
        };
        let mut names: Vec<Bytes> = peer
            .names
            .iter()
            .map(|one| one.name.as_bytes().into())
            .collect();
        names.sort_unstable();
        names.dedup();
        Ok(vec![
            Cell::Integer(peer.id as i64),
            self.run(run)?,
            Cell::text(&String::from_utf8_lossy(&peer.address)),
            Cell::Paths(names),
            Cell::Integer(peer.serves.into()),
            Cell::number(peer.connected),
            Cell::number(peer.errno),
            bytes(|(sent, _)| sent),
            bytes(|(_, received)| received),
            Cell::Time(peer.interval.start),
            Cell::Time(peer.interval.end),
            Cell::Integer(peer.interval.start),
            Cell::Integer(peer.interval.end),
        ])
    }

    pub(super) fn inform_row(&mut self, run: RunKey, one: Inform) -> Result<Row> {
        let process = |id| Cell::Integer(ActivityKey::new(run, id).0 as i64);
        Ok(vec![
            process(one.to),
            process(one.from),
            self.run(run)?,
            Cell::Word(one.why.words().word),
            Cell::Time(one.time),
            Cell::Integer(one.time),
        ])
    }
}
