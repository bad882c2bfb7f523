//! The windows of all keys, checked together.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::offsets::{Offsets, check_scale};

/// The windows of all keys that have one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeltaTimestamps(BTreeMap<String, Offsets>);

impl DeltaTimestamps {
    /// Converts `deltas`, for each key a window in seconds, as [`Offsets::from_seconds`] does.
    ///
    /// `known_keys` are the features that may have a window. No keys at all is fine: then there are no windows.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidFps`] and [`Error::InvalidTolerance`] as for one key.
    /// - [`Error::UnknownKey`] for a key that is not among `known_keys`, [`Error::NoDeltas`] and
    ///   [`Error::InvalidDeltas`] for one whose list is at fault.
    /// - [`Error::Several`], holding one of these for each key at fault, if there is more than one.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use window::{DEFAULT_TOLERANCE_S, DeltaTimestamps};
    ///
    /// let deltas = BTreeMap::from([("action".to_owned(), vec![0.0, 0.1])]);
    /// let windows = DeltaTimestamps::new(&deltas, 10.0, DEFAULT_TOLERANCE_S, &["action", "observation.state"])?;
    /// assert_eq!(windows.get("action").map(|offsets| offsets.len()), Some(2));
    /// assert_eq!(windows.get("observation.state"), None);
    /// # Ok::<(), window::Error>(())
    /// ```
    pub fn new(
        deltas: &BTreeMap<String, Vec<f64>>,
        fps: f64,
        tolerance_s: f64,
        known_keys: &[&str],
    ) -> Result<Self, Error> {
        check_scale(fps, tolerance_s)?;
        let mut windows = BTreeMap::new();
        let mut errors = Vec::new();
        for (key, deltas_s) in deltas {
            let window = if known_keys.contains(&key.as_str()) {
                Offsets::from_seconds(key, deltas_s, fps, tolerance_s)
            } else {
                let known = known_keys.iter().map(|&known| known.to_owned()).collect();
                Err(Error::UnknownKey {
                    key: key.clone(),
                    known,
                })
            };
            match window {
                Ok(offsets) => {
                    windows.insert(key.clone(), offsets);
                }
                Err(error) => errors.push(error),
            }
        }
        match errors.len() {
            0 => Ok(Self(windows)),
            1 => Err(errors.remove(0)),
            _ => Err(Error::Several { errors }),
        }
    }

    /// The window of `key`, if it has one.
    pub fn get(&self, key: &str) -> Option<&Offsets> {
        self.0.get(key)
    }

    /// The keys that have a window, sorted, and their windows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Offsets)> {
        self.0.iter().map(|(key, offsets)| (key.as_str(), offsets))
    }
}
