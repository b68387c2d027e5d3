//! The search as people read it.

use std::fmt;

use super::{CurvePoint, MaxRateResult, MaxRateTrial};

/// The head of the trials' table; one [`MaxRateTrial::trial_row`] follows for each.
pub const TRIALS_HEAD: &str = "   offered/s   achieved/s        p50        p99   failed  verdict";

impl MaxRateTrial {
    pub fn trial_row(&self) -> String {
        let kept = self.broke.iter().filter(|b| b.is_none()).count();
        let verdict = match (&self.saturated, kept == self.broke.len()) {
            (Some(reason), _) => format!("not valid: {reason}"),
            (None, true) => "kept".to_owned(),
            (None, false) if self.broke.len() > 1 => {
                format!("kept {kept} of {} SLOs", self.broke.len())
            }
            (None, false) => {
                let broke = self.broke.first().and_then(Option::as_deref);
                format!("broke {}", broke.unwrap_or_default())
            }
        };
        format!(
            "  {:>10.1}   {:>10.1} {:>10} {:>10} {:>8}  {verdict}{}",
            self.offered_rate,
            self.achieved_rate,
            time_cell(self.p50_us),
            time_cell(self.p99_us),
            self.failed,
            if self.ended_early {
                ", ended early"
            } else {
                ""
            }
        )
    }
}

impl fmt::Display for MaxRateResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trials = match self.trials.len() {
            1 => "1 trial".to_owned(),
            n => format!("{n} trials"),
        };
        writeln!(
            out,
            "  {trials}; closed model, for comparison: {:.1}/s",
            self.ceiling
        )?;
        for goal in &self.goals {
            match goal.rate {
                Some(rate) => write!(out, "  {}: carried {rate:.1}/s", goal.slo)?,
                None if goal.too_high.is_none() => write!(out, "  {}: not known", goal.slo)?,
                None => write!(out, "  {}: no rate was carried", goal.slo)?,
            }
            if let Some(too_high) = goal.too_high {
                write!(out, ", too high {too_high:.1}/s")?;
            }
            match &goal.broke {
                Some(broke) => writeln!(out, " where {broke}")?,
                None => writeln!(out)?,
            }
        }
        if let (Some(critical), true) = (self.critical_rate, self.goals.len() > 1) {
            writeln!(out, "  critical rate (geometric mean): {critical:.1}/s")?;
        }
        if let Some(reason) = &self.incomplete {
            writeln!(out, "  not complete: {reason}")?;
        }
        if !self.curve.is_empty() {
            writeln!(
                out,
                "\n   load    offered/s   achieved/s        p50        p90        p99        max"
            )?;
        }
        for point in &self.curve {
            writeln!(out, "{}", point_row(point))?;
        }
        Ok(())
    }
}

fn point_row(point: &CurvePoint) -> String {
    format!(
        "  {:>4.0}%   {:>10.1}   {:>10.1} {:>10} {:>10} {:>10} {:>10}",
        point.share * 100.0,
        point.offered_rate,
        point.achieved_rate,
        time_cell(point.p50_us),
        time_cell(point.p90_us),
        time_cell(point.p99_us),
        time_cell(point.max_us)
    )
}

fn time_cell(us: Option<f64>) -> String {
    us.map_or("failed".to_owned(), |us| format!("{:.2} ms", us / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::max_rate::GoalAnswer;

    #[test]
    fn the_answer_names_both_bounds_and_what_broke() {
        let found = MaxRateResult {
            schema: 2,
            ceiling: 1200.0,
            goals: vec![GoalAnswer {
                slo: "p99<20ms,errors<1%".to_owned(),
                rate: Some(980.0),
                too_high: Some(1005.0),
                broke: Some("p99 84ms (p99<20ms)".to_owned()),
            }],
            critical_rate: Some(980.0),
            trials: Vec::new(),
            curve: vec![CurvePoint {
                share: 0.5,
                offered_rate: 490.0,
                achieved_rate: 489.9,
                p50_us: Some(1200.0),
                p90_us: Some(3400.0),
                p99_us: None,
                max_us: Some(17_800.0),
            }],
            incomplete: None,
        };
        insta::assert_snapshot!(found.to_string(), @"
        0 trials; closed model, for comparison: 1200.0/s
        p99<20ms,errors<1%: carried 980.0/s, too high 1005.0/s where p99 84ms (p99<20ms)

         load    offered/s   achieved/s        p50        p90        p99        max
          50%        490.0        489.9    1.20 ms    3.40 ms     failed   17.80 ms
        ");
    }
}
