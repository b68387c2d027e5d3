//! `load passes`: the objective about the exit code of the command that makes the load.
//!
//! Owns its text, and which code means that the command's own thresholds were missed.

use std::fmt;

use super::{Objective, Slo};

pub(super) const LOAD_PASSES: &str = "load passes";

/// `load passes`, `load passes unless 99`; `None` where the text is about something else.
pub(super) fn parse_load_passes(text: &str) -> Option<Result<Objective, &'static str>> {
    let unless = text.strip_prefix(LOAD_PASSES)?;
    let named = unless.trim().strip_prefix("unless");
    let named = named.and_then(|code| code.trim().parse::<u8>().ok());
    let code = if unless.is_empty() { Some(1) } else { named };
    let code = code.filter(|code| *code > 0);
    let passes = code.map(|fails_with| Objective::LoadPasses { fails_with });
    Some(passes.ok_or("an exit code that means failure is 1 to 255: load passes unless 99"))
}

pub(super) fn write_load_passes(fails_with: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fails_with {
        1 => f.write_str(LOAD_PASSES),
        code => write!(f, "{LOAD_PASSES} unless {code}"),
    }
}

impl Slo {
    /// The exit code with which the load command says that its thresholds were missed; `None` where
    /// the code is not judged.
    pub fn failing_exit(&self) -> Option<u8> {
        let code = |objective: &Objective| match objective {
            Objective::LoadPasses { fails_with } => Some(*fails_with),
            _ => None,
        };
        self.objectives.iter().find_map(code)
    }
}
