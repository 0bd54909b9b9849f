//! Figures of a case: the median and spread of several samples, a table for people and one line for programs. A report
//! can be saved and compared with a later report.

use std::{collections::BTreeMap, path::Path};

use anyhow::Context;
use serde_json::{Map, Value, json};

/// Samples of every figure, by the figure's name.
#[derive(Debug, Default)]
pub(crate) struct Samples(BTreeMap<String, Vec<f64>>);

impl Samples {
    /// Adds a sample.
    pub(crate) fn add(&mut self, name: impl Into<String>, value: f64) {
        self.0.entry(name.into()).or_default().push(value);
    }
}

/// Figures of a finished case.
pub(crate) struct Report {
    case: &'static str,
    figures: Vec<(String, Figure)>,
    /// Violated expectations.
    faults: Vec<String>,
}

/// Median, minimum and maximum of the samples.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figure {
    median: f64,
    least: f64,
    most: f64,
}

impl Figure {
    /// Computes the figure; `None` without a sample.
    fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let (least, most) = (*samples.first()?, *samples.last()?);
        let middle = samples.len() / 2;
        let median = if samples.len() % 2 == 1 {
            samples[middle]
        } else {
            f64::midpoint(samples[middle - 1], samples[middle])
        };
        Some(Self {
            median,
            least,
            most,
        })
    }
}

impl Report {
    /// Makes a case's report from the samples.
    pub(crate) fn of(case: &'static str, samples: Samples) -> Self {
        let figures = samples.0.into_iter();
        let figures = figures.filter_map(|(name, samples)| Some((name, Figure::of(samples)?)));
        Self {
            case,
            figures: figures.collect(),
            faults: Vec::new(),
        }
    }

    /// Adds a fault to the report if the expectation is violated.
    #[must_use]
    pub(crate) fn expect(mut self, is_as_it_must_be: bool, fault: impl Into<String>) -> Self {
        if !is_as_it_must_be {
            self.faults.push(fault.into());
        }
        self
    }

    /// Returns the violated expectations.
    pub(crate) fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Prints the table and the line `RESULT {json}`. With an earlier report, the table shows the ratio to the earlier
    /// figures.
    pub(crate) fn print(&self, earlier: Option<&Value>) {
        println!(
            "{:<28} {:>12} {:>12} {:>12}",
            self.case, "median", "least", "most"
        );
        for (name, figure) in &self.figures {
            let before = earlier.and_then(|earlier| earlier[self.case][name]["median"].as_f64());
            let ratio = before.filter(|before| *before != 0.0);
            let ratio = ratio.map(|before| format!("  × {:.2}", figure.median / before));
            println!(
                "{name:<28} {:>12.2} {:>12.2} {:>12.2}{}",
                figure.median,
                figure.least,
                figure.most,
                ratio.unwrap_or_default(),
            );
        }
        let medians = self.figures.iter();
        let medians = medians.map(|(name, figure)| (name.clone(), json!(round(figure.median))));
        let mut line = Map::from_iter([("case".to_owned(), json!(self.case))]);
        line.extend(medians);
        println!("RESULT {}", Value::Object(line));
    }

    /// Writes the figures into a file, and keeps the figures of other cases in the file.
    pub(crate) fn save(&self, file: &Path) -> anyhow::Result<()> {
        let mut all = match std::fs::read(file) {
            Ok(text) => serde_json::from_slice(&text)
                .with_context(|| format!("{} is no report", file.display()))?,
            Err(_) => json!({}),
        };
        let figures = self.figures.iter().map(|(name, figure)| {
            let figure =
                json!({"median": figure.median, "least": figure.least, "most": figure.most});
            (name.clone(), figure)
        });
        all[self.case] = Value::Object(figures.collect());
        std::fs::write(file, format!("{all:#}\n"))
            .with_context(|| format!("cannot write {}", file.display()))
    }
}

/// Converts a count to a figure.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// Rounds to three decimals, because further digits are noise.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let figure = Figure::of(vec![5.0, 1.0, 2.0]).unwrap();
        let expected = Figure {
            median: 2.0,
            least: 1.0,
            most: 5.0,
        };
        assert_eq!(figure, expected);
        let figure = Figure::of(vec![4.0, 1.0, 2.0, 3.0]).unwrap();
        assert!((figure.median - 2.5).abs() < f64::EPSILON);
        assert_eq!(Figure::of(Vec::new()), None);
    }

    #[test]
    fn a_report_keeps_the_figures_of_other_cases() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("report.json");
        for case in ["one", "two"] {
            let mut samples = Samples::default();
            samples.add("turns_per_s", 20.0);
            Report::of(case, samples).save(&file).unwrap();
        }
        let saved: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(saved["one"]["turns_per_s"]["median"], 20.0);
        assert_eq!(saved["two"]["turns_per_s"]["most"], 20.0);
        std::fs::write(&file, "[1").unwrap();
        assert!(Report::of("one", Samples::default()).save(&file).is_err());
    }
}
