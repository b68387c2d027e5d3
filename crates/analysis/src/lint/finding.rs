//! A problem in a container's settings, and its remedy.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding {
    pub severity: Severity,
    pub problem: String,
    pub hint: String,
}

pub(super) fn finding(severity: Severity, problem: String, hint: &str) -> LintFinding {
    LintFinding {
        severity,
        problem,
        hint: hint.to_owned(),
    }
}
