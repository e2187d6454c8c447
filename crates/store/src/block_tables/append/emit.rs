//! Takes the graph as it is emitted, and writes segments when enough entries have gathered.

use backstory_eventlog::event::Time;
use backstory_files::Ident;
use backstory_graph::model::{
    Activity, ActivityId, Derived, Edge, Entity, EntityId, Inform, Informed, Relation, Sink,
};

use super::{ActivityTail, AnnouncedEntity, AppendingRun};
use crate::block_tables::{BlockTable, BlockTables, GraphReader};
use crate::codec::members::BLOCK;
use crate::codec::{extended, reverse, stream};
use crate::{Error, Result, VersionMatch};

/// Entries that gather before they are written. Few in tests, so that streams there have several
/// segments.
pub(super) const SPILL: usize = if cfg!(test) { 16 } else { 1 << 20 };

impl<T: BlockTables> AppendingRun<'_, T> {
    /// Stores an identity, in the place of the one at `before`.
    fn keep_ident(&mut self, before: Option<u32>, ident: Option<Ident>) -> Result<Option<u32>> {
        let Some(ident) = ident else { return Ok(None) };
        if let Some(before) = before {
            self.idents[before as usize] = ident;
            return Ok(Some(before));
        }
        let at = u32::try_from(self.idents.len()).map_err(|_| Error::TooMany("identities"))?;
        self.idents.push(ident);
        Ok(Some(at))
    }

    fn unannounced(&self, what: &'static str, id: u32) -> Error {
        Error::Unannounced {
            run: self.header.id.clone(),
            what,
            id: u64::from(id),
        }
    }

    fn announced(&mut self, id: ActivityId) -> Result<&mut stream::Builder> {
        if !matches!(self.activities.get(id.0 as usize), Some(Some(_))) {
            return Err(self.unannounced("activity", id.0));
        }
        let open = &mut self.streams[id.0 as usize].open;
        let new = || Box::new(stream::Builder::new(id, self.header.started));
        Ok(open.get_or_insert_with(new))
    }

    fn known(&mut self, id: EntityId) -> Result<&mut AnnouncedEntity> {
        if !matches!(self.entities.get(id.0 as usize), Some(Some(_))) {
            return Err(self.unannounced("entity", id.0));
        }
        match &mut self.entities[id.0 as usize] {
            Some(known) => Ok(known),
            None => Err(Error::Damaged("entity")),
        }
    }

    fn mention(&mut self, entity: EntityId, activity: ActivityId, generated: bool) {
        let mention = ((entity.0 % BLOCK) as u8, activity.0, generated);
        let list = &mut self.mentions[(entity.0 / BLOCK) as usize].0;
        // The relations of one activity with one entity mostly come one after the other.
        if list.last() != Some(&mention) {
            list.push(mention);
        }
        self.pending += 1;
    }

    fn spill_if_full(&mut self) -> Result<()> {
        if self.pending >= SPILL {
            self.spill()
        } else {
            Ok(())
        }
    }

    /// Writes all lists gathered so far, each pointing back to the one before it.
    pub(super) fn spill(&mut self) -> Result<()> {
        let number = self.number()?;
        for id in 0..self.streams.len() {
            if let Some(full) = self.streams[id].open.take() {
                let list = full.finish(self.streams[id].last);
                let list = self.edge_lists.push(self.tables, number, &list)?;
                self.streams[id].last = Some(list);
            }
        }
        self.edge_lists.write(self.tables, number)?;
        for block in 0..self.mentions.len() {
            if !self.mentions[block].0.is_empty() {
                let mut full = std::mem::take(&mut self.mentions[block].0);
                let segment = reverse::encode(&mut full, self.mentions[block].1);
                self.mentions[block].1 = Some(self.segment(number, &segment)?);
            }
        }
        self.pending = 0;
        Ok(())
    }

    fn segment(&mut self, run: u32, segment: &[u8]) -> Result<u32> {
        let id = self.segments;
        self.segments = id
            .checked_add(1)
            .filter(|n| *n < u32::MAX)
            .ok_or(Error::TooMany("lists of activities in one run"))?;
        let key = i64::from(run) << 32 | i64::from(id);
        self.tables.add_row(BlockTable::Segments, key, segment)?;
        Ok(id)
    }

    /// Writes the extended records gathered so far.
    pub(super) fn write_extended(&mut self) -> Result<()> {
        let new = extended::Builder::new(self.header.started);
        let full = std::mem::replace(&mut self.extended, new);
        if full.count() == 0 {
            return Ok(());
        }
        let key = i64::from(self.number()?) << 32 | i64::from(self.extended_written);
        self.extended_written = self
            .extended_written
            .checked_add(full.count())
            .ok_or(Error::TooMany("extended records in one run"))?;
        self.tables
            .add_row(BlockTable::Extended, key, &full.finish())
    }

    /// Where the newest list of an activity's edges is.
    pub(super) fn stream_tail(&self, activity: usize) -> Option<u32> {
        self.streams[activity].last
    }

    /// Where the newest list of the activities of a block's entities is.
    pub(super) fn reverse_tail(&self, block: usize) -> Option<u32> {
        self.mentions[block].1
    }
}

impl<T: BlockTables> Sink for AppendingRun<'_, T> {
    type Error = Error;

    fn activity(&mut self, activity: &Activity) -> Result<()> {
        let id = activity.id.0 as usize;
        while self.activities.len() <= id {
            self.activities.push(None);
            self.streams.push(ActivityTail::default());
        }
        self.activities[id] = Some(activity.clone());
        Ok(())
    }

    fn entity(&mut self, entity: &Entity) -> Result<()> {
        let id = entity.id.0 as usize;
        if self.entities.len() <= id {
            self.entities.resize(id + 1, None);
            self.mentions
                .resize_with(id / BLOCK as usize + 1, Default::default);
        }
        let before = self.entities[id].take();
        let part = before.as_ref().map(|known| known.part).unwrap_or_default();
        let told = before.as_ref().map(|known| (known.dir, known.name));
        let (dir, name) = self.names.intern(&entity.path, told)?;
        let mut aliases = None;
        if !entity.aliases.is_empty() {
            let split = entity
                .aliases
                .iter()
                .map(|alias| self.names.intern(alias, None));
            aliases = Some(split.collect::<Result<_>>()?);
        }
        let ident = self.keep_ident(before.and_then(|known| known.ident), entity.ident)?;
        self.entities[id] = Some(AnnouncedEntity {
            dir,
            name,
            kind: entity.kind,
            ident,
            number: entity.version,
            previous: entity.previous.map(|p| p.0),
            last: entity.last,
            aliases,
            by_name: (!entity.by_name.is_empty()).then(|| entity.by_name.as_slice().into()),
            part,
        });
        Ok(())
    }

    fn edge(&mut self, edge: &Edge) -> Result<()> {
        let part = &mut self.known(edge.entity)?.part;
        match edge.relation {
            Relation::Read | Relation::Execute => part.read = true,
            Relation::Write | Relation::Make | Relation::Rename => {
                (part.written, part.made) = (true, true)
            }
            Relation::Delete => part.written = true,
            _ => {}
        }
        self.announced(edge.activity)?.edge(edge);
        self.renames.edge(edge);
        self.edges += 1;
        self.mention(edge.entity, edge.activity, !edge.relation.is_use());
        self.spill_if_full()
    }

    fn inform(&mut self, inform: &Inform) -> Result<()> {
        self.announced(inform.from)?.informs(inform);
        self.announced(inform.to)?.informed_by(inform);
        self.edges += u64::from(!matches!(inform.why, Informed::Exec));
        self.pending += 2;
        self.spill_if_full()
    }

    fn derived(&mut self, derived: &Derived) -> Result<()> {
        self.known(derived.from)?;
        self.known(derived.entity)?.part.made = true;
        self.announced(derived.activity)?.derived(derived);
        self.renames.derived(derived);
        self.edges += 1;
        self.mention(derived.entity, derived.activity, true);
        self.mention(derived.from, derived.activity, false);
        self.spill_if_full()
    }

    fn extended(
        &mut self,
        activity: ActivityId,
        time: Time,
        kind: &[u8],
        payload: &[u8],
    ) -> Result<()> {
        self.announced(activity)?;
        self.extended.push(activity, time, kind, payload);
        match self.extended.is_full() {
            true => self.write_extended(),
            false => Ok(()),
        }
    }

    fn unknown(&mut self, reason: &str) -> Result<()> {
        if !self.unknown.iter().any(|known| known == reason) {
            self.unknown.push(reason.to_owned());
        }
        Ok(())
    }

    fn made_before(&self, ident: &Ident) -> bool {
        let made = GraphReader::new(self.tables).same(ident, VersionMatch::Made);
        made.is_ok_and(|made| !made.is_empty())
    }
}
