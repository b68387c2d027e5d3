//! Alerts: a pod that shows more than any measured start that kept the SLO.
//!
//! Owns the rules. Each bound is the most that was seen in starts that kept the SLO with this CPU limit, so
//! also at smaller sizes than the answer: above it the SLO was never seen to hold. An answer with a budget
//! compares memory with the budget, because starts of seconds show no growth. Metrics come from
//! cAdvisor, Micrometer and OpenTelemetry; cAdvisor counts major faults, not the re-reads behind them.

use loadline_sizing::Bytes;

use super::bounds::AlertBounds;
use super::facts::EmitFacts;
use super::names::{named_object, pod_pattern};
use super::yaml::{Yaml, yaml_entry, yaml_list, yaml_map};
use crate::format;

/// Below it an alert would be about the noise of a scrape: major faults a second.
const LEAST_FAULTS: f64 = 1.0;
/// The same for the share of throttled periods.
const LEAST_THROTTLED: f64 = 0.01;

pub(super) const MEMORY_PANEL: &str = "Memory and its limit";

/// A query and its bound, for an alert and for a panel of a dashboard.
pub(super) struct AlertRule {
    pub(super) name: &'static str,
    /// The value, by namespace and pod.
    pub(super) query: String,
    /// Rounded to `digits`.
    pub(super) bound: f64,
    digits: usize,
    /// What a panel is called, and its unit in Grafana.
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    pub(super) seen: String,
    advice: &'static str,
    /// Whether the bound is the budget of the answer, and not what starts showed.
    is_budgeted: bool,
}

impl AlertBounds {
    pub(super) fn rules(&self, slug: &str) -> Vec<AlertRule> {
        let series = |name: &str, more: &str| format!("{name}{{container=\"{slug}\"{more}}}");
        let rate = |series: String| format!("sum by (namespace, pod) (rate({series}[5m]))");
        let highest = |series: String| format!("max by (namespace, pod) ({series})");
        let bytes = |bytes: Bytes| (bytes.as_bytes() as f64, format::measured_bytes(bytes));
        let faults = self.faults.map(|seen| AlertRule {
            name: "LoadlineReReads",
            query: rate(series(
                "container_memory_failures_total",
                ", failure_type=\"pgmajfault\", scope=\"container\"",
            )),
            bound: round(seen.max(LEAST_FAULTS), 1),
            digits: 1,
            title: "Re-reads: major faults a second",
            unit: "short",
            seen: format!("{seen:.1} major faults a second, its start included"),
            advice: "The kernel drops code and files that the service needs, and reads them again. Raise the memory limit, or size it again.",
            is_budgeted: false,
        });
        let throttled = self.throttled.map(|seen| AlertRule {
            name: "LoadlineThrottled",
            query: format!(
                "{} / {}",
                rate(series("container_cpu_cfs_throttled_periods_total", "")),
                rate(series("container_cpu_cfs_periods_total", ""))
            ),
            bound: round(seen.max(LEAST_THROTTLED), 3),
            digits: 3,
            title: "Throttled periods",
            unit: "percentunit",
            seen: format!("{} of its periods throttled", format::as_percent(seen)),
            advice: "The CPU limit stops it more often than where it kept its SLO. `loadline explain` says what a pause was.",
            is_budgeted: false,
        });
        let memory = match (self.budgeted_anon, self.working_set) {
            (Some(need), _) => Some((
                "container_memory_rss",
                need,
                "anonymous memory in its budget, growth included",
            )),
            (None, Some(set)) => Some(("container_memory_working_set_bytes", set, "working set")),
            (None, None) => {
                (self.anon).map(|anon| ("container_memory_rss", anon, "anonymous memory"))
            }
        };
        let memory = memory.map(|(name, most, what)| AlertRule {
            name: "LoadlineMemory",
            query: highest(series(name, "")),
            bound: bytes(most).0,
            digits: 0,
            title: MEMORY_PANEL,
            unit: "bytes",
            seen: format!("{} of {what}", bytes(most).1),
            advice: "It has grown beyond what was measured. `loadline soak` shows which part grows.",
            is_budgeted: self.budgeted_anon.is_some(),
        });
        let pods = format!("pod=~\"{}\"", pod_pattern(slug));
        let heap = self.heap.map(|most| AlertRule {
            name: "LoadlineHeapAfterGc",
            query: format!(
                "max by (namespace, pod) (jvm_gc_live_data_size_bytes{{{pods}}}) or sum by (namespace, pod) (jvm_memory_used_after_last_gc_bytes{{{pods}, jvm_memory_type=\"heap\"}})"
            ),
            bound: bytes(most).0,
            digits: 0,
            title: "Heap after a collection",
            unit: "bytes",
            seen: format!("{} of heap in use after a collection", bytes(most).1),
            advice: "More stays alive than was measured: a leak, a cache, or another load. The heap was chosen for less.",
            is_budgeted: false,
        });
        let all = [faults, memory, throttled, heap];
        all.into_iter().flatten().collect()
    }
}

fn round(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

impl AlertRule {
    fn to_yaml(&self, starts: usize) -> Yaml {
        let Self { query, seen, .. } = self;
        let bound = format!("{:.*}", self.digits, self.bound);
        // `or` binds less than `>`.
        let query = if query.contains(" or ") {
            format!("({query})")
        } else {
            query.clone()
        };
        let starts = format::count_of(starts, "start");
        let (ground, beyond) = if self.is_budgeted {
            (
                "what the answer allows".to_owned(),
                "has outgrown its budget",
            )
        } else {
            (
                format!("the most in {starts} that kept the SLO"),
                "shows more than any start that kept the SLO",
            )
        };
        let summary = format!("{{{{ $labels.pod }}}} {beyond} ({seen})");
        let annotations = [
            yaml_entry("summary", summary),
            yaml_entry("description", self.advice),
        ];
        yaml_map([
            yaml_entry("alert", self.name),
            yaml_entry("expr", format!("{query} > {bound}")).because(format!("{ground}: {seen}")),
            yaml_entry("for", "10m"),
            yaml_entry("labels", [yaml_entry("severity", "warning")]),
            yaml_entry("annotations", annotations),
        ])
    }
}

/// A PrometheusRule.
pub fn alerts(facts: &EmitFacts<'_>) -> String {
    let bounds = &facts.alerts;
    let rules = bounds.rules(&facts.slug).into_iter();
    let group = yaml_map([
        yaml_entry("name", format!("loadline-{}", facts.slug)),
        yaml_entry("rules", yaml_list(rules.map(|r| r.to_yaml(bounds.starts)))),
    ]);
    let document = named_object(
        "monitoring.coreos.com/v1",
        "PrometheusRule",
        &facts.slug,
        [yaml_entry("groups", yaml_list([group]))],
    );
    let note = "For the Prometheus Operator. Without it, what stands under spec is a rule file.";
    facts.commented(note) + &document.to_document()
}
