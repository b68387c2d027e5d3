//! Who a controller is: what its pod tells it of itself, in variables.

/// Variable with the result of a controller.
pub(crate) const OF_RESULT: &str = "LOADLINE_RESULT";
/// Variable with the uid of its Job.
pub(crate) const OF_UID: &str = "LOADLINE_JOB_UID";
/// Variable with the name of its pod.
pub(crate) const OF_POD: &str = "LOADLINE_POD";

/// A controller, as its pod knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerPod {
    /// The result.
    pub result: String,
    /// The uid of its Job.
    pub uid: String,
    /// Its pod.
    pub pod: String,
}

impl ControllerPod {
    /// This process, if it is one.
    pub fn of_process() -> Option<Self> {
        let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        Some(Self {
            result: variable(OF_RESULT)?,
            uid: variable(OF_UID)?,
            pod: variable(OF_POD)?,
        })
    }
}
