//! The flags that mean the same as keys of the experiment file, in the groups of their help.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use loadline_experiment::compose::words::split_words;
use loadline_experiment::wire::{AppTable, ExperimentFile, MetricsTable, ReadyTable};
use loadline_experiment::{ValueOrigin, ValueWithOrigin};
use loadline_kubernetes::workload::WorkloadName;
use loadline_load::LoadTarget;
use loadline_load::spec::text::PeakLoad;
use loadline_sizing::options::words::has_word;

use super::cluster::PodFlags;
use super::set_from_flag;
use crate::load_flags::LoadFlags;

const EXPERIMENT: &str = "Experiment";
pub const APPLICATION: &str = "Application";
pub const SEARCH: &str = "Search";
const PRICES: &str = "Prices";

#[derive(Debug, Clone)]
pub struct CommandWords(pub Vec<String>);

/// Signs that only a shell understands.
const SHELL_WORDS: &str = "| || & && ; > >> < 2> 2>&1";

fn split_command(text: &str) -> Result<CommandWords, String> {
    if text.trim().is_empty() {
        return Err("it is empty; write 'k6 run checkout.js'".to_owned());
    }
    let words = split_words(text).ok_or_else(|| {
        format!("`{text}` is not a command; close its quotes: 'k6 run checkout.js'")
    })?;
    let is_for_shell = |word: &&String| has_word(SHELL_WORDS, word) || word.starts_with('$');
    let program = words.first().and_then(|word| word.rsplit('/').next());
    let is_shell = program.is_some_and(|name| has_word("sh bash dash ash zsh", name));
    match words.iter().find(is_for_shell).filter(|_| !is_shell) {
        None => Ok(CommandWords(words)),
        Some(word) => Err(format!(
            "`{word}` needs a shell, but the command runs without one; start one, e.g. \"sh -c './a.sh | tail -1'\""
        )),
    }
}

fn split_named(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=');
    let parts = parts.map(|(name, rest)| (name.trim(), rest.trim()));
    if let Some((name, "")) = parts {
        return Err(format!("there is nothing after the `=`; write {name}=..."));
    }
    let named = parts.filter(|(name, _)| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !name.is_empty() && name.chars().all(is_plain)
    });
    let (name, rest) = named.ok_or_else(|| {
        format!(
            "`{text}` has no name of letters, digits, -, _ and . before a `=`; write it as lag=..."
        )
    })?;
    Ok((name.to_owned(), rest.to_owned()))
}

/// `tcp:9092`, `grpc:9090`, `log:Started`, `command:./ready.sh`; everything else is a path for HTTP.
pub fn split_ready(text: &str) -> Result<ReadyTable, String> {
    let mut table = ReadyTable::default();
    match text.split_once(':') {
        Some(("tcp", port)) => table.tcp = Some(ready_port("tcp", port)?),
        Some(("grpc", port)) => table.grpc = Some(ready_port("grpc", port)?),
        Some(("log", line)) if line.trim().is_empty() => {
            return Err("it names no text; write 'log:Started in'".to_owned());
        }
        Some(("log", line)) => table.log = Some(line.to_owned()),
        Some(("command", command)) => table.command = split_command(command)?.0,
        _ => table.http = Some(ValueWithOrigin::from_flag("--ready", text.to_owned())),
    }
    Ok(table)
}

fn ready_port(kind: &str, port: &str) -> Result<u16, String> {
    let number = port.parse().ok().filter(|port| *port > 0);
    number.ok_or_else(|| format!("`{port}` is not a port; write {kind}:9090"))
}

fn split_probe(text: &str) -> Result<(String, CommandWords), String> {
    let (name, command) = split_named(text)?;
    Ok((name, split_command(&command)?))
}

/// The experiment as flags; each is also a key of the experiment file.
#[derive(Args, Debug, Default, Clone)]
pub struct ExperimentFlags {
    /// Experiment file (TOML); flags override it [default: loadline.toml, if it exists and nothing
    /// else says what to start]
    #[arg(value_name = "FILE")]
    pub experiment: Option<PathBuf>,

    /// The same
    #[arg(
        short,
        long,
        value_name = "FILE",
        conflicts_with = "experiment",
        hide = true
    )]
    pub file: Option<PathBuf>,

    /// Service-level objectives, e.g. p99<50ms,errors<0.1%
    ///
    /// Also max<1s, start<20s, heap<80%, gc<10%; for one request of a mix 'POST /orders:
    /// p99<200ms', for a metric 'lag: max<1000', for an outage recovers<10s and 'errors<5% during',
    /// for a peak 'peak p99<500ms', for a load command 'load passes', for a run that ends time<60s,
    /// cpu<300s, slower<10%, exit=0.
    #[arg(long, value_name = "SLO", help_heading = EXPERIMENT)]
    pub slo: Option<String>,

    /// URL to request, e.g. http://localhost:8080/owners
    #[arg(long, help_heading = EXPERIMENT)]
    pub url: Option<LoadTarget>,

    /// Let another program make the load, e.g. 'vegeta attack ... -rate={rate}
    /// -duration={duration_s}s': it finds the application at --url, where each of its HTTP
    /// exchanges is timed
    #[arg(long, value_name = "COMMAND", value_parser = split_command, help_heading = "Load")]
    pub load: Option<CommandWords>,

    /// A burst after the judged part, reported separately: 200/s, or 2x for twice the highest rate.
    /// It lasts 10s unless a time is given, as in 2x:30s. Objectives for it: --slo 'p99<250ms,peak
    /// p99<500ms'
    #[arg(long, value_name = "RATE[:TIME]", help_heading = "Load")]
    pub peak: Option<PeakLoad>,

    /// Without --url: a command that makes work other than HTTP, e.g. './produce 500', from ready
    /// to the end of the judged part
    #[arg(long, value_name = "COMMAND", value_parser = split_command, conflicts_with_all = ["url", "load", "job"], help_heading = "Load")]
    pub drive: Option<CommandWords>,

    /// Without --url: a command that restores the backlog before each start, e.g. './rewind 5000'
    #[arg(long, value_name = "COMMAND", value_parser = split_command, conflicts_with_all = ["url", "load", "job"], help_heading = "Load")]
    pub backlog: Option<CommandWords>,

    #[command(flatten)]
    pub load_flags: LoadFlags,

    /// URL of the application's metrics in Prometheus or OpenMetrics text, e.g.
    /// http://localhost:8080/metrics; read once a second while requests are judged
    #[arg(long, value_name = "URL", help_heading = EXPERIMENT)]
    pub metrics: Option<String>,

    /// Metric that the SLO may name, e.g. 'lag=records_lag{topic="orders"}' for 'lag: max<1000'.
    /// Its series are added up; with 'lag=max(records_lag)' the largest counts. Repeat the flag for
    /// more
    #[arg(long, value_name = "NAME=SERIES", value_parser = split_named, help_heading = EXPERIMENT)]
    pub metric: Vec<(String, String)>,

    /// Like --metric, but the last number that a command prints, once a second, e.g. 'lag=./lag.sh
    /// orders'; it runs outside the application's limits, in its network and under its account
    #[arg(long, value_name = "NAME=COMMAND", value_parser = split_probe, help_heading = EXPERIMENT)]
    pub probe: Vec<(String, CommandWords)>,

    /// The application is a job that ends: a build, a batch, a test run. It needs no --url; its
    /// --slo is time<60s, cpu<300s, slower<10% or exit=3 [default: if --from names a Job or CronJob]
    #[arg(long, conflicts_with_all = ["url", "load"], help_heading = EXPERIMENT)]
    pub job: bool,

    /// With --job: command to run before each run, outside its limits and its time, e.g. 'rm -rf
    /// target'; it runs in a copy of the working directory
    #[arg(long, value_name = "COMMAND", value_parser = split_command, help_heading = APPLICATION)]
    pub reset: Option<CommandWords>,

    /// With --job: directory to copy for each run, so that runs do not change it; repeat the flag
    /// for more [default: the working directory, for Maven, Gradle and the like and with --reset]
    #[arg(long, value_name = "DIR", help_heading = APPLICATION)]
    pub fresh: Vec<PathBuf>,

    /// With a --job that starts its JVMs itself: where to put loadline's JVM options, including a
    /// heap that loadline then chooses: launcher (MAVEN_OPTS, GRADLE_OPTS, SBT_OPTS, ANT_OPTS), all
    /// (JAVA_TOOL_OPTIONS), or a variable [default: the heaps stay as they are]
    #[arg(long, value_name = "WHERE", help_heading = APPLICATION)]
    pub options_to: Option<String>,

    /// With --job: text that a successful run prints, within one line
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new(), help_heading = APPLICATION)]
    pub expect_output: Option<String>,

    /// With --job: file that a successful run leaves behind, not empty
    #[arg(long, value_name = "FILE", help_heading = APPLICATION)]
    pub expect_file: Option<PathBuf>,

    /// Readiness check: a path that answers, e.g. /health or :9001/health; tcp:9092; grpc:9090 asks
    /// grpc.health.v1; log:Started, a text in the output; command:./ready.sh, which ends with 0
    /// [default: the URL, or its port if the load is more than a plain GET]
    #[arg(long, value_name = "WHEN", value_parser = split_ready, help_heading = APPLICATION)]
    pub ready: Option<ReadyTable>,

    /// Longest time a start may take, e.g. 60s
    #[arg(long, value_name = "TIME", help_heading = APPLICATION)]
    pub start_deadline: Option<String>,

    /// CPU limit, e.g. 1 or 500m; several are compared, and `size` proves a memory size for each.
    /// With auto, `size` chooses the smallest that keeps the SLO; none: no limit [default of `size`
    /// for one service: auto]
    #[arg(long, value_name = "CPUS", value_delimiter = ',', help_heading = EXPERIMENT)]
    pub cpu: Vec<String>,

    /// CPU limit until the application is ready, e.g. 2; then --cpu applies. A JVM counts the CPUs
    /// of --cpu from its start. With auto, `size` tries 2 and 4 times --cpu at the size found
    #[arg(long, value_name = "CPUS", help_heading = EXPERIMENT)]
    pub start_cpu: Option<String>,

    /// JDK by name, as listed by `loadline doctor`; several are compared, and `size` proves a size
    /// for each
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = EXPERIMENT)]
    pub jdk: Vec<String>,

    /// JVM options, e.g. '-Xmx256m -XX:+UseSerialGC'; several sets are compared, each with a label
    /// before it: 'c1: -XX:TieredStopAtLevel=1'
    #[arg(long,  alias = "options", value_name = "[LABEL:] OPTIONS", allow_hyphen_values = true, help_heading = EXPERIMENT)]
    pub jvm: Vec<String>,

    /// User that the application runs as: uid or uid:gid
    #[arg(long, value_name = "UID", help_heading = APPLICATION)]
    pub user: Option<String>,

    /// Environment variable of the application; NAME alone takes the caller's value, and records
    /// hold only a reference to it. Repeat the flag for more
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = APPLICATION)]
    pub env: Vec<String>,

    /// File of variables, one NAME=VALUE per line, as docker reads it; --env wins. Credentials in
    /// it are kept as references
    #[arg(long, value_name = "FILE", help_heading = APPLICATION)]
    pub env_file: Vec<PathBuf>,

    /// Network of the application: own (loopback only) or host
    #[arg(long, help_heading = APPLICATION)]
    pub network: Option<String>,

    /// Judge trials even if other programs disturbed them; the result marks these trials
    #[arg(long, help_heading = EXPERIMENT)]
    pub accept_noise: bool,

    /// Image that podman or docker starts instead of a command; its arguments follow --
    #[arg(long, value_name = "REF", help_heading = APPLICATION)]
    pub image: Option<String>,

    /// Engine that starts the image: podman or docker [default: whichever has it]
    #[arg(long, value_name = "ENGINE", help_heading = APPLICATION)]
    pub engine: Option<String>,

    /// Compose file with the application (--service) and everything it depends on
    #[arg(long,
        value_name = "FILE",
        requires = "service",
        conflicts_with = "image", help_heading = APPLICATION)]
    pub compose: Option<PathBuf>,

    /// Version of the application, e.g. 1.4.2 [default: the commit of the experiment's directory,
    /// the labels of the image]
    #[arg(long, value_name = "NAME", help_heading = APPLICATION)]
    pub app_version: Option<String>,

    /// Service in the compose file that is the application
    #[arg(long, value_name = "NAME", requires = "compose", help_heading = APPLICATION)]
    pub service: Option<String>,

    #[command(flatten)]
    pub cluster: PodFlags,

    /// The application's command, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

impl ExperimentFlags {
    pub fn is_job(&self) -> bool {
        let from = self.cluster.from.as_ref();
        self.job || from.is_some_and(WorkloadName::is_run)
    }

    /// The experiment file: the named one, else the default file of the working directory.
    pub fn experiment_file(&self) -> Option<PathBuf> {
        let named = self.experiment.clone().or_else(|| self.file.clone());
        let is_said = !self.command.is_empty()
            || self.image.is_some()
            || self.compose.is_some()
            || self.cluster.from.is_some();
        let usual = PathBuf::from(USUAL_FILE);
        named.or_else(|| (!is_said && usual.is_file()).then_some(usual))
    }
}

/// The experiment file that `init` writes.
pub const USUAL_FILE: &str = "loadline.toml";

/// Settings of a matrix that a search chooses itself.
#[derive(Args, Debug, Default, Clone)]
pub struct MatrixFlags {
    /// Memory limit, e.g. 512Mi; several are compared. To check the one you ship: --memory 512Mi
    /// --repeats 20
    #[arg(long, value_name = "SIZE", value_delimiter = ',', help_heading = EXPERIMENT)]
    pub memory: Vec<String>,

    /// Fresh starts of each configuration [default: 1]
    #[arg(long, value_name = "N", help_heading = EXPERIMENT)]
    pub repeats: Option<u32>,
}

impl MatrixFlags {
    pub fn is_given(&self) -> bool {
        self.repeats.is_some() || !self.memory.is_empty()
    }
}

/// The flags of the search.
#[derive(Args, Debug, Default, Clone)]
pub struct SearchFlags {
    /// Smallest memory to try, e.g. 64Mi
    #[arg(long, value_name = "SIZE", help_heading = SEARCH)]
    pub min_memory: Option<String>,

    /// Largest memory to try [default: 1Gi or --heap plus 512Mi, doubled while it fails, as far as
    /// this machine allows]
    #[arg(long, value_name = "SIZE", help_heading = SEARCH)]
    pub max_memory: Option<String>,

    /// Which JVM to answer for: start judges fresh starts after the given warm-up, as after a
    /// deployment; steady judges a warm JVM and lengthens the warm-up, up to 2m, while requests
    /// still get cheaper in the judged part [default: start]
    #[arg(long, value_name = "start|steady", help_heading = SEARCH)]
    pub question: Option<String>,

    /// Soak the answer for this long, e.g. 30m, and report growth
    #[arg(long, value_name = "TIME", help_heading = SEARCH)]
    pub soak: Option<String>,

    /// CPUs of the host that the answer is for: loadline reports what the JVM chooses there, and
    /// `emit` pins any differences
    #[arg(long, value_name = "CPUS", help_heading = SEARCH)]
    pub node: Option<u32>,

    /// Sizes are multiples of this, e.g. 4Mi
    #[arg(long, value_name = "SIZE", help_heading = SEARCH)]
    pub step: Option<String>,

    /// Consecutive passes needed to confirm a size, after the search's own [default: 2]
    #[arg(long, value_name = "N", help_heading = SEARCH)]
    pub confirm: Option<u32>,

    /// Confirm once instead of twice: fewer starts, but more wrong answers
    #[arg(long, conflicts_with = "confirm", help_heading = SEARCH)]
    pub fast: bool,

    /// Margin on top of the confirmed size, e.g. 10%, if no limit can be lowered under a running
    /// trial and sizes are tried one by one [default: 16%]
    #[arg(long, value_name = "PERCENT", help_heading = SEARCH)]
    pub margin: Option<String>,

    /// Number of fresh starts in the proof: at least 19 of 20 must keep the SLO; a miss adds starts
    /// or raises the size [default: 3, more while they are near a bound; 5 with --prices]
    #[arg(long, value_name = "N", help_heading = SEARCH)]
    pub prove: Option<u32>,

    /// Java heap: auto chooses one and ships it, keep leaves it to the application's options, grow
    /// ships only the largest size (-Xmx); or a size, e.g. 96m [default: auto]
    #[arg(long, value_name = "auto|keep|grow|SIZE", help_heading = SEARCH)]
    pub heap: Option<String>,

    /// How the pod gets its CPU: limit, with an equal request; request, without a limit, measured
    /// next to a neighbour that takes all other CPU; or both, a request measured next to that
    /// neighbour and a limit no smaller [default: limit]
    #[arg(long, value_name = "limit|request|both", help_heading = SEARCH)]
    pub cpu_policy: Option<String>,

    /// Search for the cheapest deployment instead, at the prices of an offer (fargate, fargate-arm,
    /// fargate-eks, gke-autopilot, azure-container-apps, own-nodes) or of a price list (CSV)
    #[arg(long, value_name = "OFFER|FILE", help_heading = PRICES)]
    pub prices: Option<String>,

    /// Region of the prices [default: the first in the list]
    #[arg(long, help_heading = PRICES)]
    pub region: Option<String>,

    /// Sizes to choose from instead of the offer's, e.g. 0.5/1Gi,1/2Gi
    #[arg(long, value_name = "CPUS/SIZE", value_delimiter = ',', help_heading = PRICES)]
    pub sizes: Vec<String>,

    /// Headroom to add to the rate, e.g. 20%
    #[arg(long, value_name = "PERCENT", help_heading = SEARCH)]
    pub headroom: Option<String>,

    /// Fewest and most replicas [default: 2..16]
    #[arg(long, value_name = "N..M", help_heading = PRICES)]
    pub replicas: Option<String>,

    /// Replicas that can be lost while the rest still carries the rate
    #[arg(long, value_name = "N", help_heading = PRICES)]
    pub spare: Option<u32>,

    /// Compare collectors, flags and heaps at the size found, with this many trial pairs each (at
    /// least 6)
    #[arg(long, value_name = "PAIRS", help_heading = SEARCH)]
    pub compare: Option<u32>,

    /// Longest time for all trials, e.g. 20m; then the best size so far is the answer
    #[arg(long, value_name = "TIME", help_heading = SEARCH)]
    pub budget: Option<String>,
}

/// The flags of a job (a program that ends), laid over a file.
pub(super) fn overlay_run(app: &mut AppTable, flags: &ExperimentFlags) {
    if flags.is_job() {
        app.ends = Some(true);
    }
    if let Some(CommandWords(words)) = &flags.reset {
        app.reset.clone_from(words);
    }
    if !flags.fresh.is_empty() {
        app.fresh = Some(flags.fresh.clone());
    }
    set_from_flag(&mut app.options_to, "--options-to", &flags.options_to);
    if flags.expect_output.is_some() || flags.expect_file.is_some() {
        let expect = app.expect.get_or_insert_default();
        expect.output = flags.expect_output.clone().or(expect.output.take());
        expect.file = flags.expect_file.clone().or(expect.file.take());
    }
}

/// The flags of metrics, laid over a file.
pub(super) fn overlay_metrics(file: &mut ExperimentFile, flags: &ExperimentFlags) {
    let mut table = file.metrics.take().unwrap_or_default();
    set_from_flag(&mut table.url, "--metrics", &flags.metrics);
    for (name, series) in &flags.metric {
        let series = ValueWithOrigin::from_flag("--metric", series.clone());
        let earlier = table.series.insert(name.clone(), series);
        let is_flag = |earlier| matches!(<&ValueOrigin>::from(earlier), ValueOrigin::Flag(_));
        if earlier.as_ref().is_some_and(is_flag) {
            say!("warning: --metric {name}= is given more than once: the last one counts");
        }
    }
    for (at, (name, command)) in flags.probe.iter().enumerate() {
        if flags.probe[..at].iter().any(|(earlier, _)| earlier == name) {
            say!("warning: --probe {name}= is given more than once: the last one counts");
        }
        table.probe.insert(name.clone(), command.0.clone());
    }
    file.metrics = (table != MetricsTable::default()).then_some(table);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_names_its_kind_or_is_a_path() {
        let ready = |text| split_ready(text).expect(text);
        assert_eq!(ready("tcp:9092").tcp, Some(9092));
        assert_eq!(ready("grpc:9090").grpc, Some(9090));
        assert_eq!(ready("log:a: b").log.as_deref(), Some("a: b"));
        assert_eq!(ready("command:./r.sh 'a b'").command, ["./r.sh", "a b"]);
        for path in ["/health", ":9001/health", "http://localhost:9001/"] {
            let http = ready(path).http.expect("a path");
            assert_eq!(http.inner_value(), path);
        }
    }
}
