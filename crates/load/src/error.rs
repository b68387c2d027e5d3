//! What can stop a load run: never a failed request, only a plan or a machine that cannot.

use std::path::PathBuf;

use rustix::io::Errno;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{field}: {why}")]
    Plan { field: &'static str, why: String },
    #[error("part: {why}")]
    Part { why: String, hint: String },
    #[error("{call} failed: {errno}")]
    System {
        call: &'static str,
        errno: Errno,
        hint: &'static str,
    },
    #[error("{path}: cannot enter the network namespace: {errno}")]
    Namespace { path: PathBuf, errno: Errno },
    #[error("{authority}: {why}")]
    Target { authority: String, why: String },
    #[error("{authority}: unknown host: {why}")]
    UnknownHost { authority: String, why: String },
    #[error("the order on standard input is not valid: {0}")]
    Order(serde_json::Error),
    #[error("standard output: {0}")]
    Output(std::io::Error),
    #[error("the generator {name}: {why}")]
    Generator { name: String, why: String },
    #[error("the histogram is damaged: {0}")]
    Histogram(String),
    /// The outcomes do not add up to the schedule: a defect of loadline.
    #[error(
        "{scheduled} requests were scheduled but {accounted} are accounted for; this is a defect, please report it"
    )]
    Accounting { scheduled: u64, accounted: u64 },
    #[error("a generator thread panicked; this is a defect, please report it")]
    Panicked,
}

pub fn split_refusal(refusal: &str) -> (&str, Option<&str>) {
    match refusal.rsplit_once("; ") {
        Some((said, next)) => (said, Some(next)),
        None => (refusal, None),
    }
}

impl LoadError {
    pub fn load_hint(&self) -> Option<&str> {
        match self {
            Self::Part { hint, .. } => Some(hint),
            Self::System { hint, .. } => Some(hint),
            Self::Namespace { .. } => Some("it needs CAP_SYS_ADMIN and a running application"),
            Self::UnknownHost { .. } => Some(
                "check the spelling; names of containers and of services in a cluster are known only there",
            ),
            Self::Target { .. } => Some("is the server running and listening there?"),
            _ => None,
        }
    }

    pub(crate) fn plan(field: &'static str, why: impl Into<String>) -> Self {
        let why = why.into();
        Self::Plan { field, why }
    }

    pub(crate) fn from_system_call(
        call: &'static str,
        hint: &'static str,
    ) -> impl Fn(Errno) -> Self {
        move |errno| Self::System { call, errno, hint }
    }
}
