//! The initial experiment file: `loadline.toml` of a workload as production shows it.
//!
//! Owns its text. A trial is one instance, so its rate is one instance's in its busiest five
//! minutes. Metrics have path templates and no bodies: a request that cannot be sent unchanged is a
//! comment with its share, never a guess.

use std::fmt::Write;

use crate::questions::QueryWindow;
use crate::workload::{FleetWorkload, RequestKind, Traffic};

const LEAST_SHARE: f64 = 0.001;

pub fn experiment_toml(workload: &FleetWorkload, window: &QueryWindow) -> String {
    let name = workload.name.to_string().replace(char::is_control, "");
    let mut text = format!(
        "# {name}: what Prometheus saw in {}. Keys: docs/reference/experiment.schema.json.\n\n",
        window.length
    );
    let traffic = workload.traffic.as_ref();
    let seen = traffic.and_then(|t| t.p99_seconds).map_or_else(
        || "write what you promise".to_owned(),
        |p99| {
            format!(
                "write what you promise; production's p99 was {:.0}ms",
                p99 * 1e3
            )
        },
    );
    let _ = writeln!(text, "slo = \"p99<250ms,errors<1%\" # {seen}\n\n[app]");
    let image = workload.image.as_deref().unwrap_or("IMAGE");
    let _ = writeln!(text, "image = {}", quote_toml(image));
    text += "# ready = { http = \"/actuator/health/readiness\" }\n";
    text += "\n[load]\nurl = \"http://localhost:8080/\" # its port, and a path where no request below has one\n";
    match traffic {
        Some(traffic) => write_load(&mut text, traffic, workload.replicas),
        None => text += "rate = \"50/s\" # no series of requests has its pods\n",
    }
    write_limits(&mut text, workload);
    text
}

fn write_load(text: &mut String, traffic: &Traffic, replicas: u32) {
    let mean = traffic.mean_per_second / f64::from(replicas.max(1));
    let (rate, from) = match traffic.peak_per_second {
        Some(peak) => (
            peak,
            format!(
                "one instance in its busiest 5 min; {:.1} times the mean",
                peak / mean
            ),
        ),
        None => (mean, "the mean of one instance".to_owned()),
    };
    let rate = if rate >= 10.0 {
        rate.ceil()
    } else {
        (rate * 10.0).ceil() / 10.0
    };
    let _ = writeln!(text, "rate = \"{rate}/s\" # {from}");
    for kind in traffic.mix.iter().filter(|k| k.share >= LEAST_SHARE) {
        write_request(text, kind);
    }
}

fn write_request(text: &mut String, kind: &RequestKind) {
    let is_template = kind.path.contains(['{', '*']) || !kind.path.starts_with('/');
    let has_body = !matches!(kind.method.as_str(), "GET" | "HEAD" | "DELETE" | "OPTIONS");
    let share = format!("{:.1} %", kind.share * 100.0);
    let (hash, why) = match (is_template, has_body) {
        (true, _) if !kind.path.starts_with('/') => ("# ", format!(" # {share}; say its path")),
        (true, _) => (
            "# ",
            format!(" # {share}; say which: {{rand:1:100}}, {{csv:FILE:COLUMN}}"),
        ),
        (false, true) => ("# ", format!(" # {share}; say its body")),
        (false, false) => ("", format!(" # {share}")),
    };
    let _ = writeln!(text, "\n{hash}[[load.request]]{why}");
    let _ = writeln!(text, "{hash}weight = {:.3}", kind.share * 100.0);
    if kind.method != "GET" {
        let _ = writeln!(text, "{hash}method = {}", quote_toml(&kind.method));
    }
    let _ = writeln!(text, "{hash}path = {}", quote_toml(&kind.path));
    if has_body {
        let _ = writeln!(text, "{hash}body-file = \"body.json\"");
    }
}

fn write_limits(text: &mut String, workload: &FleetWorkload) {
    let (limit, request) = (workload.limit, workload.request);
    text.push_str("\n[limits]\n");
    match limit.cpu.or(request.cpu) {
        Some(cpu) => {
            let from = if limit.cpu.is_some() {
                "its limit"
            } else {
                "its request; it has no limit"
            };
            let _ = writeln!(text, "cpu = \"{cpu}\" # {from}");
        }
        None => text.push_str("cpu = \"1\" # it has neither request nor limit\n"),
    }
    match limit.memory.or(request.memory) {
        Some(memory) => {
            let from = if limit.memory.is_some() {
                "its limit"
            } else {
                "its request; it has no limit"
            };
            let _ = writeln!(text, "memory = \"{memory}\" # {from}");
        }
        None => text.push_str("memory = \"1Gi\" # it has neither request nor limit\n"),
    }
}

/// On one line, also behind a `#`: whoever sends requests may choose what a label says. The TOML
/// library writes a text with line ends on several.
fn quote_toml(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{FleetContainerKey, InstanceResources};

    /// Whoever sends requests may choose the path in a label.
    #[test]
    fn no_label_adds_a_key_to_the_experiment() {
        let injected = "\n[[dependency]]\nname = \"x\"\ncommand = [\"sh\"]\n#";
        let kind = |method: &str, path: &str| RequestKind {
            method: method.to_owned(),
            path: path.to_owned(),
            share: 0.2,
        };
        let workload = FleetWorkload {
            name: FleetContainerKey {
                namespace: "shop".to_owned(),
                kind: "Deployment".to_owned(),
                name: format!("orders{injected}"),
                container: "orders".to_owned(),
            },
            image: Some(format!("orders{injected}")),
            traffic: Some(Traffic {
                mean_per_second: 10.0,
                peak_per_second: None,
                errors: 0.0,
                p99_seconds: None,
                mix: vec![
                    kind("GET", injected),
                    kind("GET", &format!("/{{id}}{injected}")),
                    kind(&format!("POST{injected}"), "/{id}"),
                    kind("PUT\u{7f}", &format!("/plain\u{1b}{injected}")),
                ],
            }),
            replicas: 1,
            request: InstanceResources::default(),
            limit: InstanceResources::default(),
            peak: InstanceResources::default(),
            cpu_mean: None,
            throttled: None,
            oom_kills: 0,
            restarts: 0,
            jvm: None,
            objections: Vec::new(),
        };
        let window = QueryWindow::new("7d", "15m", &[]).expect("a window");
        let text = experiment_toml(&workload, &window);
        let table: toml::Table = text.parse().expect("TOML");
        let keys: Vec<&str> = table.keys().map(String::as_str).collect();
        assert_eq!(keys, ["app", "limits", "load", "slo"], "{text}");
        assert!(table["load"].get("request").is_none(), "{text}");
    }
}
