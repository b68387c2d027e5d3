//! The load of a trial: phases made from what the experiment says.
//!
//! Owns the order of phases and what the warm-up plays. How a load is written is
//! [`loadline_load::spec`]'s; files and variables that it names are read here, at the moment that a
//! trial needs them, and what they hold goes to the generator's process by a pipe and nowhere else.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use loadline_analysis::record::{Configuration, TrialPhase};
use loadline_load::spec::DURATION;
use loadline_load::spec::text::PositiveTime;
use loadline_load::{LoadError, LoadModel, LoadPlan, LoadSpec, LoadTarget, RequestSpec};
use loadline_protocol::{LoadPhase, Readiness, StudyGoal};

use super::ExperimentError;
use super::error::ExperimentSource;

/// Keeps random values of the warm-up (`{uuid}`, `{rand:..}`) apart from those of the judged part.
const WARM_UP_SEED: u64 = 0x7761_726d;

/// The same for the second cycle of a soak, and for the judged load behind a squeeze or a burst.
const AGAIN_SEED: u64 = 0x6167_6169_6e21;

const PEAK_SEED: u64 = 0x7065_616b;
const AGE_SEED: u64 = 0x6167_6521;
const SQUEEZE_SEED: u64 = 0x7371_7565_657a;

/// The most that ageing takes; it ends before, when memory stands still or its requests were answered.
const AGE: Duration = Duration::from_secs(45);

/// The most that a squeeze takes; 16 to 24 s are enough as a rule.
const SQUEEZE: Duration = Duration::from_secs(90);

/// The most that the burst of a fresh start takes.
const BURST: Duration = Duration::from_secs(15);

/// How long a fresh start is watched behind its burst, when compilers have the CPU again: WireMock's took
/// their memory within two seconds.
const CALM: Duration = Duration::from_secs(4);

const TRAINING_CONNECTIONS: u32 = 2;

#[derive(Debug, Clone, Default)]
pub struct TrainingSettings {
    /// The requests; empty means the load's requests.
    pub warm: Vec<LoadTarget>,
    pub jvm: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentLoad {
    pub spec: LoadSpec,
    pub model: LoadModel,
}

impl ExperimentLoad {
    pub fn new(spec: LoadSpec) -> Result<Self, LoadError> {
        spec.check_spec()?;
        spec.refuse_literal_credentials()?;
        let model = spec.judged_model()?;
        Ok(Self { spec, model })
    }

    pub fn absent() -> Self {
        Self {
            spec: LoadSpec::default(),
            model: LoadModel::ClosedRequests { requests: 0 },
        }
    }

    pub fn is_absent(&self) -> bool {
        self.spec == LoadSpec::default()
    }

    /// Without requests: the phases of a consumer last for their time.
    pub fn timed(spec: &LoadSpec) -> Result<Self, LoadError> {
        spec.refuse_requests()?;
        let duration = spec.duration.map_or(DURATION, |time| time.0);
        Ok(Self {
            spec: LoadSpec {
                duration: Some(PositiveTime(duration)),
                ..spec.clone()
            },
            model: LoadModel::ClosedFor { duration },
        })
    }

    /// Whether no request is sent and time alone passes; not of a run, which has no phases.
    pub fn is_timed(&self) -> bool {
        self.spec.url.is_none() && !self.is_absent()
    }

    /// The judged load of this configuration, which may have its own rate: the mean of an open model.
    pub fn model_of(&self, of: &Configuration) -> LoadModel {
        match of.rate {
            Some(rate) => self.model.clone().at_rate(rate),
            None => self.model.clone(),
        }
    }

    /// The phases of a trial of this configuration, which may have its own warm-up; `bound` is the
    /// tightest latency objective, `seed` drives everything random in this trial.
    pub fn phases(
        &self,
        of: &Configuration,
        bound: Option<Duration>,
        seed: u64,
    ) -> Result<Vec<LoadPhase>, LoadError> {
        if self.is_absent() {
            return Ok(Vec::new());
        }
        let model = self.model_of(of);
        let plan = match (self.is_timed(), model.scheduled_duration()) {
            (true, Some(length)) => LoadPlan::timed(length),
            _ => LoadPlan {
                slo: bound,
                seed,
                ..self
                    .spec
                    .plan_with_model(vec![target(self.spec.port())], model.clone())?
            },
        };
        let warm_up = of.warm_up.unwrap_or(self.spec.warm_up());
        let before = (!warm_up.is_zero()).then(|| LoadPhase {
            phase: TrialPhase::WarmUp,
            plan: LoadPlan {
                model: model.lead_in(warm_up),
                seed: seed ^ WARM_UP_SEED,
                ..plan.clone()
            },
        });
        let peak = self.spec.peak_model(&model)?.map(|model| LoadPhase {
            phase: TrialPhase::Peak,
            plan: LoadPlan {
                connections: self.spec.connection_count(&model),
                model,
                seed: seed ^ PEAK_SEED,
                ..plan.clone()
            },
        });
        let judged = LoadPhase {
            phase: TrialPhase::Measure,
            plan,
        };
        let phases = before.into_iter().chain([judged]).chain(peak);
        Ok(phases.collect())
    }

    /// The same for a soak: each of its two cycles plays the judged load for `cycle`, without peak.
    pub fn cycles(
        &self,
        of: &Configuration,
        bound: Option<Duration>,
        seed: u64,
        length: Duration,
    ) -> Result<Vec<LoadPhase>, LoadError> {
        let mut phases = self.phases(of, bound, seed)?;
        phases.retain(|phase| phase.phase != TrialPhase::Peak);
        if let Some(judged) = phases.last_mut() {
            judged.plan.model = judged.plan.model.repeated_for(length);
            let again = LoadPhase {
                phase: TrialPhase::Again,
                plan: LoadPlan {
                    // Values that an application remembers must not come twice.
                    seed: seed ^ AGAIN_SEED,
                    ..judged.plan.clone()
                },
            };
            phases.push(again);
        }
        Ok(phases)
    }

    /// The same for a start with a memory study after the judged load: a burst on all connections, and
    /// behind it the judged load, for a wall while the limit is lowered and once more.
    pub fn studied(
        &self,
        of: &Configuration,
        bound: Option<Duration>,
        seed: u64,
        goal: StudyGoal,
    ) -> Result<Vec<LoadPhase>, LoadError> {
        let mut phases = self.phases(of, bound, seed)?;
        let judged = phases.iter().find(|p| p.phase == TrialPhase::Measure);
        let Some(judged) = judged.map(|judged| judged.plan.clone()) else {
            return Ok(phases);
        };
        let behind = |phase, model, own| LoadPhase {
            phase,
            plan: LoadPlan {
                model,
                // Values that an application remembers must not come twice.
                seed: seed ^ own,
                ..judged.clone()
            },
        };
        let longest = match goal {
            StudyGoal::LiveSet | StudyGoal::Wall => AGE,
            StudyGoal::Burst => BURST,
        };
        let duration = match judged.model.scheduled_duration() {
            Some(judged) if self.is_timed() => judged.min(longest),
            _ => longest,
        };
        let model = LoadModel::ClosedFor { duration };
        let mut burst = behind(TrialPhase::Age, model, AGE_SEED);
        burst.plan.think = None;
        phases.push(burst);
        let again = |model| behind(TrialPhase::Again, model, AGAIN_SEED);
        match goal {
            StudyGoal::LiveSet => {}
            StudyGoal::Wall => {
                let long = judged.model.repeated_for(SQUEEZE);
                phases.push(behind(TrialPhase::Squeeze, long, SQUEEZE_SEED));
                phases.push(again(judged.model.clone()));
            }
            StudyGoal::Burst => phases.push(again(judged.model.repeated_for(CALM))),
        }
        Ok(phases)
    }

    /// The phases of a training run: this many requests of the load, or to each address that the
    /// training names; empty for 0.
    pub fn training_phases(
        &self,
        training: &TrainingSettings,
        requests: u64,
    ) -> Result<Vec<LoadPhase>, LoadError> {
        if requests == 0 || self.is_timed() {
            return Ok(Vec::new());
        }
        let plan = LoadPlan {
            model: LoadModel::ClosedRequests { requests },
            connections: TRAINING_CONNECTIONS,
            think: None,
            ..self.spec.to_plan(vec![target(self.spec.port())])?
        };
        let to = |(port, path): (u16, &str)| LoadPlan {
            targets: vec![target(port)],
            request: RequestSpec {
                method: "GET".to_owned(),
                path: path.to_owned(),
                body: Vec::new(),
                ..plan.request.clone()
            },
            mix: Vec::new(),
            ..plan.clone()
        };
        let warm = training.warm.iter();
        let named: BTreeSet<_> = warm.map(|url| (url.port, url.path.as_str())).collect();
        let plans = if named.is_empty() {
            vec![plan]
        } else {
            named.into_iter().map(to).collect()
        };
        let phase = |plan| LoadPhase {
            phase: TrialPhase::WarmUp,
            plan,
        };
        Ok(plans.into_iter().map(phase).collect())
    }

    /// The default readiness check: the URL answers a plain GET, or the port takes a connection if
    /// the load is not plain (a login, https).
    pub fn readiness(&self) -> Readiness {
        let spec = &self.spec;
        let port = spec.port();
        let url = spec.url.as_ref().filter(|url| !url.is_tls);
        let is_plain = spec.headers.is_empty() && spec.basic.is_none() && spec.bearer.is_none();
        let is_get = spec.method.as_ref().is_none_or(|m| m == "GET") && spec.mix().is_empty();
        match url.filter(|url| is_plain && is_get && !url.path.contains('{')) {
            Some(url) => Readiness::Http {
                port,
                path: url.path.clone(),
            },
            None => Readiness::Tcp { port },
        }
    }
}

fn target(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

pub(super) fn check_load(
    spec: &LoadSpec,
    is_consumer: bool,
    source: &ExperimentSource<'_>,
) -> Result<ExperimentLoad, ExperimentError> {
    let load = if is_consumer {
        ExperimentLoad::timed(spec)
    } else {
        ExperimentLoad::new(spec.clone())
    };
    let load = load.map_err(|error| load_refusal(&error, source))?;
    if let Some(url) = &spec.url {
        refuse_foreign_url(url, source)?;
        if url.is_tls && spec.cacert.is_none() && spec.insecure != Some(true) {
            return Err(source.key_error(
                "url",
                format!("`{url}` is https, but no certificate is trusted"),
                "name the root certificates: cacert = \"ca.pem\" (--cacert ca.pem; this machine's are in /etc/ssl/certs/ca-certificates.crt), or accept any: insecure = true (--insecure)",
            ));
        }
    }
    Ok(load)
}

pub(super) fn refuse_foreign_url(
    url: &LoadTarget,
    source: &ExperimentSource<'_>,
) -> Result<(), ExperimentError> {
    if matches!(url.host.as_str(), "localhost" | "127.0.0.1" | "::1") {
        return Ok(());
    }
    Err(source.key_error(
        "url",
        format!("`{url}` is not a URL loadline can drive: load goes only to the application that loadline starts, so the host is localhost"),
        "write it as the application sees it: http://localhost:8080/owners?lastName=Da",
    ))
}

pub(super) fn load_refusal(error: &LoadError, source: &ExperimentSource<'_>) -> ExperimentError {
    match error {
        LoadError::Plan { field, why } => source.load_key_error(field, why),
        other => source.load_key_error("load", &other.to_string()),
    }
}
