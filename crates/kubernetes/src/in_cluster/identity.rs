//! Who a controller is: what its pod tells it of itself, in variables.

pub(crate) const OF_RESULT: &str = "LOADLINE_RESULT";
pub(crate) const OF_UID: &str = "LOADLINE_JOB_UID";
pub(crate) const OF_POD: &str = "LOADLINE_POD";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerPod {
    pub result: String,
    pub uid: String,
    pub pod: String,
}

impl ControllerPod {
    pub fn of_process() -> Option<Self> {
        let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        Some(Self {
            result: variable(OF_RESULT)?,
            uid: variable(OF_UID)?,
            pod: variable(OF_POD)?,
        })
    }
}
