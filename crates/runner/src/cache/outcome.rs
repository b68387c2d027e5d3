//! Reads the evidence of a training run: whether it left a cache, for what, and why not.

use std::time::Duration;

use loadline_analysis::record::{Evidence, InvalidReason, StartCache};

use super::{CacheError, WRITTEN, shared};

/// Ready and then ended, or exited with success (`spring.context.exit=onRefresh`).
pub(super) fn is_trained(evidence: &Evidence) -> bool {
    let exit = &evidence.exit;
    if exit.before_stop {
        exit.code == Some(0)
    } else {
        evidence.start.ready.is_some() && !exit.unclean_stop
    }
}

pub(super) fn collector_of_evidence(evidence: &Evidence) -> String {
    let name = evidence.gc.as_ref().map(|gc| gc.collector.clone());
    name.unwrap_or_else(|| "unknown".to_owned())
}

/// JDK 17 and later: `[gc,init] Compressed Oops: Enabled (32-bit)`; OpenJ9 an attribute. Where the log does not say, all
/// collectors but ZGC compress.
pub(super) fn has_compressed_oops(log: &str, evidence: &Evidence) -> bool {
    const SAID: [&str; 2] = ["Compressed Oops: ", "name=\"compressedRefs\" value=\""];
    let after = |line: &str, said: &str| Some(line.split_once(said)?.1.to_owned());
    let of = |line: &str| SAID.iter().find_map(|said| after(line, said));
    match log.lines().find_map(of) {
        Some(state) => state.starts_with("Enabled") || state.starts_with("true"),
        None => collector_of_evidence(evidence) != "ZGC",
    }
}

pub(super) fn training_length(evidence: &Evidence) -> Duration {
    let begin = evidence.phases.iter().map(|span| span.start).min();
    let end = evidence.phases.iter().map(|span| span.end).max();
    let nanos = begin.zip(end).map(|(begin, end)| end.saturating_sub(begin));
    Duration::from_nanos(nanos.unwrap_or_default())
}

pub(super) fn not_written(wanted: StartCache, evidence: &Evidence) -> CacheError {
    let output = last_lines(&evidence.last_output);
    let mut lines = evidence.last_output.iter();
    if lines.any(|line| line.contains(shared::NO_ROOM)) {
        return CacheError::NotWritten {
            kind: wanted.kind,
            why: "its disk has less space than the JVM asks for first".to_owned(),
            output,
            hint: "free some space on the disk of the state directory, or choose another: --state DIR",
        };
    }
    if let Some(failure) = &evidence.failure {
        let why = failure.detail.clone();
        return match failure.cause {
            InvalidReason::OtherOptions => CacheError::NotWritten {
                kind: wanted.kind,
                why,
                output,
                hint: "let the image's start script append its options to JAVA_TOOL_OPTIONS",
            },
            _ => CacheError::NeverReady { why, output },
        };
    }
    let exit = &evidence.exit;
    let ended = match (exit.before_stop, exit.code, exit.signal) {
        (true, Some(code), _) => Some(format!("it ended with code {code}")),
        (true, None, Some(signal)) => Some(format!("signal {signal} ended it")),
        _ => None,
    };
    if evidence.start.ready.is_none() && !is_trained(evidence) {
        let start = &evidence.start;
        let why =
            ended.unwrap_or_else(|| format!("{} after {:?}", start.last_probe, start.deadline));
        return CacheError::NeverReady { why, output };
    }
    let missing = evidence.warnings.iter().find(|w| w.contains(WRITTEN));
    let why = match (ended, exit.unclean_stop, missing) {
        (Some(how), ..) => how,
        (None, true, _) => "it did not exit on SIGTERM".to_owned(),
        (None, false, Some(warning)) => warning.clone(),
        (None, false, None) => "its file is missing".to_owned(),
    };
    CacheError::NotWritten {
        kind: wanted.kind,
        why,
        output,
        hint: "the application must exit on SIGTERM (a start script must exec it), and the disk of the state directory must have room (--state DIR)",
    }
}

pub(super) fn last_lines(lines: &[String]) -> String {
    const SHOWN: usize = 8;
    // Its own output, not the threads that were requested.
    let dump = lines.iter().position(|l| l.contains("Full thread dump"));
    let lines = &lines[..dump.unwrap_or(lines.len())];
    let last = lines.iter().skip(lines.len().saturating_sub(SHOWN));
    last.map(|line| format!("\n  | {line}")).collect()
}

#[cfg(test)]
mod tests {
    use loadline_analysis::record::{MeasurementFailure, StartEvidence};
    use loadline_jvm::cache::CacheKind;

    use super::*;

    const APPCDS: StartCache = StartCache {
        kind: CacheKind::AppCds,
        requests: 20,
    };

    #[test]
    fn the_log_says_whether_references_are_compressed() {
        let evidence = Evidence::default();
        let line = |state: &str| format!("[0.1s][1ns][info][gc,init] Compressed Oops: {state}\n");
        assert!(has_compressed_oops(&line("Enabled (32-bit)"), &evidence));
        assert!(!has_compressed_oops(&line("Disabled"), &evidence));
        assert!(has_compressed_oops("", &evidence));
    }

    #[test]
    fn an_application_that_is_never_ready_is_shown_with_its_last_words() {
        let evidence = Evidence {
            start: StartEvidence {
                deadline: Duration::from_secs(60),
                last_probe: "connection refused".to_owned(),
                ..StartEvidence::default()
            },
            last_output: (0..20).map(|n| format!("line {n}")).collect(),
            ..Evidence::default()
        };
        let error = not_written(APPCDS, &evidence);
        let text = error.to_string();
        assert!(
            text.starts_with(
                "the training run was never ready: connection refused after 60s\n  | line 12\n"
            ),
            "{text}"
        );
        assert!(error.cache_hint().contains("--start-deadline"), "{error:?}");
    }

    #[test]
    fn a_start_script_that_drops_the_options_is_told_of() {
        let evidence = Evidence::failed(MeasurementFailure::new(
            InvalidReason::OtherOptions,
            "the JVM runs without it",
        ));
        let error = not_written(APPCDS, &evidence);
        let text = error.to_string();
        assert!(
            text.contains("no appcds cache: the JVM runs without it"),
            "{text}"
        );
        assert!(
            error.cache_hint().contains("JAVA_TOOL_OPTIONS"),
            "{error:?}"
        );
    }

    #[test]
    fn a_run_counts_when_it_was_ready_or_ended_well() {
        let mut evidence = Evidence::default();
        assert!(!is_trained(&evidence));
        evidence.exit.before_stop = true;
        evidence.exit.code = Some(0);
        assert!(is_trained(&evidence), "spring.context.exit=onRefresh");
        evidence.exit.code = Some(1);
        assert!(!is_trained(&evidence));
        evidence.start.ready = Some(Duration::from_secs(1));
        assert!(!is_trained(&evidence), "it crashed in the middle");
        evidence.exit = Default::default();
        assert!(is_trained(&evidence));
    }

    #[test]
    fn a_disk_without_room_for_a_shared_class_cache_is_told() {
        let said = "JVMSHRC561E Failed to initialize the shared classes cache, there is not enough space in the file system. Available free disk space bytes = 25042944, requested bytes = 83886080.";
        let evidence = Evidence {
            last_output: vec![said.to_owned()],
            ..Evidence::default()
        };
        let error = not_written(APPCDS, &evidence);
        assert!(error.to_string().contains("requested bytes"), "{error}");
        assert!(error.cache_hint().contains("--state DIR"), "{error:?}");
    }

    #[test]
    fn an_application_that_ignores_sigterm_writes_no_cache() {
        let mut evidence = Evidence::default();
        evidence.start.ready = Some(Duration::from_secs(1));
        evidence.exit.unclean_stop = true;
        let text = not_written(APPCDS, &evidence).to_string();
        assert!(
            text.contains("no appcds cache: it did not exit on SIGTERM"),
            "{text}"
        );
    }
}
