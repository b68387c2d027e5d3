//! Objectives about the burst behind the judged load: `peak p99<500ms`, `peak errors<1%`.

use super::parse::parse_objective;
use super::{Objective, ParseSloError};

const WORD: &str = "peak";

/// `None` where the text is about something else.
pub(super) fn parse_peak_objective(text: &str) -> Result<Option<Objective>, ParseSloError> {
    let rest = text.trim().strip_prefix(WORD);
    let Some(rest) = rest.filter(|rest| rest.starts_with(char::is_whitespace)) else {
        return Ok(None);
    };
    match parse_objective(rest)? {
        objective @ (Objective::Latency { .. }
        | Objective::MaxLatency { .. }
        | Objective::Errors { .. }) => Ok(Some(objective)),
        _ => {
            let why = "only latencies and errors have a bound at the peak";
            Err(ParseSloError::new(text, why))
        }
    }
}

/// `peak p99<500ms`, as it parses.
pub fn print_peak_objective(objective: &Objective) -> String {
    format!("{WORD} {objective}")
}

#[cfg(test)]
mod tests {
    use crate::slo::Slo;

    #[test]
    fn a_peak_has_objectives_apart_from_those_of_the_load() {
        let text = "p99<50ms,errors<0.1%,peak p99<500ms,peak errors<2%,peak max<1s";
        let slo: Slo = text.parse().expect("an SLO");
        assert_eq!((slo.objectives.len(), slo.peak.len()), (2, 3));
        assert_eq!(slo.to_string(), text);
        let bare: Slo = "peak errors<2%".parse().expect("an SLO");
        assert_eq!(bare.to_string(), "errors<1%,peak errors<2%");
        let why = |text: &str| text.parse::<Slo>().expect_err(text).why;
        let wanted = "only latencies and errors have a bound at the peak";
        assert_eq!(why("peak start<20s"), wanted);
        assert_eq!(why("peak exit=0"), wanted);
        assert!(why("peak p99=5ms").contains("did you mean `p99<5ms`?"));
        assert!(why("peaks<5ms").contains("not one of p50"));
    }
}
