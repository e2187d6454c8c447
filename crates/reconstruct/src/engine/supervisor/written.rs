//! The comparison of writes to files of the root with the record.
//!
//! A replay compares such files as a whole with the stored contents. If these are not stored, the
//! deep log has the digest of each write. In: writes that continue in the kernel. Out: divergences.

use super::Supervisor;
use crate::divergence::DivergenceKind;
use crate::engine::caller::NotifiedCall;
use crate::resource::{Origin, ResourceId};
use backstory_ordering::SmallSort;
use std::io;
use std::os::unix::ffi::OsStrExt;

impl Supervisor {
    /// The recorded resource behind a descriptor of a file of the root. It is the first one of this
    /// path that has recorded output left, else the last one.
    fn written_resource(&self, call: &NotifiedCall, index: usize) -> Option<ResourceId> {
        let link = std::fs::read_link(format!("/proc/{}/fd/{}", call.tid, call.int(0))).ok()?;
        let path = link.as_os_str().as_bytes();
        let streams = self.matchers[index].rest.streams.iter();
        let of_path = streams.filter(|(id, _)| {
            let resource = &self.resources[**id];
            resource.link == path && resource.is_written && resource.is_native()
        });
        let rest = of_path.map(|(id, streams)| (streams.output.remaining() == 0, *id));
        let (done, open): (Vec<_>, Vec<_>) = rest.partition(|(done, _)| *done);
        let first = open.into_iter().map(|(_, id)| id).min();
        first.or_else(|| done.into_iter().map(|(_, id)| id).max())
    }

    /// Compares bytes that are written to a file of the root.
    pub(super) fn compare_written(&mut self, call: &NotifiedCall, index: usize) -> io::Result<()> {
        if !self.follows_bytes {
            return Ok(());
        }
        let Some(id) = self.written_resource(call, index) else {
            return Ok(());
        };
        let (buffers, _) = self.buffers(call)?;
        let bytes = call.gather(&buffers)?;
        let resource = &self.resources[id];
        let matcher = &mut self.matchers[index];
        let (left, matched) = (matcher.left, matcher.matched);
        matcher.write((id, resource), &bytes, &self.rules);
        // The call was not answered from the record.
        (matcher.left, matcher.matched) = (left, matched);
        Ok(())
    }

    /// Names the files whose recorded writes were not compared. Of those that were compared, the
    /// end must have come.
    pub(super) fn note_uncompared(&mut self) {
        if self.part.is_some() {
            // The rest belongs to other requests.
            return;
        }
        let mut names = Vec::new();
        for matcher in &mut self.matchers {
            let mut ids: Vec<ResourceId> = matcher.rest.streams.keys().copied().collect();
            ids.sort_small();
            for id in ids {
                let resource = &self.resources[id];
                let output = &mut matcher.streams(id).output;
                let is_file = resource.is_native() && resource.origin == Origin::Opened;
                if !is_file || output.remaining() == 0 || output.has_parted() {
                    continue;
                }
                if output.position() > 0 && !output.has_unknown() {
                    let mut divergence =
                        matcher.blank(DivergenceKind::LessOutput, resource.label());
                    divergence.recorded = "more bytes".to_owned();
                    divergence.came = "the end of the process".to_owned();
                    matcher.diverge(divergence);
                } else {
                    names.push(String::from_utf8_lossy(&resource.link).into_owned());
                }
            }
        }
        names.sort_small();
        names.dedup();
        self.result.uncompared = names;
    }
}
