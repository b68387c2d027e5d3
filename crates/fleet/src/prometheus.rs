//! Instant queries to a Prometheus, or to what speaks its HTTP API (Thanos, Mimir, VictoriaMetrics).
//!
//! Owns the connection and what an answer looks like; never which questions are asked. Form of the
//! answers: prometheus.io/docs/prometheus/latest/querying/api.

use std::io::Read;
use std::time::Duration;

use loadline_client::{Agent, Error, Trust, agent};
use loadline_trial::Refusal;
use serde::Deserialize;

/// Largest answer. Fifteen thousand containers answer in some 3 MB, a mix of requests in some 30.
const LARGEST: u64 = 128 << 20;

/// How a Prometheus is reached.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Its URL, with the path under which it is served.
    pub url: String,
    /// Value of the Authorization header.
    pub authorization: Option<String>,
    /// Whom to believe where it is encrypted.
    pub trust: Trust,
    /// Longest wait for one answer.
    pub timeout: Duration,
    /// The instant that is asked about, as Prometheus takes it; now without it.
    pub at: Option<String>,
}

/// A Prometheus that can be asked.
pub struct Prometheus {
    agent: Agent,
    access: Access,
    query: String,
}

/// One series of an answer.
#[derive(Debug, Deserialize)]
pub struct Sample {
    /// Its labels.
    pub metric: Labels,
    /// Unix time and value.
    value: (f64, String),
}

impl Sample {
    /// Its value; `None` where it is no number (NaN, infinite).
    pub fn value(&self) -> Option<f64> {
        self.value.1.parse().ok().filter(|v: &f64| v.is_finite())
    }
}

/// The labels that the questions ask for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// Kubernetes namespace.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// Container.
    pub container: String,
    /// Image reference.
    pub image: String,
    /// ReplicaSet.
    pub replicaset: String,
    /// Kind of what owns it.
    pub owner_kind: String,
    /// Name of what owns it.
    pub owner_name: String,
    /// HTTP method.
    pub method: String,
    /// Path, as a template.
    pub uri: String,
    /// Status.
    pub status: String,
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    data: Option<Data>,
    #[serde(default)]
    error: String,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    kind: String,
    result: serde_json::Value,
}

/// The same, for the one kind that is asked for: no tree in between.
#[derive(Deserialize)]
struct Vector {
    data: Samples,
}

#[derive(Deserialize)]
struct Samples {
    result: Vec<Sample>,
}

impl Prometheus {
    /// Takes the access apart; nothing is sent yet.
    ///
    /// # Errors
    /// A URL that is none, or certificates that cannot be read.
    pub fn new(access: Access) -> Result<Self, Refusal> {
        let url = access.url.trim_end_matches('/');
        if url.contains('?') || url.contains('#') || url.ends_with("/query") {
            return Err(Refusal::new(
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
    ///
    /// # Errors
    /// Where it cannot be reached, does not let us in, or does not answer as Prometheus does.
    pub fn instant(&self, promql: &str) -> Result<Vec<Sample>, Refusal> {
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
            .map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let mut text = Vec::new();
        let body = response.body_mut().with_config().limit(LARGEST).reader();
        body.take(LARGEST)
            .read_to_end(&mut text)
            .map_err(|error| self.refused(format!("its answer broke off: {error}"), HINT_LARGE))?;
        series(&text).ok_or_else(|| self.not_understood(status, &text, promql))
    }

    fn not_understood(&self, status: u16, text: &[u8], promql: &str) -> Refusal {
        match serde_json::from_slice::<Answer>(text) {
            Ok(answer) if answer.status == "error" => {
                let why = format!("it says: {} (asked: {promql})", answer.error);
                self.refused(why, "a shorter --window or a longer --step asks less of it")
            }
            Ok(Answer {
                data: Some(data), ..
            }) => {
                let what = match data.result.is_array() {
                    true => "holds series that are none",
                    false => "is no list",
                };
                let why = format!("its answer, a {}, {what} (asked: {promql})", data.kind);
                self.refused(why, HINT_ADDRESS)
            }
            _ => match status {
                401 | 403 => self.refused(
                    format!("it does not let us in (status {status})"),
                    "give --bearer '{env:NAME}', --bearer @FILE or --basic '{env:NAME}'",
                ),
                300..=399 => self.refused(
                    format!("it sends elsewhere (status {status}), and nothing is followed"),
                    "give the address that it sends to; behind a login page, its API's own",
                ),
                503 => self.refused(
                    "it is not ready (status 503)".to_owned(),
                    "try again when it has read its blocks",
                ),
                _ => self.refused(
                    format!("what answers there is no Prometheus (status {status})"),
                    HINT_ADDRESS,
                ),
            },
        }
    }

    fn unreachable(&self, error: &Error) -> Refusal {
        if is_unknown_host(error) {
            return self.refused(
                "the name of the host is not known here".to_owned(),
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
        self.refused(error.to_string(), hint)
    }

    fn refused(&self, why: String, hint: &str) -> Refusal {
        Refusal::new(format!("Prometheus at {}", self.access.url), why, hint)
    }
}

/// The series of an answer that is one of Prometheus.
fn series(text: &[u8]) -> Option<Vec<Sample>> {
    let vector = serde_json::from_slice::<Vector>(text).ok()?;
    Some(vector.data.result)
}

/// Any bytes as an answer, for the fuzzer: what is understood, or what is said of it.
#[cfg(fuzzing)]
pub fn parse_anything(text: &[u8]) {
    let access = Access {
        url: "http://localhost:9090".to_owned(),
        ..Access::default()
    };
    let Ok(asked) = Prometheus::new(access) else {
        return;
    };
    match series(text) {
        Some(samples) => samples.iter().for_each(|sample| {
            let _ = sample.value();
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
        let access = Access {
            url: url.to_owned(),
            ..Access::default()
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
            let sample: Sample = serde_json::from_str(&text).expect("a sample");
            sample.value()
        };
        assert_eq!(sample("1e3"), Some(1000.0));
        assert_eq!(sample("NaN"), None);
        assert_eq!(sample("+Inf"), None);
    }
}
