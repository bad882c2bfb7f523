//! Rows as text in columns, and as CSV.

use std::fmt::Write as _;

use super::row::{Numbers, Row};
use super::target;

/// Rows in columns as wide as need be; numbers to the right.
pub(super) fn text(rows: &[Row]) -> String {
    let titles = [
        "source",
        "mode",
        "device",
        "batch",
        "workers",
        "frames/s",
        "target",
        "samples/s",
        "first s",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "RSS GiB",
        "read GiB",
        "stalls",
        "state",
    ];
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let mut text = columns(&titles, &cells);
    let ok = rows.iter().filter(|row| row.is_ok()).count();
    let met = rows.iter().filter(|row| row.verdict() == Some("met"));
    let judged = rows.iter().filter(|row| row.verdict().is_some());
    let _ = writeln!(
        text,
        "\n{ok} of {} jobs ended well; {} of {} reach their target ({})",
        rows.len(),
        met.count(),
        judged.count(),
        super::TARGETS
            .map(|(mode, frames)| format!("{mode}: {frames} frames/s and node"))
            .join(", ")
    );
    text
}

fn cells(row: &Row) -> Vec<String> {
    const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
    let none = Numbers::default();
    let numbers = row.numbers.as_ref().unwrap_or(&none);
    let verdict = match (row.verdict(), target(&row.mode)) {
        (Some(verdict), Some(target)) => format!(">={target} {verdict}"),
        _ => "-".to_owned(),
    };
    vec![
        row.source.clone(),
        row.mode.clone(),
        row.device.clone(),
        row.batch_size.map_or("-".to_owned(), |n| n.to_string()),
        row.num_workers.map_or("-".to_owned(), |n| n.to_string()),
        number(numbers.frames_per_s_node, 1),
        verdict,
        number(numbers.samples_per_s, 1),
        number(numbers.first_batch_latency_s, 2),
        number(numbers.p50_ms, 2),
        number(numbers.p95_ms, 2),
        number(numbers.p99_ms, 2),
        number(numbers.peak_rss_bytes.map(|bytes| bytes / GIB), 2),
        number(numbers.bytes_fetched.map(|bytes| bytes / GIB), 2),
        number(numbers.stalls, 0),
        row.state.clone(),
    ]
}

/// A number, or `-` where there is none.
pub(super) fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
}

/// Titles over cells. A column of numbers stands to the right; the last is not padded.
pub(super) fn columns(titles: &[&str], rows: &[Vec<String>]) -> String {
    let width = |text: &str| text.chars().count();
    let widths: Vec<usize> = titles
        .iter()
        .enumerate()
        .map(|(column, title)| {
            let cells = rows.iter().map(|row| width(&row[column]));
            cells.chain([width(title)]).max().unwrap_or(0)
        })
        .collect();
    let is_number = |cell: &str| cell == "-" || cell.parse::<f64>().is_ok();
    let mut text = String::new();
    let titles: Vec<String> = titles.iter().map(|&title| title.to_owned()).collect();
    for row in [&titles].into_iter().chain(rows) {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[column] - width(cell));
            let of_numbers = rows.iter().all(|row| is_number(&row[column]));
            let cell = if of_numbers {
                format!("{padding}{cell}")
            } else {
                format!("{cell}{padding}")
            };
            let _ = write!(line, "{cell}  ");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// All that is known, one line a row.
pub(super) fn csv(rows: &[Row]) -> String {
    let mut text = csv_line(
        &[
            "source",
            "mode",
            "decode_device",
            "batch_size",
            "num_workers",
            "state",
            "frames_per_s_node",
            "target",
            "verdict",
            "samples_per_s",
            "open_s",
            "first_batch_latency_s",
            "p50_sample_latency_ms",
            "p95_sample_latency_ms",
            "p99_sample_latency_ms",
            "peak_rss_bytes",
            "bytes_fetched",
            "stalls",
            "stall_s",
            "hit_rate",
            "file",
        ]
        .map(str::to_owned),
    );
    for row in rows {
        let none = Numbers::default();
        let numbers = row.numbers.as_ref().unwrap_or(&none);
        let whole = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
        let real = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        text.push_str(&csv_line(&[
            row.source.clone(),
            row.mode.clone(),
            row.device.clone(),
            whole(row.batch_size),
            whole(row.num_workers),
            row.state.clone(),
            real(numbers.frames_per_s_node),
            real(target(&row.mode)),
            row.verdict().unwrap_or_default().to_owned(),
            real(numbers.samples_per_s),
            real(numbers.open_s),
            real(numbers.first_batch_latency_s),
            real(numbers.p50_ms),
            real(numbers.p95_ms),
            real(numbers.p99_ms),
            real(numbers.peak_rss_bytes),
            real(numbers.bytes_fetched),
            real(numbers.stalls),
            real(numbers.stall_s),
            real(numbers.hit_rate),
            format!("{}.json", row.stem),
        ]));
    }
    text
}

/// Fields by RFC 4180: quoted where they hold a comma, a quote or a line break.
pub(super) fn csv_line(fields: &[String]) -> String {
    let quoted = |field: &String| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field.clone()
        }
    };
    let fields: Vec<String> = fields.iter().map(quoted).collect();
    format!("{}\n", fields.join(","))
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn a_table_is_exactly_this() {
        let rows = [
            row("hub_single_b32_w8_cpu", Some(120.0)),
            row("hub_sarm_b32_w8_cpu", Some(99.95)),
            row("warmed_bucket_sarm_b32_w8_cuda", None),
        ];
        assert_eq!(
            text(&rows),
            "\
source         mode    device  batch  workers  frames/s  target        samples/s  first s  p50 ms  p95 ms  p99 ms  RSS GiB  read GiB  stalls  state
hub            single  cpu        32        8     120.0  >=120 met             -        -       -       -       -        -         -       -  ok
hub            sarm    cpu        32        8     100.0  >=320 missed          -        -       -       -       -        -         -       -  ok
warmed_bucket  sarm    cuda       32        8         -  -                     -        -       -       -       -        -         -       -  failed (exit 3)

2 of 3 jobs ended well; 1 of 2 reach their target (single: 120 frames/s and node, sarm: 320 frames/s and node)
"
        );
    }

    #[test]
    fn a_csv_keeps_commas_and_quotes_in_their_field() {
        let mut odd = row("hub_single_b32_w8_cpu", None);
        odd.state = "damaged: \"a\", b".to_owned();
        let text = csv(&[odd]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("source,mode,decode_device,"));
        assert_eq!(
            lines[1],
            "hub,single,cpu,32,8,\"damaged: \"\"a\"\", b\",,120,,,,,,,,,,,,,hub_single_b32_w8_cpu.json"
        );
        assert_eq!(lines[0].split(',').count(), 21);
    }
}
