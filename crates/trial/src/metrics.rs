//! Metrics during the measure phase: one sample a second, from inside the application's network.
//!
//! Owns the threads that ask, and the rule for a missing sample. A slow answer counts for each second
//! that it took; a failed one is missing, and judged as the worst.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadline_analysis::metric_text::{MetricSelector, has_samples};
use loadline_analysis::record::{InvalidReason, MeasurementFailure, MetricEvidence};
use loadline_client::{Agent, Error, Trust};
use loadline_protocol::TrialOrder;
use loadline_sys::{LinkNameSpaceType, move_into_link_name_space};

use crate::container::AppContainer;
use crate::cpus;
use crate::halt::{self, HaltReason};
use crate::program::{ProgramSpec, end_within};

const PACE: Duration = Duration::from_secs(1);
const SLICE: Duration = Duration::from_millis(20);
/// Starved applications took up to 2.1 s for 28 KB.
const ANSWER: Duration = Duration::from_secs(5);
/// A thousand times a usual answer.
const LARGEST: u64 = 16 << 20;
const LONGEST_OUTPUT: u64 = 64 << 10;

pub enum MetricSource {
    Endpoint {
        agent: Agent,
        url: String,
        series: Vec<(String, MetricSelector)>,
    },
    Command {
        name: String,
        words: Vec<String>,
        program: ProgramSpec,
    },
}

#[derive(Debug, Clone, PartialEq)]
enum NoSample {
    /// The application may be too busy.
    Late(String),
    /// No size cures it, if it never goes well.
    Wrong(String),
}

type Sample = Result<f64, NoSample>;

impl MetricSource {
    fn names(&self) -> Vec<String> {
        match self {
            Self::Endpoint { series, .. } => series.iter().map(|(name, _)| name.clone()).collect(),
            Self::Command { name, .. } => vec![name.clone()],
        }
    }

    fn ask(&self) -> Vec<Sample> {
        match self {
            Self::Endpoint { agent, url, series } => {
                let text = get_text(agent, url);
                let sample = |selector| sample_in(text.as_ref().map_err(Clone::clone)?, selector);
                series
                    .iter()
                    .map(|(_, selector)| sample(selector))
                    .collect()
            }
            Self::Command { words, program, .. } => vec![run_probe(words, program)],
        }
    }
}

fn get_text(agent: &Agent, url: &str) -> Result<String, NoSample> {
    // A proxy of the user's environment does not lead into the trial's network.
    let request = agent.get(url).config().proxy(None).build();
    let mut answer = request.call().map_err(|error| match error {
        Error::Timeout(_) => NoSample::Late(format!("no answer within {} s", ANSWER.as_secs())),
        Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            NoSample::Wrong("connection refused".to_owned())
        }
        other => NoSample::Late(other.to_string()),
    })?;
    let status = answer.status().as_u16();
    if status != 200 {
        let why = format!("{url} answered with status {status}");
        return Err(if status < 500 {
            NoSample::Wrong(why)
        } else {
            NoSample::Late(why)
        });
    }
    let body = answer.body_mut().with_config().limit(LARGEST);
    let text = body.lossy_utf8(true).read_to_string();
    let text = text.map_err(|e| NoSample::Late(format!("the answer broke off: {e}")))?;
    if has_samples(&text) {
        Ok(text)
    } else {
        let is_html = text.trim_start().starts_with('<');
        let what = if is_html {
            "an HTML page"
        } else {
            "a text without metrics"
        };
        Err(NoSample::Wrong(format!(
            "{url} answered with {what}, not with metrics in Prometheus or OpenMetrics text"
        )))
    }
}

fn sample_in(text: &str, selector: &MetricSelector) -> Sample {
    match selector.read_value(text) {
        Some(value) if value.is_finite() => Ok(value),
        Some(value) => Err(NoSample::Late(format!("it was {value}"))),
        None => {
            let near = selector.nearest_names(text).join(", ");
            Err(NoSample::Wrong(format!(
                "`{selector}` is not among the metrics; the nearest are {near}"
            )))
        }
    }
}

/// Its last word that is a number is the sample.
fn run_probe(words: &[String], program: &ProgramSpec) -> Sample {
    let mut child = end_well(words, program)?;
    let output = child.stdout.take().map_or_else(Vec::new, read_written);
    let output = String::from_utf8_lossy(&output);
    let numbers = output.split_whitespace().rev();
    let mut numbers = numbers.filter_map(|word| word.parse::<f64>().ok());
    let number = numbers.find(|number| number.is_finite());
    number.ok_or_else(|| NoSample::Wrong(format!("`{}` printed no number", words.join(" "))))
}

/// Why a command that says by its exit code whether the application is ready says no.
pub(crate) fn command_refusal(words: &[String], program: &ProgramSpec) -> Option<String> {
    match end_well(words, program) {
        Ok(_) => None,
        Err(NoSample::Late(why) | NoSample::Wrong(why)) => Some(why),
    }
}

/// A command that was run to its end as the application's account, with code 0.
fn end_well(words: &[String], program: &ProgramSpec) -> Result<Child, NoSample> {
    let command = words.join(" ");
    let wrong = |why: String| NoSample::Wrong(format!("`{command}` {why}"));
    let mut child = program
        .side_command(words)
        .ok_or(std::io::ErrorKind::NotFound.into())
        .and_then(|mut command| command.stdout(Stdio::piped()).spawn())
        .map_err(|e| wrong(format!("could not be started: {e}")))?;
    match end_within(&mut child, ANSWER).map_err(|e| wrong(e.to_string()))? {
        None => {
            let why = format!("`{command}` did not end within {} s", ANSWER.as_secs());
            Err(NoSample::Late(why))
        }
        Some(status) if !status.success() => Err(wrong(format!("ended with {status}"))),
        Some(_) => Ok(child),
    }
}

/// The output so far, up to [`LONGEST_OUTPUT`]. A process that left the group may hold the pipe open, so
/// reading does not wait for its end.
fn read_written(pipe: ChildStdout) -> Vec<u8> {
    let mut output = Vec::new();
    if rustix::io::ioctl_fionbio(&pipe, true).is_ok() {
        // At an open pipe's end this fails, after the bytes before it were read.
        let _ = pipe.take(LONGEST_OUTPUT).read_to_end(&mut output);
    }
    output
}

/// The samples of a source so far.
struct MetricSeries {
    metrics: Vec<MetricEvidence>,
    /// What each lacks that never had a sample.
    wrong: Vec<Option<String>>,
}

/// Threads that read; they end with it.
pub(crate) struct MetricReaders {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<MetricSeries, String>>>,
}

impl MetricReaders {
    pub(crate) fn start_reading(
        order: &TrialOrder,
        container: &dyn AppContainer,
        pinned: &[u32],
    ) -> Result<Self, HaltReason> {
        let mut readers = Self {
            stop: Arc::default(),
            threads: Vec::new(),
        };
        for source in metric_sources(order)? {
            let network = container.application_network();
            let network = network.namespace_path().map(File::open).transpose();
            let network =
                network.map_err(halt::step_failed("opening the trial's network namespace"))?;
            let (stop, pinned) = (Arc::clone(&readers.stop), pinned.to_vec());
            let read = move || {
                cpus::pin_this_thread(&pinned);
                let enter = |n: File| {
                    move_into_link_name_space(n.as_fd(), Some(LinkNameSpaceType::Network))
                };
                if let Some(Err(errno)) = network.map(enter) {
                    return Err(format!(
                        "entering the application's network namespace: {errno}"
                    ));
                }
                Ok(read_source(&source, &stop))
            };
            let thread = std::thread::Builder::new()
                .name("metrics".to_owned())
                .spawn(read);
            readers
                .threads
                .push(thread.map_err(halt::step_failed("starting a thread for metrics"))?);
        }
        Ok(readers)
    }

    /// All samples, and why they are void.
    pub(crate) fn finish_reading(mut self) -> (Vec<MetricEvidence>, Option<MeasurementFailure>) {
        self.stop.store(true, Ordering::Relaxed);
        let (mut metrics, mut failure) = (Vec::new(), None);
        for thread in std::mem::take(&mut self.threads) {
            match thread.join() {
                Ok(Ok(series)) => {
                    for (metric, wrong) in series.metrics.into_iter().zip(series.wrong) {
                        let void = wrong.map(|wrong| {
                            let why = format!("the metric {} has no sample: {wrong}", metric.name);
                            MeasurementFailure::new(InvalidReason::Metrics, why)
                        });
                        failure = failure.or(void);
                        metrics.push(metric);
                    }
                }
                Ok(Err(why)) => failure = Some(halt::own_failure(why)),
                Err(_) => failure = Some(halt::own_failure("reading the metrics failed")),
            }
        }
        (metrics, failure)
    }
}

impl Drop for MetricReaders {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Whether each metric has a sample now; else why one has none.
pub(crate) fn missing_sample(sources: &[MetricSource]) -> Option<String> {
    let mut each = sources
        .iter()
        .flat_map(|s| s.names().into_iter().zip(s.ask()));
    each.find_map(|(name, sample)| match sample.err()? {
        NoSample::Late(why) | NoSample::Wrong(why) => Some(format!("no sample of {name}: {why}")),
    })
}

pub(crate) fn metric_sources(order: &TrialOrder) -> Result<Vec<MetricSource>, HaltReason> {
    let Some(metrics) = &order.metrics else {
        return Ok(Vec::new());
    };
    let program = ProgramSpec::from_order(order);
    let probe = |(name, words): (&String, &Vec<String>)| MetricSource::Command {
        name: name.clone(),
        words: words.clone(),
        program: program.clone(),
    };
    let mut sources: Vec<MetricSource> = metrics.probes.iter().map(probe).collect();
    if let Some(url) = &metrics.url {
        sources.push(MetricSource::Endpoint {
            agent: loadline_client::agent("--metrics", url, &Trust::default(), ANSWER)?,
            url: url.clone(),
            series: metrics.series.clone().into_iter().collect(),
        });
    }
    Ok(sources)
}

fn read_source(source: &MetricSource, stop: &AtomicBool) -> MetricSeries {
    let metric = |name| MetricEvidence {
        name,
        ..MetricEvidence::default()
    };
    let metrics: Vec<MetricEvidence> = source.names().into_iter().map(metric).collect();
    let mut series = MetricSeries {
        wrong: vec![None; metrics.len()],
        metrics,
    };
    let (begin, mut second) = (Instant::now(), 0u32);
    loop {
        while begin.elapsed() < PACE * second {
            if stop.load(Ordering::Relaxed) {
                return series;
            }
            std::thread::sleep(SLICE);
        }
        let samples = source.ask();
        let now = u32::try_from(begin.elapsed().as_secs()).unwrap_or(u32::MAX);
        let seconds = now.max(second) + 1 - second;
        second += seconds;
        series.add_samples(samples, seconds);
    }
}

impl MetricSeries {
    fn add_samples(&mut self, samples: Vec<Sample>, seconds: u32) {
        let each = self.metrics.iter_mut().zip(&mut self.wrong);
        for ((metric, wrong), sample) in each.zip(samples) {
            let has_none = metric.missing() == metric.values.len();
            *wrong = match &sample {
                Err(NoSample::Wrong(why)) if has_none => Some(why.clone()),
                Ok(_) => None,
                Err(_) => wrong.take(),
            };
            if let Err(NoSample::Wrong(why) | NoSample::Late(why)) = &sample {
                metric.last_failure = Some(why.clone());
            }
            let value = sample.ok();
            metric.values.extend((0..seconds).map(|_| value));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn program() -> ProgramSpec {
        let me = (
            rustix::process::getuid().as_raw(),
            rustix::process::getgid().as_raw(),
        );
        ProgramSpec {
            uid: me.0,
            gid: me.1,
            directory: "/".into(),
            env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
            ..ProgramSpec::default()
        }
    }

    fn probe(script: &str) -> Sample {
        let words = ["/bin/sh", "-c", script].map(str::to_owned);
        run_probe(&words, &program())
    }

    #[test]
    fn the_last_number_that_a_command_prints_is_the_sample() {
        assert_eq!(probe("echo lag 12; echo total: 42 records"), Ok(42.0));
        let why = |script| format!("{:?}", probe(script).expect_err(script));
        assert!(why("echo NaN").contains("printed no number"));
        assert!(why("echo 5; exit 3").contains("exit status: 3"));
        assert!(why("exec sleep 60").contains("did not end within"));
    }

    #[test]
    fn a_command_that_ends_with_0_says_that_the_application_is_ready() {
        let refusal = |word: &str| command_refusal(&[word.to_owned()], &program());
        assert_eq!(refusal("/bin/true"), None);
        let why = refusal("/bin/false").expect("not yet");
        assert!(why.contains("exit status: 1"), "{why}");
    }

    /// Waiting for the end of its pipe would last for ever: it ends when this test writes.
    #[test]
    fn a_process_that_outlives_a_probe_holds_nothing_up() {
        let directory = tempfile::tempdir().expect("a directory");
        let fifo = directory.path().join("fifo");
        let made = Command::new("mkfifo").arg(&fifo).status();
        assert!(made.expect("mkfifo").success());
        let place = directory.path().display();
        let script = format!(
            "cd {place}; setsid sh -c 'echo > left; read end < fifo' & while [ ! -e left ]; do sleep 0.01; done; echo 7"
        );
        assert_eq!(probe(&script), Ok(7.0));
        std::fs::write(&fifo, "end\n").expect("the process reads");
    }

    #[test]
    fn a_metric_is_wrong_until_its_first_sample_and_a_late_answer_never_is() {
        let metric = MetricEvidence {
            name: "lag".to_owned(),
            ..MetricEvidence::default()
        };
        let mut series = MetricSeries {
            metrics: vec![metric],
            wrong: vec![None],
        };
        series.add_samples(
            vec![Err(NoSample::Wrong("connection refused".to_owned()))],
            1,
        );
        assert_eq!(series.wrong[0].as_deref(), Some("connection refused"));
        series.add_samples(vec![Ok(5.0)], 2);
        series.add_samples(
            vec![Err(NoSample::Wrong("connection refused".to_owned()))],
            1,
        );
        assert_eq!(series.wrong[0], None);
        assert_eq!(series.metrics[0].values, [None, Some(5.0), Some(5.0), None]);
        let lag = "lag".parse().expect("a selector");
        assert_eq!(sample_in("lag 5", &lag), Ok(5.0));
        assert!(matches!(sample_in("lag NaN", &lag), Err(NoSample::Late(_))));
        assert!(
            matches!(sample_in("lags 5", &lag), Err(NoSample::Wrong(why)) if why.contains("lags"))
        );
    }
}
