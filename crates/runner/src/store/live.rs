//! Running results, and how to stop them: for observers in another process.
//!
//! Changes nothing in the store. The owner of a row is a process of this machine, found by the
//! identity in the row, so that no other process with its number is ever signalled.

use std::path::Path;

use loadline_analysis::record::TrialPurpose;
use loadline_cgroup::GroupName;
use loadline_sys::{PidfdFlags, pidfd_open, pidfd_send_signal};
use rusqlite::Row;
use rustix::process::{Pid, Signal};

use super::{ResultRow, ResultStatus, Store, Stored, UnfinishedTrial, is_alive};

impl Store {
    pub fn running_results(&self) -> Stored<Vec<ResultRow>> {
        let mut found = self.select("WHERE status = '\"running\"' ORDER BY rowid DESC", [])?;
        found.rows.retain(|row| row.status == ResultStatus::Running);
        Ok(found.rows)
    }

    pub fn running_trials(&self, result: &str) -> Stored<Vec<(TrialPurpose, UnfinishedTrial)>> {
        self.trials_in_state(result, "running")
    }

    /// Results and finished trials so far: grows with every change that a list would show, but for
    /// where results stand.
    pub fn row_counts(&self) -> Stored<(u64, u64)> {
        let sql = "SELECT (SELECT count(*) FROM result), (SELECT count(*) FROM trial WHERE state = 'finished')";
        let both = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let counted: (i64, i64) = self.check_sql(self.connection.query_row(sql, [], both))?;
        Ok((counted.0.cast_unsigned(), counted.1.cast_unsigned()))
    }

    /// Asks the loadline that runs a result to end, as Ctrl-C does: finished trials stay, and
    /// `resume` goes on. `false` when no process runs it, or it cannot be signalled from here.
    pub fn stop_result(&self, result: &str) -> Stored<bool> {
        let sql = "SELECT owner FROM result WHERE id = ?1 AND status = '\"running\"'";
        let owner: Option<String> = self.find_value(sql, [result])?;
        Ok(owner.is_some_and(|owner| interrupt(&owner)))
    }
}

fn interrupt(owner: &str) -> bool {
    let held = || {
        let name = owner.parse::<GroupName>().ok()?;
        let pid = Pid::from_raw(i32::try_from(name.pid).ok()?)?;
        Some((name, pidfd_open(pid, PidfdFlags::empty()).ok()?))
    };
    let Some((name, process)) = held() else {
        return false;
    };
    // Looked at once more with the process held: its number cannot be another's any more. One of
    // another PID namespace counts as alive, but its number means nothing here.
    let is_ours = GroupName::new(Path::new("/proc"), &name.trial)
        .is_ok_and(|own| own.namespace == name.namespace);
    is_ours && is_alive(owner) && pidfd_send_signal(process, Signal::INT).is_ok()
}
