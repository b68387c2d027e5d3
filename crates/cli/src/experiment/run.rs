//! The flags of a job (a program that ends), laid over a file.

use loadline_experiment::wire::AppTable;

use super::flags::{CommandWords, ExperimentFlags};

pub(super) fn overlay_run(app: &mut AppTable, flags: &ExperimentFlags) -> bool {
    let before = app.clone();
    if flags.job {
        app.ends = Some(true);
    }
    if let Some(CommandWords(words)) = &flags.reset {
        app.reset.clone_from(words);
    }
    if !flags.fresh.is_empty() {
        app.fresh = Some(flags.fresh.clone());
    }
    if flags.expect_output.is_some() || flags.expect_file.is_some() {
        let expect = app.expect.get_or_insert_default();
        expect.output = flags.expect_output.clone().or(expect.output.take());
        expect.file = flags.expect_file.clone().or(expect.file.take());
    }
    (before.ends, before.reset, before.fresh, before.expect)
        != (
            app.ends,
            app.reset.clone(),
            app.fresh.clone(),
            app.expect.clone(),
        )
}
