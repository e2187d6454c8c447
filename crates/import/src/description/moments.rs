//! Bounds the times that a description does not give.
//!
//! A relation without a time happened while its activity ran. An activity without times ran between
//! the first and the last moment of the description. Without any time, all is at one moment: that
//! of the document's last change.

use super::statements::{Description, Span};
use backstory_eventlog::event::Time;
use backstory_graph::lineage;
use backstory_graph::model::Interval;

/// The times of a description.
#[derive(Debug, Default)]
pub(super) struct DescribedMoments {
    /// From the first to the last moment.
    pub(super) whole: Option<Interval>,
    /// Of each activity.
    pub(super) activities: Vec<Interval>,
    /// Of each relation.
    pub(super) flows: Vec<Interval>,
    /// Uses that the document places before the entity was there.
    pub(super) contradictions: usize,
}

impl DescribedMoments {
    /// The times. `changed` is the document's last change.
    pub(super) fn of(description: &Description, changed: Time) -> DescribedMoments {
        let whole = whole(description);
        let bounds = whole.unwrap_or(Interval {
            start: changed,
            end: changed,
        });
        let mut own: Vec<Span> = description.activities.iter().map(|one| one.span).collect();
        for flow in &description.flows {
            // A relation lies in its activity. So it bounds one without times.
            let known = description.activities[flow.activity.0 as usize].span;
            let span = &mut own[flow.activity.0 as usize];
            let (start, end) = (
                flow.span.start.or(flow.span.end),
                flow.span.end.or(flow.span.start),
            );
            if known.start.is_none() && known.end.is_none() {
                span.join(Span { start, end });
            }
        }
        let activities: Vec<Interval> = own
            .iter()
            .map(|span| {
                ordered(
                    span.start.unwrap_or(bounds.start),
                    span.end.unwrap_or(bounds.end),
                )
            })
            .collect();
        let flows = description.flows.iter().map(|flow| {
            let own = activities[flow.activity.0 as usize];
            match (flow.span.start, flow.span.end) {
                (Some(start), Some(end)) => ordered(start, end),
                // PROV: the time of a use is its beginning, that of a generation its end.
                (Some(start), None) => ordered(start, own.end.max(start)),
                (None, Some(end)) => ordered(own.start.min(end), end),
                (None, None) => own,
            }
        });
        let flows = flows.collect();
        let mut moments = DescribedMoments {
            whole,
            activities,
            flows,
            contradictions: 0,
        };
        moments.admit(description);
        moments
    }

    /// Extends each use that ends before its entity was there. The document states the use, so its
    /// times are wrong.
    fn admit(&mut self, description: &Description) {
        let mut made: Vec<Option<Time>> = vec![None; description.entities.len()];
        for (flow, interval) in description.flows.iter().zip(&self.flows) {
            if lineage::generates(flow.relation) {
                let first = &mut made[flow.entity.0 as usize];
                *first = Some(first.map_or(interval.start, |first| first.min(interval.start)));
            }
        }
        for (flow, interval) in description.flows.iter().zip(&mut self.flows) {
            if let Some(made) = made[flow.entity.0 as usize]
                && flow.relation.is_use()
                && interval.end < made
            {
                interval.end = made;
                self.contradictions += 1;
            }
        }
    }
}

fn ordered(start: Time, end: Time) -> Interval {
    Interval {
        start: start.min(end),
        end: end.max(start),
    }
}

/// From the first to the last moment of a description, if it has times.
fn whole(description: &Description) -> Option<Interval> {
    let spans = description.activities.iter().map(|one| one.span);
    let spans = spans.chain(description.flows.iter().map(|flow| flow.span));
    let times = spans.flat_map(|span| span.start.into_iter().chain(span.end));
    let times = times.chain(description.informings.iter().filter_map(|one| one.time));
    times.fold(None, |whole: Option<Interval>, time| {
        let whole = whole.unwrap_or(Interval {
            start: time,
            end: time,
        });
        Some(Interval {
            start: whole.start.min(time),
            end: whole.end.max(time),
        })
    })
}
