//! `run.samples`: how often the counters of the application's cgroup are read.

use std::time::Duration;

use loadline_protocol::SamplingRate;

use super::super::checked::Checked;
use super::super::error::ExperimentSource;
use super::super::said::Text;

/// Closer samples cost more than they tell; seconds are cut from samples at most 100 ms apart.
const SAMPLES_RANGE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// `period`, the default, or a distance.
pub(super) fn sampling(
    text: Option<&Text>,
    source: &ExperimentSource<'_>,
) -> Checked<SamplingRate> {
    let Some(text) = text.filter(|text| text.trim() != "period") else {
        return Ok(SamplingRate::Period);
    };
    let distance = source.positive_time(Some(text), SAMPLES_RANGE.1, "samples")?;
    if distance < SAMPLES_RANGE.0 || distance > SAMPLES_RANGE.1 {
        let problem = format!("samples = {text} is out of range");
        return Err(source.error_at(text, problem, "write period, or 1ms to 100ms"));
    }
    Ok(SamplingRate::Every(distance))
}
