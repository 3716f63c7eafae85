//! Parses the OpenMetrics text that this process writes for `/metrics`, so that both exports have
//! the same numbers. Only the format of our own encoder is supported; other lines are ignored.

/// One metric with its series.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Metric {
    /// As in the `TYPE` line, so without `_total` or `_bucket`.
    pub(super) name: String,
    pub(super) help: String,
    pub(super) kind: Kind,
    pub(super) unit: Option<String>,
    pub(super) samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Kind {
    #[default]
    Gauge,
    Counter,
    Histogram,
}

#[derive(Debug, PartialEq)]
pub(super) struct Sample {
    /// What follows the metric's name: empty, `_total`, `_bucket`, `_sum` or `_count`.
    pub(super) suffix: String,
    pub(super) labels: Vec<(String, String)>,
    pub(super) value: f64,
}

pub(super) fn parse(text: &str) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# ") {
            describe(described, &mut metrics);
        } else if let (Some(metric), Some((name, labels, value))) =
            (metrics.last_mut(), sample(line))
            && let Some(suffix) = name.strip_prefix(&metric.name)
        {
            metric.samples.push(Sample {
                suffix: suffix.to_owned(),
                labels,
                value,
            });
        }
    }
    metrics
}

fn describe(line: &str, metrics: &mut Vec<Metric>) {
    let mut parts = line.splitn(3, ' ');
    let (Some(what), Some(name), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    if metrics.last().is_none_or(|metric| metric.name != name) {
        metrics.push(Metric {
            name: name.to_owned(),
            ..Metric::default()
        });
    }
    let metric = metrics.last_mut().expect("a metric was added above");
    match (what, rest) {
        ("HELP", help) => metric.help = help.trim_end_matches('.').to_owned(),
        ("UNIT", unit) => metric.unit = Some(unit.to_owned()),
        ("TYPE", "counter") => metric.kind = Kind::Counter,
        ("TYPE", "histogram") => metric.kind = Kind::Histogram,
        _ => {}
    }
}

type Read<'a> = (&'a str, Vec<(String, String)>, f64);

/// `name{label="value"} 1.0`.
fn sample(line: &str) -> Option<Read<'_>> {
    let (series, value) = line.rsplit_once(' ')?;
    let value = match value {
        "+Inf" => f64::INFINITY,
        number => number.parse().ok()?,
    };
    let Some((name, labels)) = series.split_once('{') else {
        return Some((series, Vec::new(), value));
    };
    Some((name, self::labels(labels.strip_suffix('}')?)?, value))
}

fn labels(mut text: &str) -> Option<Vec<(String, String)>> {
    let mut labels = Vec::new();
    while !text.is_empty() {
        let (name, quoted) = text.split_once("=\"")?;
        let (mut value, mut escaped, mut end) = (String::new(), false, None);
        for (at, c) in quoted.char_indices() {
            match c {
                'n' if escaped => value.push('\n'),
                _ if escaped => value.push(c),
                '\\' => {}
                '"' => {
                    end = Some(at);
                    break;
                }
                _ => value.push(c),
            }
            escaped = c == '\\' && !escaped;
        }
        labels.push((name.to_owned(), value));
        text = &quoted[end? + 1..];
        text = text.strip_prefix(',').unwrap_or(text);
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_the_encoder_writes() {
        let text = concat!(
            "# HELP openwop_run_completed Runs ended, by status.\n",
            "# TYPE openwop_run_completed counter\n",
            "openwop_run_completed_total{status=\"a \\\"b\\\" {c}\"} 3\n",
            "# HELP openwop_run_duration_seconds From start to end.\n",
            "# TYPE openwop_run_duration_seconds histogram\n",
            "# UNIT openwop_run_duration_seconds seconds\n",
            "openwop_run_duration_seconds_sum 0.5\n",
            "openwop_run_duration_seconds_count 2\n",
            "openwop_run_duration_seconds_bucket{le=\"+Inf\"} 2\n",
            "# EOF\n",
        );
        let metrics = parse(text);
        assert_eq!(metrics.len(), 2);
        assert_eq!(metrics[0].kind, Kind::Counter);
        assert_eq!(metrics[0].help, "Runs ended, by status");
        let status = ("status".to_owned(), "a \"b\" {c}".to_owned());
        let counted = &metrics[0].samples[0];
        assert_eq!((counted.suffix.as_str(), counted.value), ("_total", 3.0));
        assert_eq!(counted.labels, [status]);
        assert_eq!(metrics[1].unit.as_deref(), Some("seconds"));
        let suffixes: Vec<&str> = metrics[1]
            .samples
            .iter()
            .map(|s| s.suffix.as_str())
            .collect();
        assert_eq!(suffixes, ["_sum", "_count", "_bucket"]);
    }
}
