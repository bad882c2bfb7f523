//! `meta/stats.json`: statistics of each feature.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::limits::MAX_JSON_BYTES;
use crate::{Error, Storage, Warning, storage};

/// Where the statistics lie.
const PATH: &str = "meta/stats.json";

/// The statistics of a dataset's features, as their writer computed them.
///
/// Whatever is missing is simply not there: no feature need have statistics, and none need have all of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    features: BTreeMap<String, BTreeMap<String, Vec<f64>>>,
    json: String,
}

impl Stats {
    /// The file's own text, in which the numbers are nested as their writer nested them.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// A statistic of a feature, by its name in the file (`mean`, `std`, `min`, `max`, `count`, `q01`, ...), row-major.
    ///
    /// A camera's has one number for each channel.
    #[must_use]
    pub fn get(&self, feature: &str, statistic: &str) -> Option<&[f64]> {
        self.features
            .get(feature)?
            .get(statistic)
            .map(Vec::as_slice)
    }

    /// The mean of each element.
    #[must_use]
    pub fn mean(&self, feature: &str) -> Option<&[f64]> {
        self.get(feature, "mean")
    }

    /// The standard deviation of each element.
    #[must_use]
    pub fn std(&self, feature: &str) -> Option<&[f64]> {
        self.get(feature, "std")
    }

    /// The least value of each element.
    #[must_use]
    pub fn min(&self, feature: &str) -> Option<&[f64]> {
        self.get(feature, "min")
    }

    /// The greatest value of each element.
    #[must_use]
    pub fn max(&self, feature: &str) -> Option<&[f64]> {
        self.get(feature, "max")
    }

    /// The features that have statistics, sorted.
    pub fn features(&self) -> impl Iterator<Item = &str> {
        self.features.keys().map(String::as_str)
    }

    /// The names of a feature's statistics, sorted.
    pub fn statistics(&self, feature: &str) -> impl Iterator<Item = &str> {
        self.features
            .get(feature)
            .into_iter()
            .flat_map(BTreeMap::keys)
            .map(String::as_str)
    }

    /// Reads the file, if it is there. Nobody needs statistics to read the dataset, so a fault is only a warning.
    pub(crate) fn read(storage: &dyn Storage, warnings: &mut Vec<Warning>) -> Option<Self> {
        let bytes = match storage::read_whole(storage, PATH, MAX_JSON_BYTES) {
            Err(error) if error.is_missing_file() => return None,
            Ok(bytes) => bytes,
            Err(error) => {
                warnings.push(Warning::Stats {
                    reason: reason(&error),
                });
                return None;
            }
        };
        match serde_json::from_slice::<BTreeMap<String, BTreeMap<String, Value>>>(&bytes) {
            Ok(raw) => Some(Self {
                json: String::from_utf8_lossy(&bytes).into_owned(),
                ..Self::from_json(raw)
            }),
            Err(error) => {
                warnings.push(Warning::Stats {
                    reason: error.to_string(),
                });
                None
            }
        }
    }

    fn from_json(raw: BTreeMap<String, BTreeMap<String, Value>>) -> Self {
        let numbers = |value: &Value| {
            let mut numbers = Vec::new();
            flatten(value, &mut numbers).then_some(numbers)
        };
        let statistics = |raw: BTreeMap<String, Value>| {
            raw.iter()
                .filter_map(|(name, value)| Some((name.clone(), numbers(value)?)))
                .collect()
        };
        Self {
            features: raw
                .into_iter()
                .map(|(feature, raw)| (feature, statistics(raw)))
                .collect(),
            json: String::new(),
        }
    }
}

/// Collects the numbers of nested lists; tells whether there was nothing else.
fn flatten(value: &Value, numbers: &mut Vec<f64>) -> bool {
    match value {
        Value::Array(items) => items.iter().all(|item| flatten(item, numbers)),
        Value::Number(number) => match number.as_f64() {
            Some(number) => {
                numbers.push(number);
                true
            }
            None => false,
        },
        _ => false,
    }
}

/// An error and what caused it, in one line.
fn reason(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_flattened_and_what_is_no_number_is_left_out() {
        let text = r#"{"state": {"mean": [1, 2.5], "count": [3], "note": "hand-made", "mixed": [1, "x"]},
                       "camera": {"max": [[[0.5]], [[0.25]], [[1.0]]]}, "empty": {}}"#;
        let stats = Stats::from_json(serde_json::from_str(text).unwrap());
        assert_eq!(stats.mean("state"), Some(&[1.0, 2.5][..]));
        assert_eq!(stats.get("state", "count"), Some(&[3.0][..]));
        assert_eq!(stats.max("camera"), Some(&[0.5, 0.25, 1.0][..]));
        assert_eq!(stats.get("state", "note"), None);
        assert_eq!(stats.get("state", "mixed"), None);
        assert_eq!(stats.std("empty"), None);
        assert_eq!(stats.min("unknown"), None);
        assert_eq!(
            stats.features().collect::<Vec<_>>(),
            ["camera", "empty", "state"]
        );
        assert_eq!(
            stats.statistics("state").collect::<Vec<_>>(),
            ["count", "mean"]
        );
    }
}
