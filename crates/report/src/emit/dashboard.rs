//! A Grafana dashboard for the metrics of the alerts.
//!
//! Owns the JSON: a panel for each alert, with its bound as a line, and one for the p99. Source:
//! Grafana "Dashboard JSON model" (schema version 39).

use serde_json::{Value, json};

use super::alerts::{AlertRule, MEMORY_PANEL};
use super::facts::EmitFacts;
use super::names::pod_pattern;

/// Height and width of a panel, so that two fit into Grafana's 24 columns.
const SIZE: (usize, usize) = (8, 12);

/// The dashboard; empty panels mean that the cluster has no such metric.
pub fn dashboard(facts: &EmitFacts<'_>) -> String {
    let pods = format!("pod=~\"{}\"", pod_pattern(&facts.slug));
    let p99 = format!(
        "histogram_quantile(0.99, sum by (le) (rate(http_server_requests_seconds_bucket{{{pods}}}[5m])))"
    );
    let limit = format!(
        "max(kube_pod_container_resource_limits{{resource=\"memory\", container=\"{}\"}})",
        facts.slug
    );
    let rules = facts.alerts.rules(&facts.slug);
    let mut panels: Vec<Value> = rules.iter().map(|rule| rule_panel(rule, &limit)).collect();
    panels.push(panel("p99 of HTTP requests", "s", &[&p99], None));
    for (at, panel) in panels.iter_mut().enumerate() {
        let (height, width) = SIZE;
        panel["id"] = json!(at + 1);
        panel["gridPos"] =
            json!({"h": height, "w": width, "x": at % 2 * width, "y": at / 2 * height});
    }
    let document = json!({
        "title": format!("loadline: {}", facts.slug),
        "uid": format!("loadline-{}", facts.slug).chars().take(40).collect::<String>(),
        "schemaVersion": 39,
        "editable": true,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        ]},
        "panels": panels,
    });
    format!("{document:#}\n")
}

fn rule_panel(rule: &AlertRule, limit: &str) -> Value {
    let mut queries = vec![rule.query.as_str()];
    queries.extend((rule.title == MEMORY_PANEL).then_some(limit));
    let bound = Some((rule.bound, rule.seen.as_str()));
    panel(rule.title, rule.unit, &queries, bound)
}

fn panel(title: &str, unit: &str, queries: &[&str], bound: Option<(f64, &str)>) -> Value {
    let source = json!({"type": "prometheus", "uid": "${datasource}"});
    let target =
        |(query, id): (&&str, &str)| json!({"refId": id, "expr": query, "datasource": source});
    let targets: Vec<Value> = queries.iter().zip(["A", "B"]).map(target).collect();
    let line = bound.map(|(bound, _)| (Some(bound), "red"));
    let steps = std::iter::once((None, "green")).chain(line);
    let steps = steps.map(|(value, color)| json!({"value": value, "color": color}));
    let steps: Vec<Value> = steps.collect();
    json!({
        "type": "timeseries",
        "title": title,
        "description": bound.map_or(String::new(), |(_, seen)| format!("The line: {seen}.")),
        "datasource": source,
        "fieldConfig": {
            "defaults": {
                "unit": unit,
                "min": 0,
                "custom": {"thresholdsStyle": {"mode": "line"}},
                "thresholds": {"mode": "absolute", "steps": steps},
            },
            "overrides": [],
        },
        "targets": targets,
    })
}
