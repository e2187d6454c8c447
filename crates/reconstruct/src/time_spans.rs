//! Spans of time in which units of work were served.

use crate::unit::RecordedUnit;
use backstory_ordering::SmallSort;

/// Spans of time, with both ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Windows(pub Vec<(u64, u64)>);

impl Windows {
    /// Joins the spans that meet. Leaves out those whose end comes before their beginning.
    pub fn of(spans: impl Iterator<Item = (u64, u64)>) -> Windows {
        let mut spans: Vec<(u64, u64)> = spans.filter(|(from, to)| from <= to).collect();
        spans.sort_small();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (from, to) in spans {
            match joined.last_mut().filter(|last| from <= last.1) {
                Some(last) => last.1 = last.1.max(to),
                None => joined.push((from, to)),
            }
        }
        Windows(joined)
    }

    /// The times that [`RecordedUnit::has`] has for one of these units.
    pub fn of_units(units: &[RecordedUnit], process: usize) -> Windows {
        Windows::of(units.iter().map(|unit| match unit.process == process {
            true => (unit.after.saturating_add(1), unit.until),
            false => (unit.began, unit.lasts),
        }))
    }

    /// True for a time within one of them.
    pub fn have(&self, time: u64) -> bool {
        let behind = self.0.partition_point(|(from, _)| *from <= time);
        let window = behind.checked_sub(1).and_then(|at| self.0.get(at));
        window.is_some_and(|(_, to)| time <= *to)
    }
}

#[cfg(test)]
mod tests {
    use super::Windows;

    #[test]
    fn a_time_is_found_in_joined_and_separate_spans() {
        let windows = Windows::of([(30, 40), (10, 20), (15, 25), (50, 45)].into_iter());
        for (time, within) in [(9, false), (10, true), (25, true), (26, false), (35, true)] {
            assert_eq!(windows.have(time), within, "{time}");
        }
        assert!(!windows.have(47) && !Windows::default().have(0));
    }
}
