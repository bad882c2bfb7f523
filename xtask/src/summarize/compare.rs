//! Two folders of results side by side.

use super::row::{Numbers, Row};
use super::table::{columns, csv_line, number};

/// A job before and after; one of the two may be missing.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) before: Option<Row>,
    pub(super) after: Option<Row>,
}

type Metric = (&'static str, fn(&Numbers) -> Option<f64>);

/// What is compared, by the names of the results.
const METRICS: [Metric; 5] = [
    ("frames_per_s_node", |numbers| numbers.frames_per_s_node),
    ("first_batch_latency_s", |numbers| {
        numbers.first_batch_latency_s
    }),
    ("p50_sample_latency_ms", |numbers| numbers.p50_ms),
    ("p99_sample_latency_ms", |numbers| numbers.p99_ms),
    ("peak_rss_bytes", |numbers| numbers.peak_rss_bytes),
];

impl Pair {
    /// Whichever there is, the later first.
    pub(super) fn one(&self) -> Option<&Row> {
        self.after.as_ref().or(self.before.as_ref())
    }

    fn values(&self, metric: fn(&Numbers) -> Option<f64>) -> [Option<f64>; 2] {
        [&self.before, &self.after].map(|row| metric(row.as_ref()?.numbers.as_ref()?))
    }

    /// After over before.
    fn ratio(&self, metric: fn(&Numbers) -> Option<f64>) -> Option<f64> {
        match self.values(metric) {
            [Some(before), Some(after)] if before > 0.0 => Some(after / before),
            _ => None,
        }
    }

    fn state(&self) -> String {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if before.is_ok() && after.is_ok() => {
                let size = |row: &Row| (row.batch_size, row.num_workers);
                if size(before) == size(after) {
                    "ok".to_owned()
                } else {
                    format!(
                        "ok, not alike: {} before, {} after",
                        before.stem, after.stem
                    )
                }
            }
            (Some(before), Some(after)) => {
                format!("before: {}; after: {}", before.state, after.state)
            }
            (Some(before), None) => format!("only before: {}", before.state),
            (None, Some(after)) => format!("only after: {}", after.state),
            (None, None) => String::new(),
        }
    }
}

/// Joins the rows of the same job. Where a source, mode and device has one row on each side that finds no other, these are
/// joined, too: to change the number of workers may be the point.
pub(super) fn pairs(before: Vec<Row>, mut after: Vec<Row>) -> Vec<Pair> {
    let kind = |row: &Row| (row.source.clone(), row.mode.clone(), row.device.clone());
    let mut pairs: Vec<Pair> = Vec::new();
    for row in before {
        let same = |other: &Row| {
            kind(other) == kind(&row)
                && (other.batch_size, other.num_workers) == (row.batch_size, row.num_workers)
        };
        let found = after.iter().position(same);
        pairs.push(Pair {
            after: found.map(|position| after.remove(position)),
            before: Some(row),
        });
    }
    for row in after {
        let alone = |pair: &&mut Pair| {
            pair.after.is_none()
                && pair
                    .before
                    .as_ref()
                    .is_some_and(|before| kind(before) == kind(&row))
        };
        let mut alike: Vec<&mut Pair> = pairs.iter_mut().filter(alone).collect();
        match alike.as_mut_slice() {
            [pair] => pair.after = Some(row),
            _ => pairs.push(Pair {
                before: None,
                after: Some(row),
            }),
        }
    }
    pairs
}

/// Both numbers of frames, and the ratios of all: after over before, so that for frames more is better, for the rest less.
pub(super) fn text(pairs: &[Pair]) -> String {
    let titles = [
        "source",
        "mode",
        "device",
        "frames/s before",
        "after",
        "ratio",
        "target",
        "first batch",
        "p50",
        "p99",
        "RSS",
        "state",
    ];
    let cells: Vec<Vec<String>> = pairs
        .iter()
        .filter_map(|pair| {
            let row = pair.one()?;
            let [before, after] = pair.values(METRICS[0].1);
            let ratio = |metric: usize| {
                let ratio = pair.ratio(METRICS[metric].1);
                ratio.map_or("-".to_owned(), |ratio| format!("x{ratio:.2}"))
            };
            let verdict = pair.after.as_ref().and_then(Row::verdict).unwrap_or("-");
            Some(vec![
                row.source.clone(),
                row.mode.clone(),
                row.device.clone(),
                number(before, 1),
                number(after, 1),
                ratio(0),
                verdict.to_owned(),
                ratio(1),
                ratio(2),
                ratio(3),
                ratio(4),
                pair.state(),
            ])
        })
        .collect();
    format!(
        "{}\nratios are after over before\n",
        columns(&titles, &cells)
    )
}

pub(super) fn csv(pairs: &[Pair]) -> String {
    let mut titles = ["source", "mode", "decode_device", "state"]
        .map(str::to_owned)
        .to_vec();
    for (name, _) in METRICS {
        titles.extend(["before", "after", "ratio"].map(|which| format!("{name}_{which}")));
    }
    let mut text = csv_line(&titles);
    for pair in pairs {
        let Some(row) = pair.one() else { continue };
        let mut fields = vec![
            row.source.clone(),
            row.mode.clone(),
            row.device.clone(),
            pair.state(),
        ];
        for (_, metric) in METRICS {
            let [before, after] = pair.values(metric);
            let values = [before, after, pair.ratio(metric)];
            fields
                .extend(values.map(|value| value.map_or(String::new(), |value| value.to_string())));
        }
        text.push_str(&csv_line(&fields));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn rows_find_their_likes_and_no_row_is_lost() {
        let before = vec![
            row("hub_single_b32_w8_cpu", Some(100.0)),
            row("hub_sarm_b32_w8_cpu", Some(200.0)),
            row("bucket_single_b32_w8_cpu", None),
            row("bucket_sarm_b32_w8_cpu", Some(10.0)),
        ];
        let after = vec![
            row("hub_single_b32_w8_cpu", Some(150.0)),
            row("hub_sarm_b32_w4_cpu", Some(100.0)),
            row("bucket_single_b32_w8_cpu", Some(5.0)),
            row("warmed_bucket_sarm_b32_w8_cpu", Some(400.0)),
        ];
        let pairs = pairs(before, after);
        let lines = text(&pairs);
        let lines: Vec<Vec<&str>> = lines
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[1][..7],
            ["hub", "single", "cpu", "100.0", "150.0", "x1.50", "met"]
        );
        assert_eq!(lines[1].last(), Some(&"ok"));
        assert_eq!(
            lines[2][..7],
            ["hub", "sarm", "cpu", "200.0", "100.0", "x0.50", "missed"]
        );
        let states: Vec<String> = pairs.iter().map(Pair::state).collect();
        assert_eq!(
            states,
            [
                "ok",
                "ok, not alike: hub_sarm_b32_w8_cpu before, hub_sarm_b32_w4_cpu after",
                "before: failed (exit 3); after: ok",
                "only before: ok",
                "only after: ok",
            ]
        );
        let csv = csv(&pairs);
        assert!(
            csv.lines()
                .nth(1)
                .unwrap()
                .starts_with("hub,single,cpu,ok,100,150,1.5,"),
            "{csv}"
        );
    }
}
