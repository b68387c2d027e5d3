//! The GC log of an application that has ended: fetched, kept as evidence, read.
//!
//! Owns the way from a file that the application wrote to loadline's own copy: nothing the
//! application planted in its place is followed, and the size is capped. The log's format is
//! `loadline_jvm::gclog`'s.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use loadline_analysis::record::Evidence;
use loadline_jvm::gclog::{Builder, GcLog};

use super::instance::LocalInstance;
use super::{scratch, sight};
use crate::gc_evidence::{KEPT_PAUSES, add_standstills, cut, gc_evidence};

/// More of a log is not read: a trial of minutes writes a few MiB.
const CAP: u64 = 256 << 20;

/// Adds the GC figures and when threads stood; none where there is no log or nothing in it. What is
/// wrong with a log that should be there is a warning of the trial, and so is a JVM that did not
/// see its limits.
pub(super) fn collect(instance: &mut LocalInstance, evidence: &mut Evidence) {
    // An application that was never executed has no log to miss.
    if instance.state.exec_ns.is_none() {
        return;
    }
    let log = read(instance);
    if instance.is_jvm {
        let (header, home) = (log.as_ref().map(|log| &log.header), instance.jdk.as_deref());
        let blind = sight::warning(&instance.spec, header, home, &sight::Machine);
        instance.state.warnings.extend(blind);
    }
    let Some(log) = log else { return };
    evidence.gc = gc_evidence(&log);
    instance.state.warnings.extend(cut(&log));
    if let Some(pauses) = &mut evidence.pauses {
        add_standstills(&log, pauses);
    }
}

/// Fetches the log, keeps it and reads it.
fn read(instance: &mut LocalInstance) -> Option<GcLog> {
    let seen = instance.spec.gc_log.clone()?;
    let bytes = match instance.scratch.read(&seen, CAP) {
        Ok(bytes) => bytes,
        Err(error) => {
            instance.state.warnings.push(format!("GC log: {error}"));
            return None;
        }
    };
    if let Err(error) = keep(&scratch::gc_log(&instance.spec.scratch), &bytes) {
        let text = format!("the GC log could not be kept: {error}");
        instance.state.warnings.push(text);
    }
    if bytes.len() as u64 == CAP {
        let text = format!(
            "the GC log is longer than {} MiB: the figures are of the part before that",
            CAP >> 20
        );
        instance.state.warnings.push(text);
    }
    let mut log = Builder::new(KEPT_PAUSES).window(instance.state.measure);
    log.read(bytes.as_slice());
    Some(log.finish())
}

fn keep(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}
