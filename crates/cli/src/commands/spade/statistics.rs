//! `stat` of a key: how often its values occur, and the mean, deviation and distribution of those
//! that are numbers.

use std::collections::BTreeMap;

use backstory_export::OpmElement;

use super::graph::value;

/// A statistic of the values of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statistic {
    /// How often each value occurs.
    Histogram,
    Mean,
    /// The standard deviation of a sample.
    Deviation,
    /// How many values lie in each of so many intervals of one length.
    Distribution(usize),
}

/// The rows of a statistic, with tabs between the columns. `digits` are those behind the point.
pub(super) fn rows<'e>(
    elements: impl Iterator<Item = &'e OpmElement>,
    key: &str,
    statistic: Statistic,
    digits: usize,
) -> Result<String, String> {
    let values: Vec<String> = elements
        .filter_map(|element| value(element, key))
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .collect();
    if statistic == Statistic::Histogram {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for value in &values {
            *counts.entry(value).or_default() += 1;
        }
        let rows = counts.iter();
        return Ok(rows
            .map(|(value, count)| format!("{value}\t{count}\n"))
            .collect());
    }
    let numbers = values.iter().filter_map(|value| value.parse::<f64>().ok());
    let numbers: Vec<f64> = numbers.filter(|number| number.is_finite()).collect();
    if numbers.is_empty() {
        return Err(format!("stat: no value of '{key}' is a number"));
    }
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    Ok(match statistic {
        Statistic::Distribution(intervals) => distribution(&numbers, intervals, digits),
        Statistic::Deviation => {
            let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
            let others = (numbers.len() - 1).max(1) as f64;
            format!(
                "Standard Deviation\t{:.digits$}\n",
                (squares / others).sqrt()
            )
        }
        _ => format!("Mean\t{mean:.digits$}\n"),
    })
}

/// The intervals from the least number to the greatest, each with its begin, end and count. The
/// last one has its end.
fn distribution(numbers: &[f64], intervals: usize, digits: usize) -> String {
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let width = (most - least) / intervals as f64;
    let mut counts = vec![0usize; intervals];
    for number in numbers {
        let at = match width > 0.0 {
            true => ((number - least) / width) as usize,
            false => 0,
        };
        counts[at.min(intervals - 1)] += 1;
    }
    let row = |(at, count): (usize, &usize)| {
        let begin = least + width * at as f64;
        format!("{begin:.digits$}\t{:.digits$}\t{count}\n", begin + width)
    };
    counts.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sizes: &[&str], statistic: Statistic) -> Result<String, String> {
        let elements: Vec<OpmElement> = sizes
            .iter()
            .map(|size| OpmElement {
                annotations: vec![("size".into(), size.as_bytes().to_vec())],
                interval: None,
            })
            .collect();
        rows(elements.iter(), "size", statistic, 2)
    }

    #[test]
    fn values_are_counted_and_numbers_are_measured() {
        let sizes = ["2", "4", "4", "10", "many"];
        let histogram = "10\t1\n2\t1\n4\t2\nmany\t1\n";
        assert_eq!(of(&sizes, Statistic::Histogram).unwrap(), histogram);
        assert_eq!(of(&sizes, Statistic::Mean).unwrap(), "Mean\t5.00\n");
        let deviation = "Standard Deviation\t3.46\n";
        assert_eq!(of(&sizes, Statistic::Deviation).unwrap(), deviation);
        let two = "2.00\t6.00\t3\n6.00\t10.00\t1\n";
        assert_eq!(of(&sizes, Statistic::Distribution(2)).unwrap(), two);
        let same = "3.00\t3.00\t2\n3.00\t3.00\t0\n";
        assert_eq!(of(&["3", "3"], Statistic::Distribution(2)).unwrap(), same);
        assert!(of(&["many"], Statistic::Mean).is_err());
    }
}
