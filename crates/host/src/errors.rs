//! How failures of the machinery become [`BackendError`]s: what, why and what to do about it.

use loadline_cgroup::CgroupError;

use loadline_trial::Refusal;

use crate::backend::BackendError;

/// "This machine cannot."
pub(super) fn unable(what: &str, why: impl ToString, hint: &str) -> BackendError {
    Refusal::new(what, why, hint).into()
}

/// The same from a cgroup error, which brings its own hint in its text.
pub(super) fn cgroup_unable(what: &str, error: &CgroupError) -> BackendError {
    let text = error.to_string();
    let (why, hint) = text
        .split_once("\nhint: ")
        .unwrap_or((&text, "`loadline doctor` shows what this machine can do"));
    unable(what, why, hint)
}
