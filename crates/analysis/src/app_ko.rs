//! How an application failed, told from its exit, the kernel's counters and its last output.
//!
//! Owns the texts by which a JVM's end is known. Facts: exit codes of the ten
//! out-of-memory cases on JDK 17 and 25 (`-XX:+ExitOnOutOfMemoryError` exits with 3 only
//! where the VM itself raised the error: direct buffers and threads still end with 1).

use std::time::Duration;

use crate::record::{
    AppKo, Configuration, Evidence, LoadEvidence, RunEvidence, SecondEvidence, TrialPhase,
    VerdictReason,
};
use crate::text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationFailure {
    pub cause: AppKo,
    pub reason: VerdictReason,
    /// Found by waiting: a noisy machine may have caused it, so noise excuses it. Kills, errors
    /// and exits are facts that noise does not excuse.
    pub timed: bool,
}

/// Share of the memory limit in use from which there was next to none left.
const FULL: f64 = 0.98;

const BAD_FLAGS: [&str; 16] = [
    "Unrecognized VM option",
    "Unrecognized option",
    "Improperly specified VM option",
    "Invalid maximum heap size",
    "Invalid initial heap size",
    "Invalid thread stack size",
    "Too small maximum heap",
    "Too small initial heap",
    "Initial heap size set to a larger value than the maximum heap size",
    "Could not reserve enough space",
    "Conflicting collector combinations",
    "is outside the allowed range",
    "Error: VM option",
    "The stack size specified is too small",
    "Command-line option unrecognised",
    "Could not create the Java Virtual Machine",
];

/// What ran out, by the text after `java.lang.OutOfMemoryError:` or in the VM's own message.
const OUT_OF: [(&str, &str); 12] = [
    ("Metaspace", "metaspace"),
    ("Compressed class space", "compressed class space"),
    ("direct buffer memory", "direct memory"),
    ("Direct buffer memory", "direct memory"),
    ("unable to create native thread", "threads"),
    ("unable to create new native thread", "threads"),
    ("GC overhead limit exceeded", "heap (GC overhead limit)"),
    (
        "Requested array size exceeds VM limit",
        "heap (one huge array)",
    ),
    ("Java heap space", "heap"),
    ("GC triggered before VM initialization", "heap"),
    ("Native memory allocation", "native memory"),
    ("insufficient memory for the Java Runtime", "native memory"),
];

pub fn classify_failure(
    configuration: &Configuration,
    evidence: &Evidence,
    hang_after: Duration,
) -> Option<ApplicationFailure> {
    if evidence.is_squeezed_to_death() {
        return find_hang(evidence, hang_after);
    }
    if let Some(run) = &evidence.run {
        return classify_run(configuration, evidence, run);
    }
    filled_disk(evidence)
        .or_else(|| cgroup_oom(configuration, evidence))
        .or_else(|| killed_at_limit(configuration, evidence))
        .or_else(|| java_oom(configuration, evidence))
        .or_else(|| bad_flags(evidence))
        .or_else(|| find_crash(evidence))
        .or_else(|| never_ready(evidence))
        .map(|ko| of_instance(ko, evidence))
        .or_else(|| find_hang(evidence, hang_after))
}

/// The failure of a run. A timeout inside the run on a busy machine may cause an exit code; it
/// cannot cause kills or exhausted heaps.
fn classify_run(
    configuration: &Configuration,
    evidence: &Evidence,
    run: &RunEvidence,
) -> Option<ApplicationFailure> {
    let killed = filled_disk(evidence)
        .or_else(|| cgroup_oom(configuration, evidence))
        .or_else(|| killed_at_limit(configuration, evidence));
    if killed.is_some() || evidence.start.ready.is_some() {
        return killed;
    }
    let out_of_memory = run_out_of_memory(evidence, run);
    if !evidence.exit.before_stop {
        return out_of_memory;
    }
    out_of_memory
        .or_else(|| java_oom(configuration, evidence))
        .or_else(|| bad_flags(evidence))
        .or_else(|| failed_run(evidence, run))
}

/// Build tools catch the error and exit with 1, or wait for a JVM that hangs; their last lines need not
/// name it.
fn run_out_of_memory(evidence: &Evidence, run: &RunEvidence) -> Option<ApplicationFailure> {
    let line = run.out_of_memory.as_ref()?;
    let what = out_of(std::slice::from_ref(line)).unwrap_or("memory");
    let (exit, when) = (exit_text(evidence), time_of_failure(evidence));
    let then = match &evidence.ended_early {
        Some(early) => early.reason.clone(),
        None => format!("the run ended with {exit}, {when}"),
    };
    let ended = format!("a JVM of the run ran out of {what}, and {then}");
    let said = format!("its output says `{}`", shorten(line));
    certain_failure(AppKo::JavaOom, [ended, said])
}

fn failed_run(evidence: &Evidence, run: &RunEvidence) -> Option<ApplicationFailure> {
    let (exit, when) = (exit_text(evidence), time_of_failure(evidence));
    let why = if run.missing.is_empty() {
        format!("; {} is expected", run.expected_exit)
    } else {
        format!(", but {}", run.missing.join(" and "))
    };
    let mut reason = VerdictReason::from(format!("it ended with {exit} {when}{why}"));
    if let Some(line) = telling_line(&evidence.last_output) {
        reason.push(&format!("its output says `{line}`"));
    }
    timed_failure(AppKo::Crash, reason)
}

/// With several instances, the reason names the instance that failed.
fn of_instance(ko: ApplicationFailure, evidence: &Evidence) -> ApplicationFailure {
    let Some(failed) = evidence.instances.iter().find(|i| i.has_failed()) else {
        return ko;
    };
    let (instance, all) = (failed.instance, evidence.instances.len());
    let place = format!("instance {instance} of {all}: ");
    let reason = ko.reason.prefixed(&place);
    ApplicationFailure { reason, ..ko }
}

fn certain_failure(
    cause: AppKo,
    sentences: impl IntoIterator<Item = String>,
) -> Option<ApplicationFailure> {
    Some(ApplicationFailure {
        cause,
        reason: sentences.into_iter().collect(),
        timed: false,
    })
}

fn timed_failure(cause: AppKo, reason: VerdictReason) -> Option<ApplicationFailure> {
    Some(ApplicationFailure {
        cause,
        reason,
        timed: true,
    })
}

fn filled_disk(evidence: &Evidence) -> Option<ApplicationFailure> {
    let disk = evidence.disk.as_ref()?;
    let (written, left, when) = (disk.written, disk.left, time_of_failure(evidence));
    let said = format!(
        "it filled the disk: its files took {written}, {left} were left, and it was ended {when}"
    );
    certain_failure(AppKo::Disk, [said])
}

fn cgroup_oom(configuration: &Configuration, evidence: &Evidence) -> Option<ApplicationFailure> {
    evidence.cgroup.oom_kills.filter(|kills| *kills > 0)?;
    let who = if evidence.exit.before_stop {
        "it"
    } else {
        "one of its processes"
    };
    let limit = configuration.memory.map(|limit| format!(" of {limit}"));
    let own = evidence.instances.iter().find(|i| i.is_oom_killed());
    let peak = own.map_or(evidence.cgroup.peak_memory, |i| i.cgroup.peak_memory);
    let peak = peak.map(|peak| format!(" (peak {} MiB)", text::three_digits(peak.as_mib())));
    let (limit, peak) = (limit.unwrap_or_default(), peak.unwrap_or_default());
    let when = time_of_failure(evidence);
    let said = format!("the kernel killed {who} at the memory limit{limit}{peak}, {when}");
    certain_failure(AppKo::CgroupOom, [said])
}

/// The kernel removed the group together with the application before the counter could be read
/// again. An application killed with all its memory in use was almost always killed for that
/// memory.
fn killed_at_limit(
    configuration: &Configuration,
    evidence: &Evidence,
) -> Option<ApplicationFailure> {
    let is_unknown = evidence.cgroup.oom_kills.is_none();
    let is_killed = evidence.exit.before_stop && killed_by(evidence) == Some(9);
    let limit = configuration.memory?;
    let peak = evidence.cgroup.peak_memory?;
    let is_full = peak.as_mib() >= FULL * limit.as_mib();
    if !(is_unknown && is_killed && is_full) {
        return None;
    }
    let (exit, when) = (exit_text(evidence), time_of_failure(evidence));
    let peak = text::three_digits(peak.as_mib());
    let ended =
        format!("it ended with {exit} at the memory limit of {limit} (peak {peak} MiB), {when}");
    let unknown = "the kernel's OOM counter was gone before it could be read again".to_owned();
    certain_failure(AppKo::CgroupOom, [ended, unknown])
}

fn java_oom(configuration: &Configuration, evidence: &Evidence) -> Option<ApplicationFailure> {
    let line = evidence.last_output.iter().rfind(|line| is_oom_text(line));
    let what = line.and_then(|_| out_of(&evidence.last_output));
    let what = what.unwrap_or("memory");
    let (exit, when) = (exit_text(evidence), time_of_failure(evidence));
    let sentences = match (line, evidence.exit.before_stop) {
        (Some(_), true) => vec![format!(
            "the JVM ran out of {what} and ended with {exit}, {when}"
        )],
        (Some(line), false) => vec![
            format!("the JVM ran out of {what}"),
            format!("the application kept running (`{}`)", shorten(line)),
        ],
        // The VM exits with 3 for this option only; its output may be lost.
        (None, true) if evidence.exit.code == Some(3) && exits_on_oom(configuration) => {
            vec![format!(
                "the JVM ran out of memory: {exit}, which -XX:+ExitOnOutOfMemoryError gives, {when}"
            )]
        }
        _ => return None,
    };
    certain_failure(AppKo::JavaOom, sentences)
}

fn is_oom_text(line: &str) -> bool {
    line.contains("java.lang.OutOfMemoryError")
        || line.contains("insufficient memory for the Java Runtime")
        || line.contains("GC triggered before VM initialization")
}

fn out_of(lines: &[String]) -> Option<&'static str> {
    let named = |line: &String| OUT_OF.iter().find(|(text, _)| line.contains(text));
    lines.iter().rev().find_map(named).map(|(_, what)| *what)
}

fn exits_on_oom(configuration: &Configuration) -> bool {
    let option = "-XX:+ExitOnOutOfMemoryError";
    let options = configuration.jvm_options.iter().map(|o| &o.text);
    let mut all = options.chain(configuration.env.values());
    all.any(|text| text.contains(option))
}

fn bad_flags(evidence: &Evidence) -> Option<ApplicationFailure> {
    let refused = evidence.exit.before_stop
        && evidence.start.ready.is_none()
        && evidence.exit.code == Some(1);
    let lines = &evidence.last_output;
    let telling = |text: &&str| lines.iter().find(|line| line.contains(*text));
    let line = BAD_FLAGS.iter().filter(|_| refused).find_map(telling)?;
    let said = format!("the JVM refused its options: `{}`", shorten(line));
    certain_failure(AppKo::BadFlags, [said])
}

fn find_crash(evidence: &Evidence) -> Option<ApplicationFailure> {
    if !evidence.exit.before_stop {
        return None;
    }
    let (exit, when) = (exit_text(evidence), time_of_failure(evidence));
    let ended = format!("it ended with {exit}, {when}");
    let kill = (killed_by(evidence) == Some(9)).then(|| match evidence.cgroup.oom_kills {
        Some(_) => "the kernel's OOM counter did not move, so another process sent it".to_owned(),
        None => "the kernel's OOM counter could not be read, so it may be that".to_owned(),
    });
    let said =
        || telling_line(&evidence.last_output).map(|line| format!("its output says `{line}`"));
    let said = unreached_service(&evidence.last_output).or_else(said);
    // A daemon: the script has done its work, and what it started was ended with it.
    let is_daemon = evidence.exit.code == Some(0) && evidence.exit.leftover_processes > 0;
    let daemon = is_daemon.then(|| {
        "what it started was still running: a start script must stay in the foreground (`catalina.sh run`, `server run`)".to_owned()
    });
    let is_done = evidence.exit.code == Some(0) && evidence.start.ready.is_none() && !is_daemon;
    let job = is_done.then(|| "a program that is meant to end is sized as a job: --job".to_owned());
    let sentences = [Some(ended), kill, daemon, job, said];
    certain_failure(AppKo::Crash, sentences.into_iter().flatten())
}

fn never_ready(evidence: &Evidence) -> Option<ApplicationFailure> {
    let start = &evidence.start;
    if start.ready.is_some() {
        return None;
    }
    let waited = text::short_duration(start.deadline);
    let mut reason = VerdictReason::from(match &evidence.ended_early {
        Some(early) => format!("{}: waiting for it ended early", early.reason),
        None => format!("it was not ready within {waited}"),
    });
    if !start.last_probe.is_empty() {
        reason.push(&format!("the last probe saw {}", start.last_probe));
    }
    if let Some(throttled) = start.throttled.filter(|t| *t > start.deadline / 5) {
        let throttled = text::short_duration(throttled);
        reason.push(&format!(
            "throttled for {throttled} meanwhile (summed over CPUs)"
        ));
    }
    if let Some(said) = unreached_service(&evidence.last_output) {
        reason.push(&said);
    }
    timed_failure(AppKo::NeverReady, reason)
}

/// No request got an answer, not even an error, from some point to the end, for at least
/// `hang_after` and with many requests sent.
fn find_hang(evidence: &Evidence, hang_after: Duration) -> Option<ApplicationFailure> {
    let until = evidence.judged_until();
    let is_judged = |load: &&LoadEvidence| until == u64::MAX || load.phase.is_judged();
    let load = evidence.load.iter().rfind(is_judged)?;
    let is_in_load = |second: &&SecondEvidence| second.offered.is_some() && second.at_ns <= until;
    let in_load: Vec<&SecondEvidence> = evidence.seconds.iter().filter(is_in_load).collect();
    let is_silent = |second: &&&SecondEvidence| second.achieved.unwrap_or(0) == 0;
    let silent = in_load.iter().rev().take_while(is_silent).count();
    let silent_seconds = &in_load[in_load.len() - silent..];
    let offered: u64 = silent_seconds.iter().filter_map(|s| s.offered).sum();
    let failed: u64 = silent_seconds.iter().filter_map(|s| s.errors).sum();
    let is_silent = Duration::from_secs(silent as u64) >= hang_after && offered >= 10;
    // Every instance has its own load, and a warm-up without a good response is part of a silence that
    // reaches back to it.
    let is_silent_throughout = silent == in_load.len();
    let loads = evidence.load.iter();
    let silent_loads =
        loads.filter(|l| l.phase == load.phase || (l.ok == 0 && is_silent_throughout));
    let answered: u64 = silent_loads.map(answered_with_error).sum();
    if !is_silent || (failed > 0 && failed <= answered) {
        return None;
    }
    let ready = text::short_duration(evidence.start.ready.unwrap_or_default());
    let reason = format!(
        "it stopped answering: no good response in the last {silent} s of the {} phase, {} requests waiting (it was ready after {ready})",
        load.phase,
        text::short_count(offered),
    );
    timed_failure(AppKo::Hang, reason.into())
}

/// Failed requests that did get an answer: error kinds `http_...` and wrong content.
fn answered_with_error(load: &LoadEvidence) -> u64 {
    const SILENCE: &str = "timeout shed refused reset closed unreachable io";
    let is_silence = |kind: &str| SILENCE.split(' ').any(|silence| silence == kind);
    let answered = load.errors.iter().filter(|(kind, _)| !is_silence(kind));
    answered.map(|(_, count)| count).sum()
}

fn killed_by(evidence: &Evidence) -> Option<i32> {
    // A shell reports the death of its child by signal n as exit code 128 + n.
    let by_shell = evidence.exit.code.map(|code| code - 128);
    let by_shell = by_shell.filter(|n| (1..=31).contains(n));
    evidence.exit.signal.or(by_shell)
}

fn exit_text(evidence: &Evidence) -> String {
    match (evidence.exit.signal, evidence.exit.code) {
        (Some(signal), _) => format!("signal {signal}{}", signal_name(signal)),
        (None, Some(code)) if (129..=159).contains(&code) => {
            let signal = code - 128;
            format!("exit code {code} (signal {signal}{})", signal_name(signal))
        }
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "an unknown status".to_owned(),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " SIGILL",
        6 => " SIGABRT",
        7 => " SIGBUS",
        8 => " SIGFPE",
        9 => " SIGKILL",
        11 => " SIGSEGV",
        15 => " SIGTERM",
        _ => "",
    }
}

fn time_of_failure(evidence: &Evidence) -> String {
    let is_load = |phase: &TrialPhase| matches!(phase, TrialPhase::WarmUp | TrialPhase::Measure);
    let phases = evidence.phases.iter().rev().map(|span| span.phase);
    let last_load = evidence.load.last().map(|load| load.phase);
    // Without requests time alone passes.
    let last_load = last_load.or_else(|| phases.into_iter().find(is_load));
    if let (Some(_), Some(span)) = (&evidence.run, evidence.span_of(TrialPhase::Start)) {
        return format!("after {}", text::short_duration(span.length()));
    }
    match (evidence.start.ready, last_load) {
        (None, _) => "before it was ready".to_owned(),
        (Some(_), Some(phase)) => format!("in the {phase} phase"),
        (Some(_), None) => "after it was ready, before any load".to_owned(),
    }
}

/// Of a failed start: what Spring's failure analysis or a build tool says, a main class that is missing
/// (the exception below it only repeats the name), the root cause of the last stack trace, else the last
/// error.
fn telling_line(lines: &[String]) -> Option<String> {
    let is_text = |line: &&String| !line.trim().is_empty() && !is_frame(line);
    let spring = lines.iter().rposition(|l| l.trim() == "Description:");
    let described = spring.and_then(|at| lines[at + 1..].iter().find(is_text));
    let last = |words: &[&str]| {
        let has_word = |line: &&String| words.iter().any(|word| line.contains(word));
        lines.iter().filter(is_text).rfind(has_word)
    };
    described
        .or_else(|| build_failure(lines))
        .or_else(|| last(&["Could not find or load main class"]))
        .or_else(|| last(&["Caused by: "]))
        .or_else(|| last(&["Error", "Exception"]))
        .or_else(|| last(&["ERROR"]))
        .or_else(|| last(&[""]))
        .map(|line| shorten(line))
}

/// Of a build: the first error of its compiler, else what Maven or Gradle calls the reason. Both end
/// with advice that names an exception or an address.
fn build_failure(lines: &[String]) -> Option<&String> {
    let after = |title: &str| lines.iter().position(|l| l.trim().ends_with(title));
    let maven = after("COMPILATION ERROR :").and_then(|at| lines.get(at + 1));
    let naming = |text: &str| lines.iter().find(|line| line.contains(text));
    let compiler = || naming(": error: ");
    let goal = || naming("Failed to execute goal ");
    let gradle = || {
        let reasons = &lines[after("* What went wrong:")? + 1..];
        reasons
            .iter()
            .take_while(|line| !line.trim().is_empty())
            .last()
    };
    maven.or_else(compiler).or_else(goal).or_else(gradle)
}

pub fn last_words(lines: &[String]) -> Option<String> {
    const LINES: usize = 3;
    let said = lines.iter().map(|line| line.trim());
    let said: Vec<&str> = said.filter(|l| !l.is_empty() && !is_frame(l)).collect();
    let last = said[said.len().saturating_sub(LINES)..].join(" | ");
    (!last.is_empty()).then(|| format!("it said last: {last}"))
}

fn is_frame(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("at ") || line.starts_with("... ")
}

/// What the last output says of a service that was not reached, and where such a service can be: by
/// default the application's network ends at its own loopback.
fn unreached_service(lines: &[String]) -> Option<String> {
    const SIGNS: [&str; 5] = [
        "unknownhostexception",
        "name or service not known",
        "temporary failure in name resolution",
        "network is unreachable",
        "econnrefused",
    ];
    let is_sign = |line: &&String| {
        let text = line.to_lowercase();
        let is_refused = text.contains("connection") && text.contains("refused");
        !is_frame(line) && (is_refused || SIGNS.iter().any(|sign| text.contains(sign)))
    };
    let names_port = |line: &&String| {
        let mut words = line.split(|c: char| c.is_whitespace() || c == '/');
        words.any(|word| {
            let port = word.trim_end_matches(['.', ',', ')', ']']).rsplit_once(':');
            port.is_some_and(|(_, port)| port.parse::<u16>().is_ok())
        })
    };
    let signs = || lines.iter().filter(is_sign);
    let line = signs().rfind(names_port).or_else(|| signs().next_back())?;
    Some(format!(
        "its output says `{}`: what it needs next to it is a [[dependency]], or a service of this machine with --network host",
        shorten(line)
    ))
}

fn shorten(line: &str) -> String {
    const LONGEST: usize = 160;
    let line = line.trim();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// The ends of applications that cannot start, and the line that matters in each.
    const BROKEN: &[(&str, &str)] = &[
        (
            "Exception in thread \"main\" java.lang.IllegalStateException: cannot configure the shop\n\tat Shop.main(Shop.java:4)\nCaused by: java.lang.NullPointerException: DB_URL is not set\n\tat java.base/java.util.Objects.requireNonNull(Objects.java:246)\n\t... 1 more",
            "Caused by: java.lang.NullPointerException: DB_URL is not set",
        ),
        (
            "2026-11-29T10:15:31.482Z ERROR 1 --- [main] o.s.boot.SpringApplication : Application run failed\n\norg.springframework.beans.factory.BeanCreationException: Error creating bean with name 'orders': Injection of autowired dependencies failed\n\tat org.springframework.boot.SpringApplication.run(SpringApplication.java:1361)\nCaused by: java.lang.IllegalArgumentException: Could not resolve placeholder 'SHOP_KEY' in value \"${SHOP_KEY}\"\n\tat org.springframework.util.PropertyPlaceholderHelper.parseStringValue(PropertyPlaceholderHelper.java:180)\n\t... 22 common frames omitted\n2026-11-29T10:15:31.499Z ERROR 1 --- [main] o.s.t.c.TestContextManager : Caught Exception while closing",
            "Caused by: java.lang.IllegalArgumentException: Could not resolve placeholder 'SHOP_KEY' in value \"${SHOP_KEY}\"",
        ),
        (
            "Error starting ApplicationContext. To display the condition evaluation report re-run your application with 'debug' enabled.\n\n***************************\nAPPLICATION FAILED TO START\n***************************\n\nDescription:\n\nWeb server failed to start. Port 8080 was already in use.\n\nAction:\n\nIdentify and stop the process that's listening on port 8080 or configure this application to listen on another port.\n",
            "Web server failed to start. Port 8080 was already in use.",
        ),
        (
            "Exception in thread \"main\" java.net.BindException: Address already in use\n\tat java.base/sun.nio.ch.Net.bind0(Native Method)\n\tat Shop.main(Shop.java:3)",
            "Exception in thread \"main\" java.net.BindException: Address already in use",
        ),
        (
            "2026-11-29T10:15:31.482Z  INFO 1 --- [main] com.zaxxer.hikari.HikariDataSource : HikariPool-1 - Starting...\norg.hibernate.exception.JDBCConnectionException: unable to obtain isolated JDBC connection\n\tat org.hibernate.engine.jdbc.spi.SqlExceptionHelper.convert(SqlExceptionHelper.java:100)\nCaused by: org.postgresql.util.PSQLException: Connection to db:5432 refused. Check that the hostname and port are correct.\n\tat org.postgresql.core.v3.ConnectionFactoryImpl.openConnectionImpl(ConnectionFactoryImpl.java:352)\nCaused by: java.net.ConnectException: Connection refused\n\tat java.base/sun.nio.ch.Net.pollConnect(Native Method)\n\t... 48 common frames omitted",
            "Caused by: org.postgresql.util.PSQLException: Connection to db:5432 refused. Check that the hostname and port are correct.",
        ),
        (
            "Exception in thread \"main\" java.lang.ClassNotFoundException: com.example.Driver\n\tat java.base/jdk.internal.loader.BuiltinClassLoader.loadClass(BuiltinClassLoader.java:580)",
            "Exception in thread \"main\" java.lang.ClassNotFoundException: com.example.Driver",
        ),
        (
            "Error: LinkageError occurred while loading main class Shop\n\tjava.lang.UnsupportedClassVersionError: Shop has been compiled by a more recent version of the Java Runtime (class file version 69.0)",
            "java.lang.UnsupportedClassVersionError: Shop has been compiled by a more recent version of the Java Runtime (class file version 69.0)",
        ),
        (
            "Error: Unable to access jarfile shop.jar",
            "Error: Unable to access jarfile shop.jar",
        ),
        (
            "Picked up JAVA_TOOL_OPTIONS: -Xlog:disable\nError: Invalid or corrupt jarfile shop.jar",
            "Error: Invalid or corrupt jarfile shop.jar",
        ),
        (
            "no main manifest attribute, in shop.jar\n",
            "no main manifest attribute, in shop.jar",
        ),
        (
            "Error: Could not find or load main class com.example.Shop\nCaused by: java.lang.ClassNotFoundException: com.example.Shop",
            "Error: Could not find or load main class com.example.Shop",
        ),
        (
            "Unrecognized VM option 'UseFastGC'\nError: Could not create the Java Virtual Machine.\nError: A fatal exception has occurred. Program will exit.",
            "Unrecognized VM option 'UseFastGC'",
        ),
        (
            "Error occurred during initialization of VM\nCould not reserve enough space for 943718400000 KB object heap",
            "Could not reserve enough space for 943718400000 KB object heap",
        ),
        (
            "java.io.UncheckedIOException: java.nio.file.AccessDeniedException: /data/index\n\tat Shop.main(Shop.java:6)\nCaused by: java.nio.file.AccessDeniedException: /data/index\n\tat java.base/sun.nio.fs.UnixException.translateToIOException(UnixException.java:90)\n\t... 3 more\nThe shop ended. Exceptions are listed in /var/log/shop.log",
            "Caused by: java.nio.file.AccessDeniedException: /data/index",
        ),
        (
            "Exception in thread \"main\" java.io.FileNotFoundException: config/shop.yml (No such file or directory)\n\tat java.base/java.io.FileInputStream.open0(Native Method)",
            "Exception in thread \"main\" java.io.FileNotFoundException: config/shop.yml (No such file or directory)",
        ),
        (
            "Caused by: org.yaml.snakeyaml.scanner.ScannerException: mapping values are not allowed here\n in 'reader', line 3, column 12:\n        port: : 8080\n              ^\n\n\tat org.yaml.snakeyaml.scanner.ScannerImpl.fetchValue(ScannerImpl.java:894)\n\t... 19 more\n",
            "Caused by: org.yaml.snakeyaml.scanner.ScannerException: mapping values are not allowed here",
        ),
        (
            "[ERROR] COMPILATION ERROR : \n[ERROR] /shop/src/Sort.java:[3,34] incompatible types: java.lang.String cannot be converted to int\n[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.1:testCompile (default-testCompile) on project t: Compilation failure\n[ERROR] -> [Help 1]\n[ERROR] [Help 1] http://cwiki.apache.org/confluence/display/MAVEN/MojoFailureException",
            "[ERROR] /shop/src/Sort.java:[3,34] incompatible types: java.lang.String cannot be converted to int",
        ),
        (
            "[ERROR] Failed to execute goal on project shop: Could not resolve dependencies for project shop:shop:jar:1: Cannot access central in offline mode\n[ERROR] -> [Help 1]\n[ERROR] [Help 1] http://cwiki.apache.org/confluence/display/MAVEN/DependencyResolutionException",
            "[ERROR] Failed to execute goal on project shop: Could not resolve dependencies for project shop:shop:jar:1: Cannot access central in offline mode",
        ),
        (
            "/shop/src/StringUtils.java:9559: error: class, interface, or enum expected\nint x = \"a\";\n^\n1 error\n\nFAILURE: Build failed with an exception.\n\n* What went wrong:\nExecution failed for task ':compileJava'.\n> Compilation failed; see the compiler error output for details.\n\n* Try:\nRun with --stacktrace option to get the stack trace.\n\n* Get more help at https://help.gradle.org",
            "/shop/src/StringUtils.java:9559: error: class, interface, or enum expected",
        ),
        (
            "FAILURE: Build failed with an exception.\n\n* What went wrong:\nExecution failed for task ':test'.\n> There were failing tests. See the report at: file:///shop/build/reports/tests/test/index.html\n\n* Try:\nRun with --info or --debug option to get more log output.\n\n* Get more help at https://help.gradle.org",
            "> There were failing tests. See the report at: file:///shop/build/reports/tests/test/index.html",
        ),
        (
            "ERROR: Failed to start server in (production) mode\nERROR: Unable to read the keystore\nFor more details run the same command passing the '--verbose' option.",
            "ERROR: Unable to read the keystore",
        ),
    ];

    #[test]
    fn the_line_that_matters_is_quoted_of_a_start_that_fails() {
        for (output, line) in BROKEN {
            let ended = fixture::with_exit(fixture::not_ready(), Some(1), None);
            let evidence = fixture::with_output(ended, output);
            let failed = classify_failure(
                &fixture::configuration(256),
                &evidence,
                Duration::from_secs(5),
            );
            let reason = failed.expect("a failure").reason.to_string();
            assert!(reason.contains(&format!("`{line}`")), "{line}: {reason}");
        }
    }
}
