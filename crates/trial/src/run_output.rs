//! What the output of a run says about its end.
//!
//! Owns the words, and the search where a kubelet or an engine keeps the output. It has the exit code,
//! too: until then any end of such a run counts as success.

use loadline_analysis::foreign_text::indented_line;
use loadline_analysis::record::{Evidence, InvalidReason, MeasurementFailure, RunEvidence};
use loadline_protocol::{RunSpec, TrialOrder};

/// By these words a JVM says that it ran out of memory, whatever becomes of the run.
pub(crate) const OUT_OF_MEMORY: &str = "java.lang.OutOfMemoryError";

/// With `-q` Maven says no more than `Java heap space` and this end of a link.
pub(crate) const MAVEN_OUT_OF_MEMORY: &str = "/MAVEN/OutOfMemoryError";

const NOT_SEEN: &str =
    "the run ended, but its container's status did not say how, or its start was missed";

pub(crate) fn lacks_text(text: &str) -> String {
    format!("no line of its output contains `{text}`")
}

/// The search through a run's output where a kubelet or an engine keeps it.
#[derive(Debug)]
pub struct RunOutput<'a> {
    spec: &'a RunSpec,
    secrets: &'a [String],
    out_of_memory: Option<String>,
    has_text: bool,
}

impl<'a> RunOutput<'a> {
    /// `None` if the application is a service.
    pub fn for_order(order: &'a TrialOrder) -> Option<Self> {
        Some(Self {
            spec: order.run.as_ref()?,
            secrets: &order.secrets,
            out_of_memory: None,
            has_text: false,
        })
    }

    pub fn take_line(&mut self, line: &str) {
        let text = self.spec.output.as_ref();
        self.has_text |= text.is_some_and(|text| line.contains(text));
        let mut lacks_heap = [OUT_OF_MEMORY, MAVEN_OUT_OF_MEMORY].into_iter();
        if self.out_of_memory.is_none() && lacks_heap.any(|text| line.contains(text)) {
            let mut line = line.to_owned();
            for secret in self.secrets.iter().filter(|secret| !secret.is_empty()) {
                line = line.replace(secret, "***");
            }
            self.out_of_memory = Some(indented_line(&line));
        }
    }

    /// Completes evidence that has its exit code: until here any end counted as success.
    pub fn settle_end(self, evidence: &mut Evidence) {
        let run = evidence.run.get_or_insert_with(|| RunEvidence {
            expected_exit: self.spec.exit,
            reference: self.spec.reference,
            ..RunEvidence::default()
        });
        run.out_of_memory = self.out_of_memory;
        let exit = &evidence.exit;
        let is_expected = exit.code == Some(self.spec.exit);
        let missing = self.spec.output.as_ref().filter(|_| !self.has_text);
        if let (true, Some(text)) = (is_expected, missing) {
            run.missing.push(lacks_text(text));
        }
        let has_end = exit.code.is_some() || exit.signal.is_some();
        let is_success = is_expected && missing.is_none();
        let is_unseen = evidence.start.ready.is_none() && evidence.ended_early.is_none();
        if exit.before_stop && (!has_end || (is_success && is_unseen)) {
            let lost = MeasurementFailure::new(InvalidReason::RuntimeLost, NOT_SEEN);
            evidence.failure.get_or_insert(lost);
        }
        if !is_success {
            evidence.start.ready = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use loadline_analysis::record::{ExitEvidence, StartEvidence};

    use super::*;

    const TEXT: &str = "42 rows";

    /// Evidence of a run in a pod that ended with this code, settled with this output.
    fn settled(code: Option<i32>, output: &str) -> Evidence {
        let spec = RunSpec {
            output: Some(TEXT.to_owned()),
            ..RunSpec::default()
        };
        let secrets = ["hunter2".to_owned()];
        let mut read = RunOutput {
            spec: &spec,
            secrets: &secrets,
            out_of_memory: None,
            has_text: false,
        };
        output.lines().for_each(|line| read.take_line(line));
        let mut evidence = Evidence {
            start: StartEvidence {
                ready: Some(Duration::from_secs(3)),
                ..StartEvidence::default()
            },
            exit: ExitEvidence {
                before_stop: true,
                code,
                ..ExitEvidence::default()
            },
            ..Evidence::default()
        };
        read.settle_end(&mut evidence);
        evidence
    }

    #[test]
    fn a_run_in_a_pod_succeeds_by_its_code_and_its_text() {
        let good = settled(Some(0), "starting\nread 42 rows");
        assert!(good.start.ready.is_some() && good.failure.is_none());
        let silent = settled(Some(0), "starting");
        assert_eq!(silent.start.ready, None);
        let missing = silent.run.map(|run| run.missing).unwrap_or_default();
        assert_eq!(missing, ["no line of its output contains `42 rows`"]);
        let failed = settled(Some(1), "");
        assert_eq!(failed.start.ready, None);
        assert!(failed.run.is_some_and(|run| run.missing.is_empty()));
    }

    #[test]
    fn an_end_of_which_nothing_is_known_is_no_evidence() {
        let lost = settled(None, TEXT).failure.map(|failure| failure.cause);
        assert_eq!(lost, Some(InvalidReason::RuntimeLost));
    }

    #[test]
    fn the_line_of_an_exhausted_heap_is_kept_without_credentials() {
        let line = "Exception hunter2 java.lang.OutOfMemoryError: Java heap space";
        let hungry = settled(Some(1), line).run.and_then(|run| run.out_of_memory);
        let wanted = "Exception *** java.lang.OutOfMemoryError: Java heap space";
        assert_eq!(hungry.as_deref(), Some(wanted));
    }
}
