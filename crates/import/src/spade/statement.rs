//! A line with the keys that SPADE itself knows taken out, and the vertices that edges name.

use super::line::Annotation;
use crate::description::{ActivityNumber, DescriptionGaps, EntityNumber};
use crate::prov_json::time;
use backstory_eventlog::event::Time;
use backstory_eventlog::job_rank::JobRank;

/// The longest name of a thing, in bytes.
const LONGEST_NAME: usize = 4096;

/// A vertex of the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vertex {
    Activity(ActivityNumber),
    Entity(EntityNumber),
    /// Its index in `agents`.
    Agent(usize),
}

/// A line, with what SPADE itself knows taken out.
#[derive(Debug, Default)]
pub(super) struct Statement {
    pub(super) sort: Option<Vec<u8>>,
    pub(super) id: Option<Vec<u8>>,
    pub(super) from: Option<Vec<u8>>,
    pub(super) to: Option<Vec<u8>>,
    pub(super) rest: Vec<Annotation>,
}

impl Statement {
    pub(super) fn of(all: Vec<Annotation>) -> Statement {
        let mut stated = Statement::default();
        for (key, value) in all {
            let place = match key.to_ascii_lowercase().as_slice() {
                b"type" => &mut stated.sort,
                b"id" => &mut stated.id,
                b"from" => &mut stated.from,
                b"to" => &mut stated.to,
                _ => {
                    stated.rest.push((key, value));
                    continue;
                }
            };
            *place = Some(value);
        }
        stated
    }

    /// The value of the first of these keys, which leaves the line.
    pub(super) fn take(&mut self, keys: &[&[u8]]) -> Option<Vec<u8>> {
        keys.iter().find_map(|wanted| {
            let is =
                |(key, value): &Annotation| key.eq_ignore_ascii_case(wanted) && !value.is_empty();
            let at = self.rest.iter().position(is)?;
            Some(self.rest.remove(at).1)
        })
    }

    pub(super) fn number(&mut self, key: &[u8]) -> Option<u32> {
        let value = self.take(&[key])?;
        std::str::from_utf8(&value).ok()?.trim().parse().ok()
    }

    /// The place in a job that backstory's export wrote, which leaves the line.
    pub(super) fn job_rank(&mut self) -> Option<JobRank> {
        let rank = JobRank::of_terms(|name| {
            let mut all = self.rest.iter();
            let (_, value) = all.find(|(key, _)| key == name.as_bytes())?;
            String::from_utf8(value.clone()).ok()
        })?;
        for (name, _) in rank.terms() {
            self.take(&[name.as_bytes()]);
        }
        Some(rank)
    }

    /// The name of a thing that has no path: all that is said about it.
    pub(super) fn description(&self, subtype: &[u8]) -> Vec<u8> {
        let mut name = subtype.to_vec();
        for (key, value) in &self.rest {
            let separator: &[u8] = if name.is_empty() { b"" } else { b" " };
            name.extend([separator, key, b":", value].concat());
        }
        if name.is_empty() {
            name = self.id.clone().unwrap_or_default();
        }
        name.truncate(LONGEST_NAME);
        name
    }
}

/// A time: seconds since 1970 with a fraction, as SPADE's reporters write it, or a date.
pub(super) fn moment(text: Option<Vec<u8>>, gaps: &mut DescriptionGaps) -> Option<Time> {
    let text = text?;
    let text = std::str::from_utf8(&text).ok().map(str::trim);
    let found = text.and_then(|text| seconds(text).or_else(|| time(text)));
    gaps.unread_times += usize::from(found.is_none());
    found
}

/// Seconds since 1970, with a fraction of at most nine digits.
fn seconds(text: &str) -> Option<Time> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let fraction: Time = format!("{fraction:0<9}").parse().ok()?;
    whole
        .parse::<Time>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_seconds_with_a_fraction() {
        assert_eq!(seconds("1433213.123"), Some(1_433_213_123_000_000));
        assert_eq!(seconds("7"), Some(7_000_000_000));
        for other in [
            "",
            ".5",
            "5:56 PM",
            "-1",
            "1e9",
            "99999999999999999999",
            "1.0123456789",
        ] {
            assert_eq!(seconds(other), None, "{other}");
        }
    }
}
