//! The search as people read it.

use std::fmt::Write;

use super::{Found, Trial};

/// The head of the trials' table; one [`Trial::row`] follows for each.
pub const TRIALS_HEAD: &str = "   offered/s   achieved/s        p50        p99   failed  verdict";

impl Trial {
    /// One row of the trials' table.
    pub fn row(&self) -> String {
        let time =
            |us: Option<f64>| us.map_or("failed".to_owned(), |us| format!("{:.2} ms", us / 1e3));
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
            time(self.p50_us),
            time(self.p99_us),
            self.failed,
            if self.ended_early {
                ", ended early"
            } else {
                ""
            }
        )
    }
}

impl Found {
    /// The answers, without the table of trials.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "  closed model, for comparison: {:.1}/s", self.ceiling)?;
        for goal in &self.goals {
            match goal.rate {
                Some(rate) => write!(out, "  {}: carried {rate:.1}/s", goal.slo)?,
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
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::max_rate::GoalFound;

    #[test]
    fn the_answer_names_both_bounds_and_what_broke() {
        let found = Found {
            schema: 1,
            ceiling: 1200.0,
            goals: vec![GoalFound {
                slo: "p99<20ms,errors<1%".to_owned(),
                rate: Some(980.0),
                too_high: Some(1005.0),
                broke: Some("p99 84ms (p99<20ms)".to_owned()),
            }],
            critical_rate: Some(980.0),
            trials: Vec::new(),
            incomplete: None,
        };
        insta::assert_snapshot!(found.text(), @"
        closed model, for comparison: 1200.0/s
        p99<20ms,errors<1%: carried 980.0/s, too high 1005.0/s where p99 84ms (p99<20ms)
        ");
    }
}
