//! A day of series of a small cluster, as cAdvisor, kube-state-metrics and Micrometer name them.
//!
//! Owns its facts; written as OpenMetrics, which `promtool` turns into blocks.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The last instant, Unix time.
pub const END: u64 = 1_763_800_000;
const STEP: u64 = 60;
const DAY: u64 = 24 * 3600;

/// Series by their metric: OpenMetrics wants those of one metric together.
#[derive(Default)]
struct Series(BTreeMap<String, String>);

impl Series {
    /// A value at each step, by the seconds since the beginning.
    fn add(&mut self, metric: &str, labels: &str, value: impl Fn(f64) -> f64) {
        let text = self.0.entry(metric.to_owned()).or_default();
        for at in (0..=DAY).step_by(STEP as usize) {
            let _ = writeln!(
                text,
                "{metric}{{{labels}}} {} {}",
                value(at as f64),
                END - DAY + at
            );
        }
    }

    fn text(self) -> String {
        let mut text: String = self.0.into_values().collect();
        text += "# EOF\n";
        text
    }
}

/// A container and what it uses.
struct Container {
    namespace: &'static str,
    pod: &'static str,
    name: &'static str,
    /// Cores and MiB of limit and request.
    size: Option<(f64, f64)>,
    cpu: f64,
    memory_mib: f64,
    throttled: f64,
    oom_kills: f64,
}

const MIB: f64 = 1024.0 * 1024.0;

impl Container {
    fn series(&self, all: &mut Series) {
        let labels = format!(
            "namespace=\"{}\",pod=\"{}\",container=\"{}\"",
            self.namespace, self.pod, self.name
        );
        let mut add = |metric: &str, value: &dyn Fn(f64) -> f64| all.add(metric, &labels, value);
        add("container_memory_working_set_bytes", &|_| {
            self.memory_mib * MIB
        });
        add("container_cpu_usage_seconds_total", &|t| self.cpu * t);
        add("container_cpu_cfs_periods_total", &|t| 10.0 * t);
        add("container_cpu_cfs_throttled_periods_total", &|t| {
            10.0 * t * self.throttled
        });
        add("container_oom_events_total", &|t| {
            (self.oom_kills * t / DAY as f64).floor()
        });
        let Some((cpu, mib)) = self.size else {
            return;
        };
        for what in ["limits", "requests"] {
            let metric = format!("kube_pod_container_resource_{what}");
            all.add(&metric, &format!("{labels},resource=\"cpu\""), |_| cpu);
            all.add(&metric, &format!("{labels},resource=\"memory\""), |_| {
                mib * MIB
            });
        }
        let image = format!("{labels},image=\"registry.example/{}:1.4\"", self.name);
        all.add("kube_pod_container_info", &image, |_| 1.0);
    }
}

fn owned(all: &mut Series, namespace: &str, pod: &str, kind: &str, owner: &str) {
    let labels = format!(
        "namespace=\"{namespace}\",pod=\"{pod}\",owner_kind=\"{kind}\",owner_name=\"{owner}\""
    );
    all.add("kube_pod_owner", &labels, |_| 1.0);
}

/// Requests of a pod: `rate` by the seconds since the beginning, counted by hand.
fn requests(all: &mut Series, pod: &str, of: &str, rate: fn(f64) -> f64, share: f64) {
    let labels = format!("namespace=\"shop\",pod=\"{pod}\",{of}");
    let counted = |t: f64| {
        // In minutes, so that a counter is what its rate adds up to.
        (0..(t / 60.0) as u64)
            .map(|m| 60.0 * rate(m as f64 * 60.0))
            .sum::<f64>()
            * share
    };
    all.add("http_server_requests_seconds_count", &labels, counted);
    for (bound, part) in [("0.1", 0.98), ("0.25", 1.0), ("+Inf", 1.0)] {
        let labels = format!("{labels},le=\"{bound}\"");
        all.add("http_server_requests_seconds_bucket", &labels, |t| {
            counted(t) * part
        });
    }
}

/// Five a second, in the last hour twenty.
fn evening(t: f64) -> f64 {
    if t >= (DAY - 3600) as f64 { 20.0 } else { 5.0 }
}

/// The whole.
pub fn text() -> String {
    let mut all = Series::default();
    let container = |namespace, pod, name, size, cpu, memory_mib| Container {
        namespace,
        pod,
        name,
        size,
        cpu,
        memory_mib,
        throttled: 0.0,
        oom_kills: 0.0,
    };
    let two = Some((1.0, 1024.0));
    let orders = ["orders-7d4b9c6f5d-x2x4k", "orders-7d4b9c6f5d-bb7zq"];
    let mut containers = vec![
        // Three quarters idle; its heap is the default quarter.
        container("shop", orders[0], "orders", two, 0.2, 300.0),
        container("shop", orders[1], "orders", two, 0.2, 280.0),
        container(
            "shop",
            orders[0],
            "istio-proxy",
            Some((0.1, 64.0)),
            0.02,
            50.0,
        ),
        container(
            "shop",
            "search-0",
            "search",
            Some((0.5, 512.0)),
            0.45,
            450.0,
        ),
        container(
            "shop",
            "billing-5f7c8d9b6c-q9rtw",
            "billing",
            Some((1.0, 512.0)),
            0.8,
            510.0,
        ),
        // Nothing bounds it.
        container(
            "ops",
            "reports-6c5d4f7b8-k2m4n",
            "reports",
            None,
            0.3,
            700.0,
        ),
        container("ops", "backup-28190-abcde", "backup", two, 0.9, 900.0),
        // Just what it asks for.
        container(
            "ops",
            "audit-6c5d4f7b8-zz9x2",
            "audit",
            Some((0.5, 512.0)),
            0.45,
            450.0,
        ),
    ];
    containers[3].throttled = 0.4;
    containers[4].oom_kills = 3.0;
    for container in &containers {
        container.series(&mut all);
    }
    for pod in orders {
        owned(&mut all, "shop", pod, "ReplicaSet", "orders-7d4b9c6f5d");
        let heap = format!("namespace=\"shop\",pod=\"{pod}\",area=\"heap\",id=\"G1 Old Gen\"");
        all.add("jvm_memory_used_bytes", &heap, |_| 120.0 * MIB);
        all.add("jvm_memory_max_bytes", &heap, |_| 256.0 * MIB);
        let eden = format!("namespace=\"shop\",pod=\"{pod}\",area=\"heap\",id=\"G1 Eden Space\"");
        all.add("jvm_memory_used_bytes", &eden, |_| 60.0 * MIB);
        all.add("jvm_memory_max_bytes", &eden, |_| -1.0);
        let pause = format!("namespace=\"shop\",pod=\"{pod}\",cause=\"G1 Evacuation Pause\"");
        all.add("jvm_gc_pause_seconds_sum", &pause, |t| 0.002 * t);
        let of = |method: &str, uri: &str, status: &str| {
            format!("method=\"{method}\",uri=\"{uri}\",status=\"{status}\"")
        };
        requests(&mut all, pod, &of("GET", "/orders", "200"), evening, 0.7);
        requests(
            &mut all,
            pod,
            &of("GET", "/orders/{id}", "200"),
            evening,
            0.2,
        );
        requests(&mut all, pod, &of("POST", "/orders", "201"), evening, 0.08);
        requests(&mut all, pod, &of("GET", "/orders", "500"), evening, 0.02);
    }
    let set = "namespace=\"shop\",replicaset=\"orders-7d4b9c6f5d\",owner_kind=\"Deployment\",owner_name=\"orders\"";
    all.add("kube_replicaset_owner", set, |_| 1.0);
    owned(&mut all, "shop", "search-0", "StatefulSet", "search");
    owned(&mut all, "ops", "backup-28190-abcde", "Job", "backup-28190");
    for (namespace, pod) in [
        ("shop", "search-0"),
        ("shop", "billing-5f7c8d9b6c-q9rtw"),
        ("ops", "reports-6c5d4f7b8-k2m4n"),
        ("ops", "audit-6c5d4f7b8-zz9x2"),
    ] {
        let heap =
            format!("namespace=\"{namespace}\",pod=\"{pod}\",area=\"heap\",id=\"Tenured Gen\"");
        all.add("jvm_memory_used_bytes", &heap, |_| 200.0 * MIB);
        all.add("jvm_memory_max_bytes", &heap, |_| 350.0 * MIB);
    }
    all.text()
}
