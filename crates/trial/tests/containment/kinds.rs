//! Every kind of hostile program, each with the verdict that a trial with it gets.
//!
//! Owns the table. A kind is a line of the zoo's words; what it can do to a trial is in the zoo.

use std::time::Duration;

use crate::lab::Spec;

/// A kind: the zoo's words, and how its trials are recognised.
pub struct Kind {
    pub words: &'static [&'static str],
    /// More than one where it is chance who comes first.
    pub verdicts: &'static [&'static str],
}

const fn kind(words: &'static [&'static str], verdicts: &'static [&'static str]) -> Kind {
    Kind { words, verdicts }
}

const PASS: &[&str] = &["PASS"];
const MISS: &[&str] = &["SLO_MISS"];
const NEVER_READY: &[&str] = &["APP_KO never_ready"];
const CRASH: &[&str] = &["APP_KO crash"];
const OOM: &[&str] = &["APP_KO cgroup_oom"];
/// Whether the server or the others get the tasks that there may be.
const RACE: &[&str] = &["PASS", "SLO_MISS", "APP_KO never_ready"];

/// The same, where the others may need more memory than there is, too.
const BOMB: &[&str] = &[
    "PASS",
    "SLO_MISS",
    "APP_KO never_ready",
    "APP_KO cgroup_oom",
];

/// Where loadline looks for what an application leaves: its GC log, its counters, a file that it
/// hands over.
pub const GC_LOG: &str = "/tmp/gc.log";
pub const HANDED_OVER: &str = "/tmp/app.jsa";
const AS_GC_LOG: &str = "path=/tmp/gc.log";
const AS_COUNTERS: &str = "path=/tmp/hsperfdata_x/2";
const AS_HANDED_OVER: &str = "path=/tmp/app.jsa";

pub const KINDS: &[Kind] = &[
    kind(&["serve"], PASS),
    kind(&["serve", "ready_ms=300"], PASS),
    kind(&["serve", "slow_ms=100"], PASS),
    // Answers that are none.
    kind(&["serve", "status=500"], NEVER_READY),
    kind(&["serve", "answer=half"], NEVER_READY),
    kind(&["serve", "answer=drip"], NEVER_READY),
    kind(&["serve", "answer=endless"], NEVER_READY),
    kind(&["serve", "answer=close"], NEVER_READY),
    kind(&["serve", "answer=garbage"], NEVER_READY),
    // Where its load lasts for seconds, nothing more comes.
    kind(
        &["serve", "answer=half", "good=3"],
        &["SLO_MISS", "APP_KO hang"],
    ),
    kind(&["serve", "answer=close", "good=3"], MISS),
    kind(&["serve", "answer=garbage", "good=3"], MISS),
    kind(&["hang"], NEVER_READY),
    kind(&["never-ready"], NEVER_READY),
    // Ends, and what they say of themselves.
    kind(&["exit"], CRASH),
    kind(&["exit", "code=7"], CRASH),
    kind(&["exit", "after_ms=300"], CRASH),
    kind(&["forsake"], CRASH),
    kind(&["forsake", "after_ms=300"], CRASH),
    kind(&["signal", "number=11"], CRASH),
    kind(&["signal", "number=6"], CRASH),
    kind(&["signal", "number=9"], CRASH),
    kind(
        &["say", "text=java.lang.OutOfMemoryError", "code=1"],
        &["APP_KO java_oom"],
    ),
    kind(
        &["say", "text=Unrecognized VM option", "code=1"],
        &["APP_KO bad_flags"],
    ),
    kind(&["re-exec"], PASS),
    kind(&["ignore-term"], PASS),
    kind(&["stop-self"], NEVER_READY),
    // Output.
    kind(&["flood", "mib=40"], PASS),
    kind(&["flood", "mib=40", "to=stderr"], PASS),
    kind(&["binary"], PASS),
    kind(&["no-newline"], PASS),
    kind(&["closed-output"], PASS),
    // Processes.
    kind(&["daemons", "count=20"], PASS),
    kind(&["deaf-sessions"], PASS),
    kind(&["held-parents"], PASS),
    kind(&["kill-all"], CRASH),
    kind(&["names"], PASS),
    kind(&["squat"], PASS),
    kind(&["stopped-tree"], PASS),
    kind(&["storm"], RACE),
    kind(&["fork-bomb"], BOMB),
    kind(&["threads"], NEVER_READY),
    kind(&["traced"], PASS),
    kind(&["zombies"], PASS),
    // Memory and objects of the kernel.
    kind(&["oom", "step_mib=16", "step_ms=1"], OOM),
    kind(&["oom-child", "after_ms=100"], OOM),
    kind(&["memory-files", "mib=100"], OOM),
    kind(&["memory-files"], PASS),
    kind(&["shared-memory", "mib=100"], OOM),
    kind(&["shared-memory"], PASS),
    kind(&["system-v"], PASS),
    kind(&["locked-memory"], PASS),
    kind(&["oom-score"], PASS),
    kind(&["reserve"], PASS),
    kind(&["hold", "what=files"], PASS),
    kind(&["hold", "what=abstract", "count=1000"], PASS),
    kind(&["hold", "what=epoll", "count=5000"], PASS),
    kind(&["hold", "what=events", "count=5000"], PASS),
    kind(&["hold", "what=inotify"], PASS),
    kind(&["hold", "what=pipes", "count=1000"], PASS),
    kind(&["hold", "what=ports", "count=1000"], PASS),
    kind(&["hold", "what=timers", "count=5000"], PASS),
    // Files.
    kind(&["fill-disk", "mib=8"], PASS),
    kind(&["deep-tree", "levels=2000"], PASS),
    kind(&["closed-tree"], PASS),
    kind(&["many-files", "count=2000"], PASS),
    kind(&["odd-names"], PASS),
    kind(&["lock"], PASS),
    kind(&["plant", AS_GC_LOG, "target=/etc/shadow"], PASS),
    kind(&["plant", AS_GC_LOG, "target=/dev/zero"], PASS),
    kind(&["plant", AS_GC_LOG, "target=fifo"], PASS),
    kind(&["plant", AS_GC_LOG, "target=sparse"], PASS),
    kind(&["plant", AS_GC_LOG, "target=directory"], PASS),
    kind(&["plant", AS_GC_LOG, "target=socket"], PASS),
    kind(&["plant", AS_GC_LOG, "target=closed"], PASS),
    kind(&["plant", AS_GC_LOG, "target=growing"], PASS),
    kind(&["plant", AS_GC_LOG, "target=gc-log"], PASS),
    kind(&["plant", AS_COUNTERS, "target=/proc/kmsg"], PASS),
    kind(&["plant", AS_COUNTERS, "target=/dev/zero"], PASS),
    kind(&["plant", AS_COUNTERS, "target=fifo"], PASS),
    kind(&["plant", AS_COUNTERS, "target=sparse"], PASS),
    kind(&["plant", AS_COUNTERS, "target=directory"], PASS),
    kind(&["plant", AS_COUNTERS, "target=growing"], PASS),
    kind(&["plant", AS_COUNTERS, "target=counters"], PASS),
    kind(&["plant", AS_HANDED_OVER, "target=/etc/shadow"], PASS),
    kind(&["plant", AS_HANDED_OVER, "target=/dev/zero"], PASS),
    kind(&["plant", AS_HANDED_OVER, "target=fifo"], PASS),
    kind(&["plant", AS_HANDED_OVER, "target=sparse"], PASS),
    kind(&["plant", AS_HANDED_OVER, "target=directory"], PASS),
    kind(&["plant", AS_HANDED_OVER, "target=growing"], PASS),
    // Rights: each of these serves only where all that it tries is refused.
    kind(&["forbidden", "what=bpf"], PASS),
    kind(&["forbidden", "what=clocks"], PASS),
    kind(&["forbidden", "what=core-files"], PASS),
    kind(&["forbidden", "what=devices"], PASS),
    kind(&["forbidden", "what=groups"], PASS),
    kind(&["forbidden", "what=init"], PASS),
    kind(&["forbidden", "what=kernel-files"], PASS),
    kind(&["forbidden", "what=keys"], PASS),
    kind(&["forbidden", "what=mounts"], PASS),
    kind(&["forbidden", "what=namespaces"], PASS),
    kind(&["forbidden", "what=rights"], PASS),
    kind(&["forbidden", "what=rings"], PASS),
    kind(&["forbidden", "what=sockets"], PASS),
];

impl Kind {
    pub fn name(&self) -> String {
        self.words.join(" ")
    }

    pub fn set(&self, spec: &mut Spec, start_deadline: Duration) {
        // Only an application that never becomes ready takes the whole wait.
        let waits = self.verdicts.contains(&NEVER_READY[0]);
        spec.start_deadline = if waits {
            Duration::from_secs(1)
        } else {
            start_deadline
        };
        spec.stop_grace = Duration::from_millis(200);
        if self.words.contains(&AS_GC_LOG) {
            spec.gc_log = Some(GC_LOG.into());
        }
        if self.words.contains(&AS_HANDED_OVER) {
            spec.hand_over = vec![HANDED_OVER.into()];
        }
    }
}
