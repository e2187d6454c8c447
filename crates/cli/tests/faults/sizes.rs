//! The size of a process over time: private and shared memory, descriptors, threads.

/// One kind of size at each measurement.
struct Series {
    what: &'static str,
    values: Vec<u64>,
    /// Growth that does not count: the needs of an allocator, or of a short-lived thread.
    slack: u64,
}

/// The sizes of one process.
pub struct History {
    who: &'static str,
    series: [Series; 3],
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

impl Series {
    const fn of(what: &'static str, slack: u64) -> Series {
        Series {
            what,
            values: Vec::new(),
            slack,
        }
    }

    /// The usual value in the second and in the last third. In the first third, everything
    /// necessary is allocated.
    fn thirds(&self) -> (u64, u64) {
        let third = self.values.len() / 3;
        (
            median(&self.values[third..2 * third]),
            median(&self.values[2 * third..]),
        )
    }
}

impl History {
    /// A history without measurements.
    pub fn new(who: &'static str) -> History {
        let series = [
            Series::of("kB of memory", 512),
            Series::of("descriptors", 8),
            Series::of("threads", 2),
        ];
        History { who, series }
    }

    /// Measures the process now.
    pub fn look(&mut self, pid: u32) {
        let count =
            |what: &str| std::fs::read_dir(format!("/proc/{pid}/{what}")).map(|d| d.count() as u64);
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
        let (Ok(status), Ok(descriptors), Ok(threads)) = (status, count("fd"), count("task"))
        else {
            return;
        };
        let lines = status.lines().filter_map(|line| line.split_once(':'));
        let memory = lines
            .filter(|(name, _)| ["RssAnon", "RssShmem"].contains(name))
            .filter_map(|(_, size)| size.split_whitespace().next()?.parse::<u64>().ok())
            .sum();
        for (series, value) in self.series.iter_mut().zip([memory, descriptors, threads]) {
            series.values.push(value);
        }
    }

    /// First and last usual sizes.
    pub fn summary(&self) -> String {
        let sizes = self.series.iter().map(|series| {
            let (before, after) = series.thirds();
            format!("{} {before} -> {after}", series.what)
        });
        format!(
            "soak: {}: {}",
            self.who,
            sizes.collect::<Vec<_>>().join(", ")
        )
    }

    /// The sizes that grew, or were never measured.
    pub fn growth(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for series in &self.series {
            let (before, after) = series.thirds();
            if series.values.len() < 6 || after > before + series.slack {
                lines.push(format!(
                    "{}: {} went from {before} to {after} ({} looks)",
                    self.who,
                    series.what,
                    series.values.len()
                ));
            }
        }
        lines
    }
}

#[test]
fn growth_is_noticed_and_a_large_start_is_not() {
    let history = |sizes: &mut dyn Iterator<Item = u64>| {
        let mut history = History::new("it");
        for size in sizes {
            for series in &mut history.series {
                series.values.push(size);
            }
        }
        history.growth().len()
    };
    assert_eq!(history(&mut (0..90).map(|i| i * 100)), 3);
    assert_eq!(history(&mut (0..90).map(|i| u64::min(i, 20) * 100)), 0);
    assert_eq!(history(&mut std::iter::empty()), 3);
}
