//! The flags of a job (a program that ends), laid over a file.

use loadline_experiment::ValueWithOrigin;
use loadline_experiment::wire::AppTable;

use super::flags::{CommandWords, ExperimentFlags};

/// Whether such a flag is given.
pub(super) fn overlay_run(app: &mut AppTable, flags: &ExperimentFlags) -> bool {
    if flags.job {
        app.ends = Some(true);
    }
    if let Some(CommandWords(words)) = &flags.reset {
        app.reset.clone_from(words);
    }
    if !flags.fresh.is_empty() {
        app.fresh = Some(flags.fresh.clone());
    }
    if let Some(to) = &flags.options_to {
        app.options_to = Some(ValueWithOrigin::from_flag("--options-to", to.clone()));
    }
    let has_expected = flags.expect_output.is_some() || flags.expect_file.is_some();
    if has_expected {
        let expect = app.expect.get_or_insert_default();
        expect.output = flags.expect_output.clone().or(expect.output.take());
        expect.file = flags.expect_file.clone().or(expect.file.take());
    }
    let has_files = flags.reset.is_some() || !flags.fresh.is_empty();
    flags.job || has_files || flags.options_to.is_some() || has_expected
}
