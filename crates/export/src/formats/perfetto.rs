//! A trace for Perfetto: a track for each process, a slice for each program, and arrows along the
//! flow of data.
//!
//! The format is Perfetto's own, a sequence of `TracePacket`s with `perfetto.protos.TrackEvent`s.
//! Perfetto also reads Chrome's JSON format, but does not extend it. Times are nanoseconds since
//! 1970.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use super::protobuf::Message;
use super::word;
use crate::family::Family;
use crate::format::{Format, Target};
use crate::view::{Endpoint, ViewActivity, ViewLink};
use crate::{Result, View};

/// `perfetto`
pub struct Perfetto;

/// Field numbers by message, from `perfetto_trace.proto`.
mod field {
    pub mod trace {
        pub const PACKET: u32 = 1;
    }
    pub mod packet {
        pub const CLOCK_SNAPSHOT: u32 = 6;
        pub const TIMESTAMP: u32 = 8;
        pub const SEQUENCE: u32 = 10;
        pub const TRACK_EVENT: u32 = 11;
        pub const SEQUENCE_FLAGS: u32 = 13;
        pub const TRACK: u32 = 60;
    }
    pub mod clocks {
        pub const CLOCK: u32 = 1;
        pub const ID: u32 = 1;
        pub const TIMESTAMP: u32 = 2;
    }
    pub mod track {
        pub const UUID: u32 = 1;
        pub const NAME: u32 = 2;
        pub const PARENT: u32 = 5;
        pub const CHILDREN: u32 = 11;
    }
    pub mod event {
        pub const ANNOTATION: u32 = 4;
        pub const TYPE: u32 = 9;
        pub const TRACK: u32 = 11;
        pub const CATEGORY: u32 = 22;
        pub const NAME: u32 = 23;
        pub const FLOW: u32 = 47;
        pub const LAST_OF_FLOW: u32 = 48;
    }
    pub mod annotation {
        pub const INT: u32 = 4;
        pub const STRING: u32 = 6;
        pub const NAME: u32 = 10;
    }
}

/// `TrackEvent.Type`.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Begin = 1,
    End = 2,
    Instant = 3,
}

/// `SEQ_INCREMENTAL_STATE_CLEARED`: the packet refers to no earlier one.
const BEGINNING: u64 = 1;

/// Tracks below another one are shown in the order of their first event.
const CHRONOLOGICAL: u64 = 2;

/// The clock of a trace, and the clock of the calendar.
const CLOCKS: [u64; 2] = [6, 1];

impl Format for Perfetto {
    fn name(&self) -> &'static str {
        "perfetto"
    }
    fn about(&self) -> &'static str {
        "a timeline for ui.perfetto.dev"
    }
    fn family(&self) -> Family {
        Family::Picture
    }
    fn proven_by(&self) -> &'static str {
        "Perfetto's own classes for Python"
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let mut out = Packets(target.stream());
        let starts = view
            .activities
            .iter()
            .map(|activity| activity.interval.start);
        out.begin(starts.min().unwrap_or_default())?;
        let tracks = tracks(view, &mut out)?;
        let passed = passed(view);
        for (at, activity) in view.activities.iter().enumerate() {
            let track = tracks[at];
            out.event(activity.interval.start, begin(activity, track))?;
            for moment in passed.get(&at).into_iter().flatten() {
                let mut event = event(Kind::Instant, track).text(field::event::NAME, &moment.name);
                for (flow, ends) in &moment.flows {
                    let field = if *ends {
                        field::event::LAST_OF_FLOW
                    } else {
                        field::event::FLOW
                    };
                    event = event.fixed(field, *flow);
                }
                out.event(moment.time, event)?;
            }
            out.event(activity.interval.end, event(Kind::End, track))?;
        }
        Ok(())
    }
}

/// The packets of one writer.
struct Packets<'o>(&'o mut dyn Write);

impl Packets<'_> {
    /// Declares that the trace's clock is that of the calendar.
    fn begin(&mut self, zero: i64) -> io::Result<()> {
        let mut clocks = Message::default();
        for id in CLOCKS {
            let clock = Message::default()
                .number(field::clocks::ID, id)
                .number(field::clocks::TIMESTAMP, moment(zero));
            clocks = clocks.message(field::clocks::CLOCK, &clock);
        }
        let packet = Message::default()
            .number(field::packet::TIMESTAMP, moment(zero))
            .message(field::packet::CLOCK_SNAPSHOT, &clocks)
            .number(field::packet::SEQUENCE_FLAGS, BEGINNING);
        self.packet(packet)
    }

    fn track(&mut self, uuid: u64, parent: Option<u64>, name: &str) -> io::Result<()> {
        let mut track = Message::default()
            .number(field::track::UUID, uuid)
            .text(field::track::NAME, name);
        track = match parent {
            Some(parent) => track.number(field::track::PARENT, parent),
            None => track.number(field::track::CHILDREN, CHRONOLOGICAL),
        };
        self.packet(Message::default().message(field::packet::TRACK, &track))
    }

    fn event(&mut self, time: i64, event: Message) -> io::Result<()> {
        let packet = Message::default()
            .number(field::packet::TIMESTAMP, moment(time))
            .message(field::packet::TRACK_EVENT, &event);
        self.packet(packet)
    }

    fn packet(&mut self, packet: Message) -> io::Result<()> {
        let packet = packet.number(field::packet::SEQUENCE, 1);
        let trace = Message::default().message(field::trace::PACKET, &packet);
        self.0.write_all(trace.bytes())
    }
}

fn moment(time: i64) -> u64 {
    u64::try_from(time).unwrap_or_default()
}

/// Declares the tracks: one for each run, and below it those of its processes. The result is the
/// track of each activity.
///
/// Slices of one track never overlap. A process whose steps overlap in time therefore has several
/// tracks.
fn tracks(view: &View, out: &mut Packets<'_>) -> io::Result<Vec<u64>> {
    let runs = view.runs.len() as u64;
    for (uuid, run) in (1..).zip(&view.runs) {
        out.track(uuid, None, &format!("run {}", run.summary.id))?;
    }
    let mut next = runs;
    let mut lanes: HashMap<(usize, u32), Vec<(u64, i64)>> = HashMap::new();
    let mut on = Vec::new();
    for activity in &view.activities {
        let lanes = lanes.entry((activity.run, activity.pid)).or_default();
        let free = lanes
            .iter()
            .position(|(_, end)| *end <= activity.interval.start);
        let lane = match free {
            Some(lane) => lane,
            None => {
                next += 1;
                let name = format!("{} {}", program(activity), activity.pid);
                out.track(next, Some(activity.run as u64 + 1), &name)?;
                lanes.push((next, i64::MIN));
                lanes.len() - 1
            }
        };
        lanes[lane].1 = activity.interval.end;
        on.push(lanes[lane].0);
    }
    Ok(on)
}

fn program(activity: &ViewActivity) -> &str {
    activity.label.split_whitespace().next().unwrap_or("?")
}

fn event(kind: Kind, track: u64) -> Message {
    Message::default()
        .number(field::event::TYPE, kind as u64)
        .number(field::event::TRACK, track)
}

fn begin(activity: &ViewActivity, track: u64) -> Message {
    let text = |name: &str, text: &str| {
        Message::default()
            .text(field::annotation::NAME, name)
            .text(field::annotation::STRING, text)
    };
    let number = |name: &str, number: i32| {
        Message::default()
            .text(field::annotation::NAME, name)
            .signed(field::annotation::INT, i64::from(number))
    };
    let facts = [
        Some(text("command", &activity.label)),
        Some(text("cwd", &String::from_utf8_lossy(&activity.cwd))),
        Some(text("id", &activity.id)),
        activity.exit.map(|exit| number("exit", exit)),
        activity.signal.map(|signal| number("signal", signal)),
    ];
    let begin = event(Kind::Begin, track)
        .text(field::event::CATEGORY, "activity")
        .text(field::event::NAME, program(activity));
    facts.iter().flatten().fold(begin, |event, fact| {
        event.message(field::event::ANNOTATION, fact)
    })
}

/// A time at which an activity made data that another one used, or used data of another one.
struct Moment {
    time: i64,
    name: String,
    /// Arrows, and whether each ends here.
    flows: Vec<(u64, bool)>,
}

/// The arrows from each writer of a file or pipe to each later reader: by activity, in order of
/// time.
fn passed(view: &View) -> HashMap<usize, Vec<Moment>> {
    let mut made: Vec<Vec<(usize, &ViewLink)>> = vec![Vec::new(); view.entities.len()];
    for link in &view.links {
        if let (Endpoint::Activity(maker), Endpoint::Entity(entity)) = (link.from, link.to) {
            made[entity].push((maker, link));
        }
    }
    let mut moments: BTreeMap<(usize, i64, String), Vec<(u64, bool)>> = BTreeMap::new();
    let mut number = 0;
    for link in &view.links {
        let (Endpoint::Entity(entity), Endpoint::Activity(reader)) = (link.from, link.to) else {
            continue;
        };
        let path = view.shown(&view.entities[entity].path);
        for (maker, before) in made[entity].iter().filter(|(maker, _)| *maker != reader) {
            let (from, to) = (
                &view.activities[*maker].interval,
                &view.activities[reader].interval,
            );
            let until = before.interval.start.max(from.start).min(from.end);
            let since = link.interval.end.max(to.start).min(to.end);
            if until > since {
                continue;
            }
            number += 1;
            let name =
                |link: &ViewLink| format!("{} {}", word(link.flow), String::from_utf8_lossy(path));
            let begins = moments.entry((*maker, until, name(before))).or_default();
            begins.push((number, false));
            let ends = moments.entry((reader, since, name(link))).or_default();
            ends.push((number, true));
        }
    }
    let mut of: HashMap<usize, Vec<Moment>> = HashMap::new();
    for ((activity, time, name), flows) in moments {
        of.entry(activity)
            .or_default()
            .push(Moment { time, name, flows });
    }
    of
}
