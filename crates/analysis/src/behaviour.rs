//! The behaviour of a JVM as a result recorded it, as input for rules.
//!
//! Owns which part of which record is which input, and the names of missing inputs. The last look
//! of a soak holds the JVM's own account of its memory: live heap, metaspace, direct buffers, code
//! cache and threads, as resident pages, not as reserved ones. The rates come from its GC log over
//! the whole trial. Only soaks ask the JVM for these.

use std::time::Duration;

use loadline_sizing::Bytes;
use loadline_sizing::compat::rightsize::RightsizeInput;

use crate::record::{TrialPhase, TrialRecord};

pub fn read_longest_soak(trials: &[TrialRecord]) -> Result<RightsizeInput, String> {
    let soaks = trials.iter().filter(|t| t.evidence.soak.is_some());
    let Some(trial) = soaks.max_by_key(|t| observed_time(t)) else {
        return Err("the result has no soak, and only a soak asks the JVM for its live heap, metaspace, direct buffers, code cache and threads".to_owned());
    };
    if trial.configuration.instances > 1 {
        return Err("the soak is of several instances, and the rule is for one JVM".to_owned());
    }
    let evidence = &trial.evidence;
    let look = evidence.soak.as_ref().and_then(|soak| soak.looks.last());
    let look = look.ok_or("the JVM of the soak could not be asked for its memory")?;
    let gc = evidence.gc.as_ref().ok_or("the soak has no GC log")?;
    let missing = |what: &str| format!("the soak does not tell the {what}");
    let observed = observed_time(trial);
    let seconds = observed.as_secs_f64().max(f64::MIN_POSITIVE);
    let rate = |bytes: Option<Bytes>, what| {
        let bytes = bytes.ok_or_else(|| missing(what))?;
        Ok::<f64, String>(bytes.as_bytes() as f64 / seconds)
    };
    Ok(RightsizeInput {
        live: look.live_heap.ok_or_else(|| missing("live heap"))?,
        metaspace: look.metaspace,
        direct: look.direct.unwrap_or_default(),
        code_cache: look.code_cache,
        threads: look.threads,
        allocation: rate(gc.allocated, "allocation rate")?,
        promotion: rate(gc.promoted, "promotion rate")?,
        observed,
        collections: gc.pauses,
    })
}

fn observed_time(trial: &TrialRecord) -> Duration {
    let phases = &trial.evidence.phases;
    let outside = [TrialPhase::Prepare, TrialPhase::Stop];
    let inside = || phases.iter().filter(|span| !outside.contains(&span.phase));
    let begin = inside().map(|span| span.start).min();
    let end = inside().map(|span| span.end).max();
    let nanos = begin.zip(end).map(|(begin, end)| end.saturating_sub(begin));
    Duration::from_nanos(nanos.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{
        GcEvidence, PhaseSpan, SoakEvidence, SoakLook, TrialPurpose, TrialVerdict,
    };

    fn soak() -> TrialRecord {
        let mut trial = fixture::trial_record("t", TrialPurpose::Matrix, 64, TrialVerdict::Pass);
        let span = |phase, from: u64, to: u64| PhaseSpan {
            phase,
            start: from * 1_000_000_000,
            end: to * 1_000_000_000,
        };
        trial.evidence.phases = vec![
            span(TrialPhase::Prepare, 0, 10),
            span(TrialPhase::Start, 10, 20),
            span(TrialPhase::Measure, 20, 110),
            span(TrialPhase::Stop, 110, 200),
        ];
        trial.evidence.gc = Some(GcEvidence {
            pauses: 7,
            allocated: Some(Bytes::from_mib(3000)),
            promoted: Some(Bytes::from_mib(100)),
            ..fixture::empty_gc_log()
        });
        trial.evidence.soak = Some(SoakEvidence {
            looks: vec![SoakLook {
                live_heap: Some(Bytes::from_mib(20)),
                metaspace: Bytes::from_mib(30),
                threads: 40,
                ..SoakLook::default()
            }],
            ..SoakEvidence::default()
        });
        trial
    }

    #[test]
    fn a_soak_has_every_input() {
        let input = read_longest_soak(&[soak()]).expect("a soak");
        assert_eq!((input.live, input.threads), (Bytes::from_mib(20), 40));
        assert_eq!(input.observed, Duration::from_secs(100));
        assert_eq!(input.allocation, 30.0 * 1_048_576.0);
        assert_eq!((input.promotion, input.collections), (1_048_576.0, 7));
    }

    #[test]
    fn what_is_missing_is_named() {
        let refused = |change: fn(&mut TrialRecord)| {
            let mut trial = soak();
            change(&mut trial);
            read_longest_soak(&[trial]).expect_err("something is missing")
        };
        assert!(refused(|t| t.evidence.soak = None).contains("has no soak"));
        assert!(refused(|t| t.configuration.instances = 2).contains("several instances"));
        assert!(refused(|t| t.evidence.gc = None).contains("no GC log"));
        let without = refused(|t| t.evidence.gc.as_mut().expect("it has one").promoted = None);
        assert!(without.contains("promotion rate"), "{without}");
    }
}
