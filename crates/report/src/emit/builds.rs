//! What a run's own tool reads: settings of Maven, Gradle and Spark, and a job of GitHub Actions.
//!
//! Owns which files the measurement supports. A heap that a JVM chose for itself follows from the
//! limit, so it is written down: elsewhere the JVM would choose another. Sources: Maven, "Configuring
//! Apache Maven" (.mvn/jvm.config: one line of options, comments from 3.9 on only); Surefire,
//! "argLine"; Gradle, "Build environment"; Spark, "Configuration" (memoryOverhead).

use std::path::Path;
use std::time::Duration;

use loadline_analysis::offer::RunPrice;
use loadline_analysis::record::{Configuration, JvmProcess};
use loadline_analysis::text::join_words;
use loadline_sizing::Bytes;
use loadline_sizing::options::words::{TOOL_OPTIONS, join_environment};

use super::yaml::{Yaml, yaml_entry, yaml_list, yaml_map};
use crate::content::shell_quoted;
use crate::format;

/// Main class of Spark's driver, with which `spark-submit` starts it.
const SPARK_DRIVER: &str = "org.apache.spark.deploy.SparkSubmit";

type NamedText = (&'static str, String);

pub struct RunShape<'a> {
    pub name: &'a str,
    pub image: &'a str,
    pub command: &'a [String],
    /// Whether an image was measured: the command then has only the words after its entry point.
    pub is_image: bool,
    /// When it runs, as cron says it: a CronJob instead of a Job.
    pub schedule: Option<&'a str>,
}

pub(super) struct ShippedRun<'a> {
    pub shape: &'a RunShape<'a>,
    pub slug: String,
    pub header: String,
    pub configuration: &'a Configuration,
    /// Of the configuration, without secrets.
    pub options: Vec<&'a str>,
    /// The JVMs of its runs at the answer.
    pub jvms: Vec<&'a JvmProcess>,
    pub prices: &'a [RunPrice],
    pub deadline: (Duration, String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunTool {
    Maven,
    Gradle,
    Spark,
    /// Another build tool: sbt, Ant, make.
    OtherBuild,
}

impl RunTool {
    fn of_command(command: &[String]) -> Option<Self> {
        let program = Path::new(command.first()?).file_name()?.to_str()?;
        match program {
            "mvn" | "mvnw" => Some(Self::Maven),
            "gradle" | "gradlew" => Some(Self::Gradle),
            "spark-submit" => Some(Self::Spark),
            "ant" | "make" | "sbt" => Some(Self::OtherBuild),
            _ => {
                let is_spark = command.iter().any(|word| word == SPARK_DRIVER);
                is_spark.then_some(Self::Spark)
            }
        }
    }
}

/// The files of its tool, and for a build a job that runs it.
pub(super) fn tool_files(run: &ShippedRun<'_>) -> Vec<NamedText> {
    let Some(tool) = RunTool::of_command(run.shape.command) else {
        return Vec::new();
    };
    let settings: Vec<Option<NamedText>> = match tool {
        RunTool::Maven => vec![maven_launcher(run), maven_forks(run)],
        RunTool::Gradle => vec![gradle(run)],
        RunTool::Spark => vec![spark(run)],
        RunTool::OtherBuild => Vec::new(),
    };
    let job = || format!("{}{}", run.header, github_job(run).to_document());
    let build = (tool != RunTool::Spark).then(|| ("github-job.yaml", job()));
    settings.into_iter().chain([build]).flatten().collect()
}

/// The options of Maven's own JVM; without a header, which older launchers take for options.
fn maven_launcher(run: &ShippedRun<'_>) -> Option<NamedText> {
    let (name, _) = run.variable()?;
    (name == "MAVEN_OPTS").then(|| ("jvm.config", format!("{}\n", run.options.join("\n"))))
}

/// The heap of the JVMs that Surefire started: they read neither MAVEN_OPTS nor jvm.config.
fn maven_forks(run: &ShippedRun<'_>) -> Option<NamedText> {
    let heap =
        run.largest_heap(|main| main.starts_with("surefire") || main.ends_with("ForkedBooter"))?;
    // A comment of XML has no two dashes in a row.
    let header = run.header.replace("# ", "  ");
    let header = header.replace("--", "- -").replace("--", "- -");
    let size = heap.to_jvm_size();
    Some((
        "surefire.xml",
        format!(
            "<!--\n{header}  The largest heap of its test JVMs within this limit. With JaCoCo write @{{argLine}} in front.\n-->\n<plugin>\n  <groupId>org.apache.maven.plugins</groupId>\n  <artifactId>maven-surefire-plugin</artifactId>\n  <configuration>\n    <argLine>-Xmx{size}</argLine>\n  </configuration>\n</plugin>\n"
        ),
    ))
}

fn gradle(run: &ShippedRun<'_>) -> Option<NamedText> {
    let heap = |name: &str| run.largest_heap(|main| main.ends_with(name));
    let is_own = run.variable();
    let is_own = is_own.is_some_and(|(name, _)| name == "GRADLE_OPTS");
    let daemon = if is_own {
        Some(run.options.join(" "))
    } else {
        heap("GradleDaemon").map(|heap| format!("-Xmx{}", heap.to_jvm_size()))
    };
    let kotlin = heap("KotlinCompileDaemon").map(|heap| format!("-Xmx{}", heap.to_jvm_size()));
    let lines = [
        ("org.gradle.jvmargs", daemon),
        ("kotlin.daemon.jvmargs", kotlin),
    ];
    let lines = lines.into_iter();
    let lines = lines.filter_map(|(key, value)| Some(format!("{key}={}\n", value?)));
    let lines: String = lines.collect();
    (!lines.is_empty()).then(|| ("gradle.properties", format!("{}{lines}", run.header)))
}

/// In cluster mode the pod of the driver gets both together, so together they are the limit.
fn spark(run: &ShippedRun<'_>) -> Option<NamedText> {
    let name = SPARK_DRIVER.rsplit('.').next().unwrap_or(SPARK_DRIVER);
    let heap = run.largest_heap(|main| main.ends_with(name))?;
    let heap = Bytes::from_mib(heap.as_bytes() >> 20);
    let beside = run.configuration.memory?.saturating_sub(heap).as_bytes() >> 20;
    Some((
        "spark-defaults.conf",
        format!(
            "{}# The driver's; executors of a cluster are other JVMs, and were not measured.\nspark.driver.memory {}\nspark.driver.memoryOverhead {beside}m\n",
            run.header,
            heap.to_jvm_size()
        ),
    ))
}

fn github_job(run: &ShippedRun<'_>) -> Yaml {
    let minutes = run.deadline.0.as_secs().div_ceil(60).max(1);
    let words = run.shape.command.iter().map(|word| shell_quoted(word));
    let mut step = vec![yaml_entry("run", join_words(words, " "))];
    let variable = run.variable();
    step.extend(variable.map(|(name, value)| yaml_entry("env", [yaml_entry(name, value)])));
    let steps = [
        yaml_map([yaml_entry("uses", "actions/checkout@v4")]),
        yaml_map(step),
    ];
    let job = yaml_map([
        yaml_entry("runs-on", "ubuntu-latest").because(runner(run)),
        yaml_entry("timeout-minutes", minutes).because(run.deadline.1.clone()),
        yaml_entry("steps", yaml_list(steps)),
    ]);
    yaml_map([yaml_entry("jobs", [yaml_entry(run.slug.as_str(), job)])])
}

/// What a runner needs, and what a run costs in each class that holds it.
fn runner(run: &ShippedRun<'_>) -> String {
    let Configuration { cpu, memory, .. } = run.configuration;
    let cpu = cpu.map(|cpu| format!("{cpu} CPU"));
    let memory = memory.map(|memory| memory.to_string());
    let needs = join_words(cpu.into_iter().chain(memory), " and ");
    let prices = run.prices.iter().map(|price| {
        let usd = format::three_digits(price.usd);
        format!("; {} on {}: ${usd} a run", price.billed, price.offer)
    });
    let prices: String = prices.collect();
    format!("the smallest class with {needs} besides its own system{prices}")
}

impl ShippedRun<'_> {
    /// The largest heap that a JVM with such a main class or jar allowed itself.
    fn largest_heap(&self, is_meant: impl Fn(&str) -> bool) -> Option<Bytes> {
        let meant = self.jvms.iter().filter(|jvm| is_meant(&jvm.main));
        meant.filter_map(|jvm| jvm.heap_max).max()
    }

    /// The variable that gives the measured options, with its value.
    pub(super) fn variable(&self) -> Option<(&str, String)> {
        let variable = self.configuration.options_variable.as_deref();
        let variable = variable.unwrap_or(TOOL_OPTIONS);
        let value = join_environment(variable, None, &self.options)?;
        (!value.is_empty()).then_some((variable, value))
    }
}
