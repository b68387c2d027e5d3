//! What can stop a load run: never a failed request, only a plan or a machine that cannot.

use std::path::PathBuf;

use rustix::io::Errno;

/// A load run that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan contradicts itself.
    #[error("{field}: {why}")]
    Plan {
        /// The field of the plan or the flag of the same name.
        field: &'static str,
        /// What is wrong, with what would be right.
        why: String,
    },
    /// The files of `merge` are not the parts of one load.
    #[error("part: {why}")]
    Part {
        /// What is wrong.
        why: String,
        /// What to give instead.
        hint: String,
    },
    /// A system call that every run needs failed.
    #[error("{call} failed: {errno}")]
    System {
        /// The call.
        call: &'static str,
        /// Its errno.
        errno: Errno,
        /// What to check.
        hint: &'static str,
    },
    /// The network namespace of the target cannot be entered.
    #[error("{path}: cannot enter the network namespace: {errno}")]
    Namespace {
        /// File of the namespace, such as `/proc/PID/ns/net`.
        path: PathBuf,
        /// Why.
        errno: Errno,
    },
    /// Nothing answers at the target.
    #[error("{authority}: {why}")]
    Target {
        /// Host and port as given.
        authority: String,
        /// Why not.
        why: String,
    },
    /// The name of the target's host is not known on this machine.
    #[error("{authority}: the name of the host is not known here: {why}")]
    UnknownHost {
        /// Host and port as given.
        authority: String,
        /// What the resolver said.
        why: String,
    },
    /// The order on standard input is no order.
    #[error("the order on standard input is not valid: {0}")]
    Order(serde_json::Error),
    /// The messages cannot be written.
    #[error("standard output: {0}")]
    Output(std::io::Error),
    /// A generator elsewhere cannot make its part.
    #[error("the generator {name}: {why}")]
    Generator {
        /// Its name.
        name: String,
        /// Why not.
        why: String,
    },
    /// A histogram of another process cannot be read.
    #[error("the histogram is damaged: {0}")]
    Histogram(String),
    /// The outcomes do not add up to the schedule: a defect of loadline.
    #[error(
        "{scheduled} requests were scheduled but {accounted} are accounted for; this is a defect, please report it"
    )]
    Accounting {
        /// Requests that became due.
        scheduled: u64,
        /// Sum of all outcomes.
        accounted: u64,
    },
    /// A thread of the generator ended without a result: a defect of loadline.
    #[error("a generator thread panicked; this is a defect, please report it")]
    Panicked,
}

/// A refusal of a load says what is wrong, then what to write: the two apart, where it has both.
pub fn split_refusal(refusal: &str) -> (&str, Option<&str>) {
    match refusal.rsplit_once("; ") {
        Some((said, next)) => (said, Some(next)),
        None => (refusal, None),
    }
}

impl LoadError {
    /// What to do about it, where the message does not say it.
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

    pub(crate) fn from_system_call(
        call: &'static str,
        hint: &'static str,
    ) -> impl Fn(Errno) -> Self {
        move |errno| Self::System { call, errno, hint }
    }
}
