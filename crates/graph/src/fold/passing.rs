//! Descriptors that processes pass through a socket, and memory files.

use super::{CallContext, Fold};
use crate::model::{EntityKind, Sink};
use crate::paths::ROOT;
use crate::process::Descriptor;
use std::collections::VecDeque;
use std::rc::Rc;

impl<S: Sink> Fold<'_, S> {
    /// Notes that a process sends or receives a descriptor. The receiving call may begin before the
    /// sending call.
    pub(super) fn pass(
        &mut self,
        call: CallContext,
        socket: i32,
        fd: i32,
        received: bool,
    ) -> Result<(), S::Error> {
        let Some(what) = self.descriptor(call, socket).and_then(|h| h.what.clone()) else {
            return Ok(());
        };
        if received {
            let waiting = self
                .channels
                .sent
                .get_mut(&what.source)
                .and_then(VecDeque::pop_front);
            return match waiting {
                Some(held) => self.install(
                    call,
                    fd,
                    Descriptor {
                        since: call.time,
                        ..held
                    },
                ),
                None => {
                    self.channels
                        .awaited
                        .entry(what.source)
                        .or_default()
                        .push_back((call.pid, fd));
                    Ok(())
                }
            };
        }
        let Some(held) = self.descriptor(call, fd).cloned() else {
            return Ok(());
        };
        let copy = Descriptor {
            own: false,
            cloexec: false,
            read: None,
            written: None,
            listed: None,
            carried_nothing: false,
            ..held
        };
        match self
            .channels
            .awaited
            .get_mut(&what.target)
            .and_then(VecDeque::pop_front)
        {
            Some((pid, fd)) => {
                let Some(epoch) = self.processes.get(&pid).map(|p| p.epoch) else {
                    return Ok(());
                };
                self.install(
                    CallContext { pid, epoch, ..call },
                    fd,
                    Descriptor {
                        since: call.time,
                        ..copy
                    },
                )
            }
            None => {
                self.channels
                    .sent
                    .entry(what.target)
                    .or_default()
                    .push_back(copy);
                Ok(())
            }
        }
    }

    pub(super) fn memfd(&mut self, call: CallContext, name: &[u8]) -> Result<(), S::Error> {
        if !call.ok() {
            return Ok(());
        }
        let object = self.add(EntityKind::Memory, ROOT, call.time, 1);
        self.object_mut(object).label = Some([b"memfd:", name].concat().into());
        let end = self.end(call, object, object, true, true);
        let mut held = Descriptor::opened(Rc::new(end), call.time, false);
        (held.source_from, held.target_from) = (1, 1);
        self.install_result(call, held)
    }
}
