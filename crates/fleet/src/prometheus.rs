//! Instant queries to a Prometheus, or to what speaks its HTTP API (Thanos, Mimir, VictoriaMetrics).
//!
//! Owns the connection and what an answer looks like; never which questions are asked. Form of the
//! answers: prometheus.io/docs/prometheus/latest/querying/api.

use std::io::Read;
use std::time::Duration;

use loadline_client::{Agent, Error, Trust, agent};
use loadline_protocol::RunRefusal;
use serde::Deserialize;

/// Largest answer. Fifteen thousand containers answer in some 3 MB, a mix of requests in some 30.
const LARGEST: u64 = 128 << 20;

#[derive(Debug, Clone, Default)]
pub struct PrometheusAccess {
    pub url: String,
    pub authorization: Option<String>,
    pub trust: Trust,
    pub timeout: Duration,
    pub at: Option<String>,
}

pub struct Prometheus {
    agent: Agent,
    access: PrometheusAccess,
    query: String,
}

#[derive(Debug, Deserialize)]
pub struct PrometheusSample {
    pub metric: SeriesLabels,
    value: (f64, String),
}

impl PrometheusSample {
    pub fn finite_value(&self) -> Option<f64> {
        self.value.1.parse().ok().filter(|v: &f64| v.is_finite())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SeriesLabels {
    pub namespace: String,
    pub pod: String,
    pub container: String,
    pub image: String,
    pub replicaset: String,
    pub owner_kind: String,
    pub owner_name: String,
    pub method: String,
    pub uri: String,
    pub status: String,
}

#[derive(Deserialize)]
struct PrometheusAnswer {
    status: String,
    data: Option<AnswerData>,
    #[serde(default)]
    error: String,
}

#[derive(Deserialize)]
struct AnswerData {
    #[serde(rename = "resultType")]
    kind: String,
    result: serde_json::Value,
}

/// The same, for the only kind in use: avoids a JSON tree.
#[derive(Deserialize)]
struct VectorAnswer {
    data: VectorSamples,
}

#[derive(Deserialize)]
struct VectorSamples {
    result: Vec<PrometheusSample>,
}

impl Prometheus {
    pub fn new(access: PrometheusAccess) -> Result<Self, RunRefusal> {
        let url = access.url.trim_end_matches('/');
        if url.contains('?') || url.contains('#') || url.ends_with("/query") {
            return Err(RunRefusal::new(
                format!("--prometheus {}", access.url),
                "it is the address of a page or a query",
                "give the address under which Prometheus is served, such as http://localhost:9090",
            ));
        }
        let query = format!("{url}/api/v1/query");
        let agent = agent(
            &format!("--prometheus {}", access.url),
            url,
            &access.trust,
            access.timeout,
        )?;
        Ok(Self {
            agent,
            access,
            query,
        })
    }

    /// The series that a query yields now.
    /// Errors: Where it cannot be reached, does not let us in, or does not answer as Prometheus
    /// does.
    pub fn query_instant(&self, promql: &str) -> Result<Vec<PrometheusSample>, RunRefusal> {
        let mut form = vec![("query", promql)];
        if let Some(at) = &self.access.at {
            form.push(("time", at));
        }
        let mut request = self.agent.post(&self.query);
        if let Some(authorization) = &self.access.authorization {
            request = request.header("Authorization", authorization);
        }
        let mut response = request
            .send_form(form)
            .map_err(|error| self.refuse_unreachable(&error))?;
        let status = response.status().as_u16();
        let mut text = Vec::new();
        let body = response.body_mut().with_config().limit(LARGEST).reader();
        body.take(LARGEST).read_to_end(&mut text).map_err(|error| {
            self.refuse_answer(format!("its answer broke off: {error}"), HINT_LARGE)
        })?;
        parse_series(&text).ok_or_else(|| self.not_understood(status, &text, promql))
    }

    fn not_understood(&self, status: u16, text: &[u8], promql: &str) -> RunRefusal {
        match serde_json::from_slice::<PrometheusAnswer>(text) {
            Ok(answer) if answer.status == "error" => {
                let why = format!("it says: {} (asked: {promql})", answer.error);
                self.refuse_answer(
                    why,
                    "a shorter --window or a longer --step makes smaller queries",
                )
            }
            Ok(PrometheusAnswer {
                data: Some(data), ..
            }) => {
                let what = if data.result.is_array() {
                    "holds series that are none"
                } else {
                    "is no list"
                };
                let why = format!("its answer, a {}, {what} (asked: {promql})", data.kind);
                self.refuse_answer(why, HINT_ADDRESS)
            }
            _ => match status {
                401 | 403 => self.refuse_answer(
                    format!("it does not let us in (status {status})"),
                    "give --bearer '{env:NAME}', --bearer @FILE or --basic '{env:NAME}'",
                ),
                300..=399 => self.refuse_answer(
                    format!("it sends elsewhere (status {status}), and nothing is followed"),
                    "give the address that it sends to; behind a login page, its API's own",
                ),
                503 => self.refuse_answer(
                    "it is not ready (status 503)".to_owned(),
                    "try again when it has read its blocks",
                ),
                _ => self.refuse_answer(
                    format!("what answers there is no Prometheus (status {status})"),
                    HINT_ADDRESS,
                ),
            },
        }
    }

    fn refuse_unreachable(&self, error: &Error) -> RunRefusal {
        if is_unknown_host(error) {
            return self.refuse_answer(
                "unknown host".to_owned(),
                "is it the cluster's own? then: kubectl port-forward svc/prometheus 9090, and http://localhost:9090",
            );
        }
        let hint = match error {
            Error::Timeout(_) => "a shorter --window, a longer --step or --timeout",
            Error::Tls(_) | Error::Rustls(_) => "give the authority with --cacert, or --insecure",
            _ => {
                "does it run there? of a cluster: kubectl port-forward svc/prometheus 9090, and http://localhost:9090"
            }
        };
        self.refuse_answer(error.to_string(), hint)
    }

    fn refuse_answer(&self, why: String, hint: &str) -> RunRefusal {
        RunRefusal::new(format!("Prometheus at {}", self.access.url), why, hint)
    }
}

fn parse_series(text: &[u8]) -> Option<Vec<PrometheusSample>> {
    let vector = serde_json::from_slice::<VectorAnswer>(text).ok()?;
    Some(vector.data.result)
}

/// Any bytes as an answer, for the fuzzer.
#[cfg(fuzzing)]
pub fn parse_anything(text: &[u8]) {
    let access = PrometheusAccess {
        url: "http://localhost:9090".to_owned(),
        ..PrometheusAccess::default()
    };
    let Ok(asked) = Prometheus::new(access) else {
        return;
    };
    match parse_series(text) {
        Some(samples) => samples.iter().for_each(|sample| {
            let _ = sample.finite_value();
        }),
        None => {
            let _ = asked.not_understood(200, text, "up").to_string();
        }
    }
}

/// The system's resolver answers with an error that has no number, only a text.
fn is_unknown_host(error: &Error) -> bool {
    match error {
        Error::HostNotFound => true,
        Error::Io(io) => io.to_string().contains("lookup address"),
        _ => false,
    }
}

const HINT_ADDRESS: &str =
    "give the address under which Prometheus is served, such as http://localhost:9090";
const HINT_LARGE: &str = "--namespace asks about a part of the fleet";

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        let access = PrometheusAccess {
            url: url.to_owned(),
            ..PrometheusAccess::default()
        };
        let refusal = Prometheus::new(access).err().expect("refused");
        format!("{refusal}; {}", refusal.hint)
    }

    #[test]
    fn an_address_that_is_none_is_named() {
        insta::assert_snapshot!(refused("localhost:9090"), @"--prometheus localhost:9090: the address has no scheme; begin it with http:// or https://");
        insta::assert_snapshot!(refused("http://p/graph?g0.expr=up"), @"--prometheus http://p/graph?g0.expr=up: it is the address of a page or a query; give the address under which Prometheus is served, such as http://localhost:9090");
    }

    #[test]
    fn a_value_that_is_no_number_is_none() {
        let sample = |value: &str| {
            let text = format!(
                "{{\"metric\": {{\"pod\": \"a\", \"x\": \"y\"}}, \"value\": [1, \"{value}\"]}}"
            );
            let sample: PrometheusSample = serde_json::from_str(&text).expect("a sample");
            sample.finite_value()
        };
        assert_eq!(sample("1e3"), Some(1000.0));
        assert_eq!(sample("NaN"), None);
        assert_eq!(sample("+Inf"), None);
    }
}
