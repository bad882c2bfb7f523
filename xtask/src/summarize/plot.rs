//! Frames a second as bars, in an SVG that needs nothing beside it.

use std::fmt::Write as _;

use super::compare::Pair;
use super::row::Row;
use super::target;

const WIDTH: f64 = 960.0;
/// Where bars start: left of it stand their names.
const LEFT: f64 = 300.0;
const BAR: f64 = 18.0;
const STEP: f64 = 26.0;

/// One bar, or a name with a word in place of one.
#[derive(Debug)]
pub(super) struct Bar {
    name: String,
    frames_per_s: Option<f64>,
    target: Option<f64>,
    /// What to write where there is no number.
    state: String,
}

impl Bar {
    pub(super) fn of_row(row: &Row) -> Self {
        Self {
            name: format!("{} {} {}", row.source, row.mode, row.device),
            frames_per_s: row.frames_per_s(),
            target: target(&row.mode),
            state: row.state.clone(),
        }
    }

    pub(super) fn of_pair(pair: &Pair) -> Vec<Self> {
        let sides = [("before", &pair.before), ("after", &pair.after)];
        let bar = |(when, row): (&str, &Option<Row>)| {
            let mut bar = Self::of_row(row.as_ref()?);
            bar.name = format!("{} {when}", bar.name);
            Some(bar)
        };
        sides.into_iter().filter_map(bar).collect()
    }
}

/// The bars below each other; a tick on each marks its target.
pub(super) fn svg(bars: &[Bar]) -> String {
    let numbers = bars.iter().flat_map(|bar| [bar.frames_per_s, bar.target]);
    let most = numbers.flatten().fold(1.0, f64::max);
    // Room for the number at the end.
    let scale = (WIDTH - LEFT - 160.0) / most;
    let height = STEP * bars.len() as f64 + 60.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"24\" font-size=\"15\">Camera frames a second and node (the tick is the target)</text>\n"
    );
    for (position, bar) in bars.iter().enumerate() {
        let top = 44.0 + STEP * position as f64;
        let base = top + 14.0;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{base}\" text-anchor=\"end\">{}</text>",
            LEFT - 10.0,
            escaped(&bar.name)
        );
        let (width, label) = match bar.frames_per_s {
            Some(frames) => (frames.max(0.0) * scale, format!("{frames:.1}")),
            None => (0.0, bar.state.chars().take(60).collect()),
        };
        let met = matches!((bar.frames_per_s, bar.target), (Some(frames), Some(target)) if frames >= target);
        let colour = if met { "#2a7f62" } else { "#b3632b" };
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>"
        );
        if let (Some(_), Some(target)) = (bar.frames_per_s, bar.target) {
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{}\" width=\"2\" height=\"{}\" fill=\"#222222\"/>",
                LEFT + target * scale,
                top - 2.0,
                BAR + 4.0
            );
        }
        // Right of both bar and tick.
        let ticked = bar.frames_per_s.and(bar.target).unwrap_or(0.0) * scale;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{base}\">{}</text>",
            LEFT + width.max(ticked) + 8.0,
            escaped(&label)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Text as XML holds it. Characters that XML has no place for become `?`.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn a_plot_has_a_bar_a_row_and_escapes_what_it_is_given() {
        let mut odd = row("<a>&\"b\"_single_b1_w1_cpu", None);
        odd.state = "damaged: </text>\u{7}".to_owned();
        let svg = svg(&[
            Bar::of_row(&row("hub_single_b1_w1_cpu", Some(240.0))),
            Bar::of_row(&odd),
        ]);
        assert!(
            svg.contains("width=\"500.0\" height=\"18\" fill=\"#2a7f62\""),
            "{svg}"
        );
        assert!(svg.contains(">240.0</text>"));
        assert!(svg.contains("&lt;a&gt;&amp;&quot;b&quot; single cpu"));
        assert!(svg.contains("damaged: &lt;/text&gt;?</text>"));
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}
