//! Metrics as text: Prometheus 0.0.4 and OpenMetrics 1.0, and which of its series a metric means.
//!
//! Owns the form of a selector, `name{label="v"}` or `max(name{...})`, and the nearest names of a missing
//! metric. The text comes from the application: other lines than samples are skipped.
//! Sources: prometheus.io/docs/instrumenting/exposition_formats, the OpenMetrics 1.0 specification.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::foreign_text::cell;

/// Most names in a message.
const NAMED: usize = 5;

/// Series of one metric: all that have these labels, added up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MetricSelector {
    name: String,
    labels: Vec<(String, String)>,
    /// The largest series instead of the sum.
    is_largest: bool,
}

impl MetricSelector {
    /// The value in a text; `None` if no series has this name and these labels.
    pub fn read_value(&self, text: &str) -> Option<f64> {
        let matching = samples(text).filter(|sample| self.selects(sample));
        let values = matching.map(|sample| sample.value);
        if self.is_largest {
            // NaN counts as the largest.
            values.reduce(|a, b| if a.is_nan() || a > b { a } else { b })
        } else {
            values.reduce(|a, b| a + b)
        }
    }

    fn selects(&self, sample: &Sample<'_>) -> bool {
        let has = |wanted: &(String, String)| sample.labels.contains(wanted);
        sample.name == self.name && self.labels.iter().all(has)
    }

    /// Its series in PromQL, of the pods that match this pattern.
    pub fn of_pods(&self, pattern: &str) -> String {
        let series = write_series(&self.name, &self.labels);
        match series.strip_suffix('}') {
            Some(begin) => format!("{begin},pod=~\"{pattern}\"}}"),
            None => format!("{series}{{pod=~\"{pattern}\"}}"),
        }
    }

    /// The series of a text that come nearest, for a message: those of the same name, else similar names.
    pub fn nearest_names(&self, text: &str) -> Vec<String> {
        let same: BTreeSet<String> = samples(text)
            .filter(|sample| sample.name == self.name)
            .map(|sample| write_series(sample.name, &sample.labels))
            .collect();
        if !same.is_empty() {
            return same.iter().take(NAMED).map(|name| cell(name)).collect();
        }
        let names: BTreeSet<&str> = samples(text).map(|sample| sample.name).collect();
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_by_key(|name| std::cmp::Reverse(self.common_words(name)));
        names.into_iter().take(NAMED).map(cell).collect()
    }

    fn common_words(&self, other: &str) -> usize {
        let words: BTreeSet<&str> = self.name.split(['_', ':']).collect();
        let others = other.split(['_', ':']);
        others.filter(|word| words.contains(word)).count()
    }
}

impl FromStr for MetricSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let inner = text.strip_prefix("max(");
        let inner = inner.and_then(|rest| rest.strip_suffix(')'));
        let series = inner.unwrap_or(text).trim();
        let refused =
            || format!("`{text}` selects no series; write name, name{{label=\"v\"}} or max(name)");
        let (name, labels, rest) = read_series(series).ok_or_else(refused)?;
        // It becomes part of a query.
        let is_label =
            |(label, _): &(String, String)| !label.is_empty() && label.chars().all(is_of_name);
        if !rest.trim().is_empty() || !labels.iter().all(is_label) {
            return Err(refused());
        }
        Ok(Self {
            name: name.to_owned(),
            labels,
            is_largest: inner.is_some(),
        })
    }
}

impl fmt::Display for MetricSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let series = write_series(&self.name, &self.labels);
        if self.is_largest {
            write!(f, "max({series})")
        } else {
            f.write_str(&series)
        }
    }
}

impl TryFrom<String> for MetricSelector {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<MetricSelector> for String {
    fn from(selector: MetricSelector) -> Self {
        selector.to_string()
    }
}

fn write_series(name: &str, labels: &[(String, String)]) -> String {
    let escape = |v: &String| {
        v.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    };
    let labels = labels.iter().map(|(l, v)| format!("{l}=\"{}\"", escape(v)));
    let labels: Vec<String> = labels.collect();
    if labels.is_empty() {
        name.to_owned()
    } else {
        format!("{name}{{{}}}", labels.join(","))
    }
}

/// Whether any line of a text is a sample: an HTML page has none.
pub fn has_samples(text: &str) -> bool {
    samples(text).next().is_some()
}

struct Sample<'a> {
    name: &'a str,
    labels: Vec<(String, String)>,
    value: f64,
}

fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    text.lines().filter_map(|line| {
        let (name, labels, rest) = read_series(line)?;
        // A time and an exemplar may follow the value.
        let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Sample {
            name,
            labels,
            value,
        })
    })
}

/// Labels of a series, in order.
type Labels = Vec<(String, String)>;

/// A name, its labels, and what follows.
fn read_series(text: &str) -> Option<(&str, Labels, &str)> {
    let text = text.trim_start();
    let end = text.find(|c: char| !is_of_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let Some(mut rest) = rest.trim_start().strip_prefix('{') else {
        return Some((name, Vec::new(), rest));
    };
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((name, labels, after));
        }
        let (label, after) = rest.split_once('=')?;
        let (value, after) = read_quoted(after.trim_start())?;
        labels.push((label.trim().to_owned(), value));
        rest = after;
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

fn read_quoted(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = r#"# HELP lag Records behind.
# TYPE lag gauge
lag{topic="orders",partition="0"} 12
lag{topic="orders",partition="1",} 30 1395066363000
lag{topic="a \"b\"\n\\"} NaN
done_total 1.5e3 # {trace_id="x"} 0.67
http_server_requests_seconds_bucket{le="+Inf"} +Inf
# EOF
"#;

    fn value(selector: &str) -> Option<f64> {
        selector
            .parse::<MetricSelector>()
            .expect(selector)
            .read_value(TEXT)
    }

    #[test]
    fn series_with_the_labels_are_added_up_or_the_largest_is_taken() {
        assert_eq!(value(r#"lag{topic="orders"}"#), Some(42.0));
        assert_eq!(value(r#"max(lag{topic="orders"})"#), Some(30.0));
        assert_eq!(value(r#"lag{partition="1",topic="orders"}"#), Some(30.0));
        assert_eq!(value("done_total"), Some(1500.0));
        assert!(value("lag").expect("it is there").is_nan());
        assert!(value("max(lag)").expect("it is there").is_nan());
        assert!(
            value(r#"lag{topic="a \"b\"\n\\"}"#)
                .expect("it is there")
                .is_nan()
        );
        assert_eq!(
            value("http_server_requests_seconds_bucket"),
            Some(f64::INFINITY)
        );
        assert_eq!(value("done"), None);
    }

    #[test]
    fn what_is_not_there_has_nearest_names() {
        let near = |selector: &str| {
            selector
                .parse::<MetricSelector>()
                .expect(selector)
                .nearest_names(TEXT)
        };
        assert_eq!(near("jobs_done_total")[0], "done_total");
        assert_eq!(
            near(r#"lag{topic="order"}"#)[1],
            r#"lag{topic="orders",partition="0"}"#
        );
        let selector: MetricSelector = "lag".parse().expect("a selector");
        for text in [
            format!("{}lag 1", "a".repeat(100_000)),
            format!("lag{{a=\"{}\"}} 1", "\u{1}".repeat(100_000)),
        ] {
            let length: usize = selector.nearest_names(&text).iter().map(String::len).sum();
            assert!((1..500).contains(&length), "{length}");
        }
    }

    #[test]
    fn a_page_has_no_samples_and_a_selector_reads_as_it_prints() {
        assert!(!has_samples(
            "<html><body class=\"a b\">\n<p>lag 5</p></html>"
        ));
        assert!(has_samples("up 1"));
        for text in ["lag", r#"max(lag{a="b",c="\"\\\n"})"#] {
            assert_eq!(
                text.parse::<MetricSelector>().expect(text).to_string(),
                text
            );
        }
        for text in [
            "",
            "1a",
            "lag{",
            "sum(lag)",
            "lag > 5",
            "lag{a=b}",
            "lag{a} or vector(1) or lag{a=\"b\"}",
        ] {
            assert!(text.parse::<MetricSelector>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".*", lines in "([a-z_]{1,3}(\\{[a-z=\", \\\\}]{0,9})? ?[0-9eNa.+-]{0,4}\n){0,9}") {
            let selector: MetricSelector = "a".parse().expect("a name");
            for text in [&text, &lines] {
                let value = selector.read_value(text);
                prop_assert!(value.is_none() || has_samples(text));
                prop_assert!(selector.nearest_names(text).len() <= NAMED);
                if let Ok(selector) = text.parse::<MetricSelector>() {
                    prop_assert_eq!(selector.to_string().parse(), Ok(selector));
                }
            }
        }
    }
}
