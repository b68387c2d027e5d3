//! Somebody else's numbers for a container: a manifest, an autoscaler's advice, a rule.
//!
//! Owns the reading of advice into limits and JVM options; never runs it, never judges it. Rules
//! of other launchers are `loadline_sizing::compat`'s. Formats: Kubernetes core/v1 and apps/v1;
//! `kubectl get vpa -o json` (autoscaling.k8s.io/v1); `krr simple -f json`.

pub mod builds;
pub mod container_options;
pub(crate) mod fields;
pub mod image_jdk;
pub mod image_variables;
pub mod inlined;
mod java_command;
mod malformed;
pub mod manifest;
mod memory_use;
mod option_reader;
pub mod quantity;
mod reports;
mod workflow;

use std::path::{Path, PathBuf};

use loadline_analysis::lint::LintedContainer;
use loadline_protocol::RunRefusal;
use loadline_sizing::compat::calculator::{self, Flavour};
use loadline_sizing::compat::{fabric8, rightsize};
use loadline_sizing::options::JvmOptionSet;
use loadline_sizing::{Bytes, Cpus, JavaVersion};

/// Classes of the JDK that the memory calculator's build pack counts: those in `lib/modules` of JDK
/// 17.0.15.
const JDK_CLASSES: u64 = 26_588;

const FEW: u64 = 1_400;

/// Percent of all classes that the build pack takes to be loaded (paketo-buildpacks/libjvm).
const LOADED: u64 = 35;

/// Threads that the calculator's build pack assumes.
const THREADS: u64 = 250;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContainerAdvice {
    pub label: String,
    /// CPU limit; `None` leaves it as it is.
    pub cpu: Option<Cpus>,
    /// Memory limit; `None` leaves it as it is.
    pub memory: Option<Bytes>,
    pub jvm: Vec<String>,
}

impl ContainerAdvice {
    pub fn from_manifest(label: String, container: &LintedContainer) -> Self {
        Self {
            label,
            cpu: container.limits.cpu,
            memory: container.limits.memory,
            jvm: container.jvm.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct RuleInput {
    pub cpu: Option<Cpus>,
    pub memory: Option<Bytes>,
    pub jdk: JavaVersion,
    /// Classes in the application's jars; `None` where they could not be counted.
    pub classes: Option<u64>,
    pub behaviour: Result<rightsize::RightsizeInput, String>,
}

#[derive(Debug, thiserror::Error)]
pub enum AdviceError {
    #[error("cannot read {}: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error(transparent)]
    Refused(#[from] RunRefusal),
    #[error("{} has no advice: {why}", path.display())]
    NoAdvice { path: PathBuf, why: String },
    #[error("{rule} gives no answer: {why}")]
    NoAnswer {
        rule: String,
        why: String,
        hint: &'static str,
    },
}

impl AdviceError {
    pub fn advice_hint(&self) -> Option<&str> {
        match self {
            Self::Unreadable { path, .. } if is_number(path) => {
                Some("did you mean percent=75, a share of the limit?")
            }
            Self::Unreadable { .. } => Some(
                "name a rule (defaults, percent=75, paketo, boot-ui, fabric8, rightsize) or a file: a manifest, or JSON of `kubectl get vpa -o json` or `krr simple -f json`",
            ),
            Self::Refused(refusal) => Some(&refusal.hint),
            Self::NoAdvice { .. } => Some(
                "it may be a Kubernetes manifest (YAML), or JSON of `kubectl get vpa -o json` or `krr simple -f json`",
            ),
            Self::NoAnswer { hint, .. } => Some(hint),
        }
    }
}

fn is_number(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.trim_end_matches('%').parse::<f64>().is_ok()
}

/// Reads advice by what it is called: `defaults`, `percent=75`, `paketo`, `boot-ui`, `fabric8`, `rightsize`, or a file.
pub fn read(named: &str, given: &RuleInput) -> Result<ContainerAdvice, AdviceError> {
    if let Some(share) = named.strip_prefix("percent=") {
        return percent_rule(named, share);
    }
    match named {
        "defaults" => Ok(ContainerAdvice {
            label: named.to_owned(),
            ..ContainerAdvice::default()
        }),
        // boot-ui writes the formula of Paketo's calculator as YAML.
        "paketo" | "boot-ui" => paketo_rule(named, given),
        "fabric8" => fabric8_rule(given),
        "rightsize" => rightsize_rule(given),
        path if !Path::new(path).exists() => Err(AdviceError::Unreadable {
            path: path.into(),
            why: "it is neither a rule nor an existing file".to_owned(),
        }),
        path => reports::read(Path::new(path)),
    }
}

fn percent_rule(named: &str, share: &str) -> Result<ContainerAdvice, AdviceError> {
    let share = share.trim_end_matches('%').parse::<f64>().ok();
    let share = share.filter(|share| *share > 0.0 && *share <= 100.0);
    let share = share.ok_or_else(|| AdviceError::NoAnswer {
        rule: named.to_owned(),
        why: "it is not a percentage".to_owned(),
        hint: "write percent=75",
    })?;
    Ok(ContainerAdvice {
        label: named.to_owned(),
        jvm: vec![format!("-XX:MaxRAMPercentage={share:.1}")],
        ..ContainerAdvice::default()
    })
}

fn paketo_rule(named: &str, given: &RuleInput) -> Result<ContainerAdvice, AdviceError> {
    let no_answer = |why: String| AdviceError::NoAnswer {
        rule: named.to_owned(),
        why,
        hint: "give the memory it should divide: --memory 1Gi",
    };
    let total = given
        .memory
        .ok_or_else(|| no_answer("there is no memory limit to divide".to_owned()))?;
    let input = calculator::CalculatorInput {
        total,
        classes: paketo_classes(given.classes),
        threads: THREADS,
        headroom_percent: 0,
        options: &JvmOptionSet::from_words(Vec::<String>::new()),
    };
    let answer = calculator::calculate_memory(Flavour::Paketo, &input)
        .map_err(|refusal| no_answer(refusal.to_string()))?;
    Ok(ContainerAdvice {
        label: named.to_owned(),
        jvm: answer.options,
        ..ContainerAdvice::default()
    })
}

/// Classes that the build pack takes to be loaded.
fn paketo_classes(of_application: Option<u64>) -> u64 {
    (JDK_CLASSES + of_application.unwrap_or(FEW)) * LOADED / 100
}

fn fabric8_rule(given: &RuleInput) -> Result<ContainerAdvice, AdviceError> {
    let answer = fabric8::calculate(&fabric8::Fabric8Input {
        limit: given.memory,
        cpus: given.cpu,
        jdk: given.jdk,
        max_ratio: None,
        init_ratio: None,
        options: &JvmOptionSet::from_words(Vec::<String>::new()),
    });
    Ok(ContainerAdvice {
        label: "fabric8".to_owned(),
        jvm: answer.options,
        ..ContainerAdvice::default()
    })
}

/// Argus' rule; what it advises to request is taken as the limit, as its authors mean for memory.
fn rightsize_rule(given: &RuleInput) -> Result<ContainerAdvice, AdviceError> {
    let no_answer = |why: String| AdviceError::NoAnswer {
        rule: "rightsize".to_owned(),
        why,
        hint: "soak the application (loadline soak RESULT --for 10m) and name that result: --measured RESULT",
    };
    let input = given.behaviour.as_ref();
    let input = input.map_err(|why| no_answer(why.clone()))?;
    let answer = rightsize::calculate(input).map_err(|why| no_answer(why.to_string()))?;
    Ok(ContainerAdvice {
        label: "rightsize".to_owned(),
        cpu: Some(answer.cpu),
        memory: Some(answer.memory),
        jvm: answer.calculated.options,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given() -> RuleInput {
        RuleInput {
            cpu: Some(Cpus::from_whole(1)),
            memory: Some(Bytes::from_gib(1)),
            jdk: "17".parse().expect("a version"),
            classes: None,
            behaviour: Err("the result has no soak".to_owned()),
        }
    }

    /// The bundled Spring Boot service: 20 794 of its and the JDK's classes (records/README.md).
    #[test]
    fn the_calculator_is_told_the_classes_of_the_application() {
        let spring = RuleInput {
            classes: Some(32_824),
            ..given()
        };
        let advice = read("paketo", &spring).expect("1 GiB is enough");
        let metaspace = "-XX:MaxMetaspaceSize=131450K".to_owned();
        assert!(advice.jvm.contains(&metaspace), "{:?}", advice.jvm);
    }

    #[test]
    fn rules_become_options() {
        let jvm = |named| read(named, &given()).map(|a| a.jvm.join(" "));
        assert_eq!(
            jvm("percent=75").ok().as_deref(),
            Some("-XX:MaxRAMPercentage=75.0")
        );
        assert_eq!(jvm("defaults").ok().as_deref(), Some(""));
        assert!(jvm("paketo").expect("1 GiB is enough").contains("-Xmx"));
        assert_eq!(
            jvm("fabric8").ok().as_deref(),
            Some("-XX:+ExitOnOutOfMemoryError")
        );
    }

    #[test]
    fn a_rule_without_an_answer_says_why() {
        let small = RuleInput {
            memory: Some(Bytes::from_mib(256)),
            ..given()
        };
        let error = read("paketo", &small).expect_err("the fixed regions exceed 256 MiB");
        assert!(
            error.to_string().contains("paketo gives no answer"),
            "{error}"
        );
        assert!(read("percent=a", &small).is_err());
        let unknown = read("rightsize", &small).expect_err("nothing was seen");
        assert_eq!(
            unknown.to_string(),
            "rightsize gives no answer: the result has no soak"
        );
        assert!(
            unknown
                .advice_hint()
                .expect("a hint")
                .contains("loadline soak")
        );
    }

    #[test]
    fn a_rule_that_starts_from_behaviour_has_limits_of_its_own() {
        let seen = RuleInput {
            behaviour: Ok(rightsize::RightsizeInput {
                live: Bytes::from_mib(100),
                metaspace: Bytes::from_mib(50),
                direct: Bytes::from_mib(0),
                code_cache: Bytes::from_mib(10),
                threads: 30,
                allocation: 0.0,
                promotion: 0.0,
                observed: std::time::Duration::from_secs(90),
                collections: 5,
            }),
            ..given()
        };
        let advice = read("rightsize", &seen).expect("enough was seen");
        assert_eq!(advice.memory, Some(Bytes::from_mib(300)));
        assert_eq!(advice.cpu, Some(Cpus::from_millis(500)));
        assert_eq!(advice.jvm, ["-Xms150m", "-Xmx150m"]);
    }
}
