//! Which CPUs the threads of the generator may be put on.
//!
//! Owns the check before the load: a thread that cannot have its CPU would end while the others
//! make their part of the schedule to its end.

use std::fmt::Write;

use loadline_sys::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::LoadError;

/// Refuses CPUs that do not exist or that this process may not use. Errors: [`LoadError::Plan`]
/// names the first such CPU and the allowed ones; [`LoadError::System`] when the kernel refuses to
/// say.
pub(crate) fn check_cpus(cpus: &[u32]) -> Result<(), LoadError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let allowed = allowed_cpus()?;
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => {
            let ranges = format_ranges(&allowed);
            let why = format!(
                "CPU {cpu} does not exist or is not allowed here; --cpus may name {ranges}"
            );
            Err(LoadError::plan("cpus", why))
        }
    }
}

/// The CPUs that the calling thread can be put on. The affinity mask may have fewer: a process
/// started with `taskset` may leave its CPUs again, but not those of its cpuset. Requesting all
/// CPUs yields the possible ones.
fn allowed_cpus() -> Result<Vec<u32>, LoadError> {
    let get = || {
        let hint = "a seccomp profile may forbid it";
        sched_getaffinity(None).map_err(LoadError::from_system_call("sched_getaffinity", hint))
    };
    let set = |cpus: &CpuSet| {
        let hint = "a seccomp profile may forbid it; without --cpus it is not needed";
        sched_setaffinity(None, cpus)
            .map_err(LoadError::from_system_call("sched_setaffinity", hint))
    };
    let before = get()?;
    let mut all = CpuSet::new();
    for cpu in 0..CpuSet::MAX_CPU {
        all.set(cpu);
    }
    set(&all)?;
    let allowed = get();
    set(&before)?;
    let allowed = allowed?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    Ok(cpus.map(|cpu| cpu as u32).collect())
}

fn format_ranges(cpus: &[u32]) -> String {
    let mut text = String::new();
    for run in cpus.chunk_by(|a, b| a + 1 == *b) {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = match run {
            [one] => write!(text, "{comma}{one}"),
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            [] => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_not_there_is_refused_with_those_that_are() {
        let before = sched_getaffinity(None).expect("a thread may ask");
        let known = allowed_cpus().expect("the kernel says");
        assert!(check_cpus(&known).is_ok());
        for missing in [1023, 5000] {
            let error = check_cpus(&[known[0], missing]).expect_err("no machine has it");
            let text = error.to_string();
            assert!(text.contains(&format!("CPU {missing} ")), "{text}");
            assert!(text.contains("--cpus"), "{text}");
            assert!(text.contains(&format_ranges(&known)), "{text}");
        }
        assert_eq!(sched_getaffinity(None), Ok(before), "it stays where it was");
    }

    #[test]
    fn a_thread_that_was_put_on_one_cpu_may_leave_it() {
        let known = allowed_cpus().expect("the kernel says");
        let mut one = CpuSet::new();
        one.set(known[0] as usize);
        sched_setaffinity(None, &one).expect("it is allowed");
        assert_eq!(allowed_cpus().expect("the kernel says"), known);
    }

    #[test]
    fn cpus_are_named_as_the_flag_takes_them() {
        assert_eq!(format_ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(format_ranges(&[3]), "3");
    }
}
