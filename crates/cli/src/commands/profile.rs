//! `loadline profile`: access logs to a load profile that `loadline load --profile` replays.

mod input;
pub mod json;
pub mod say;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use loadline_analysis::slo::parse_duration;
use loadline_analysis::text::join_words;
use loadline_experiment::wire::StubFile;
use loadline_files::FileKind;
use loadline_load::har::{is_har, read_har};
use loadline_load::profile::{
    AccessLogFormat, ClassAnswers, LoadProfile, LogSource, ProfileBuilder, RejectedLine,
    RequestTemplates, detect_format, format_by_name, format_names,
};

use self::input::{OpenedLog, cannot_read};
use crate::error::{CommandOutcome, Error};
use crate::files;
use crate::say::{one_line_json, print_data};

/// Arguments of `loadline profile`.
#[derive(Args)]
pub struct ProfileArguments {
    /// Access logs, plain, gzip or zstd; `-` is standard input. They are read in the order of their
    /// first requests. Or one HAR file, to replay its requests with their bodies
    #[arg(required = true)]
    logs: Vec<PathBuf>,
    /// Server that wrote the logs: decides what timestamps and durations mean if the format does
    /// not
    #[arg(long, value_enum)]
    server: Option<LogServer>,
    /// Format of the lines: common, combined, json, ltsv, alb, elb, s3, haproxy, envoy, gorouter,
    /// istio (istio-1.8, istio-1.4), ingress-nginx, traefik, vhost_combined, or the server's own
    /// text, such as '%h %l %u %t "%r" %s %b %D' or '$remote_addr ... $request_time' [default:
    /// detected from the first lines]
    #[arg(long)]
    format: Option<String>,
    /// Length of each interval of the rate, in seconds; at most 604800 intervals are kept
    #[arg(long, default_value_t = 60.0)]
    interval: f64,
    /// Only the busiest stretch of this length, such as 1h: its rates and its requests
    #[arg(long, value_name = "LENGTH", value_parser = parse_length)]
    busiest: Option<Duration>,
    /// File (TOML) with bodies and headers of requests by method and path; these requests are
    /// replayed too
    #[arg(long, value_name = "FILE")]
    templates: Option<PathBuf>,
    /// Also keep POST, PUT, DELETE and others without a template, but without their bodies;
    /// replaying them changes data
    #[arg(long)]
    all_methods: bool,
    /// Replay users with sessions: their number, length and think times are as in the logs. Each
    /// user has a connection and keeps the cookies that the server sets
    #[arg(long)]
    sessions: bool,
    /// Write a stub instead: the answers in the log, with their latencies, sizes and statuses, for
    /// `stub = "FILE"` of a dependency
    #[arg(long, conflicts_with_all = ["templates", "all_methods", "sessions", "json"])]
    stub: bool,
    /// Write the profile to this file instead of stdout; paths of body files are relative to it,
    /// else to the working directory
    #[arg(long, short, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    /// Print JSON instead of the profile that `loadline load --profile` reads
    #[arg(long)]
    json: bool,
}

type Answers = (Vec<ClassAnswers>, u64);

fn parse_length(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| "it is not a length of time; write for example 1h or 15m".to_owned())
}

/// A server that writes access logs.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogServer {
    /// Apache httpd
    Httpd,
    /// nginx
    Nginx,
    /// Tomcat up to 9, also embedded (Spring Boot 2)
    Tomcat9,
    /// Tomcat from 10.1, also embedded (Spring Boot 3)
    Tomcat10,
    /// Jetty, also embedded
    Jetty,
    /// Undertow, also embedded (WildFly)
    Undertow,
}

impl LogServer {
    fn source(self) -> LogSource {
        match self {
            Self::Httpd => LogSource::Httpd,
            Self::Nginx => LogSource::Nginx,
            Self::Tomcat9 => LogSource::Tomcat9,
            Self::Tomcat10 => LogSource::Tomcat10,
            Self::Jetty => LogSource::Jetty,
            Self::Undertow => LogSource::Undertow,
        }
    }
}

pub fn run(arguments: &ProfileArguments) -> Result<CommandOutcome, Error> {
    let intervals = intervals(arguments)?;
    let templates = templates(arguments)?;
    let logs = arguments.logs.iter().map(|path| OpenedLog::open_log(path));
    let mut logs: Vec<_> = logs.collect::<Result<_, _>>()?;
    if let (Some(_), Some(log)) = (intervals, logs.iter().find(|log| !log.can_reread())) {
        let path = log.path.display();
        let problem = format!("--busiest reads logs twice, but {path} is not a file");
        return Err(Error::usage(problem).with_hint("write the log to a file first"));
    }
    if logs.iter().any(|log| is_har(&log.head)) {
        return replay_recording(arguments, &mut logs);
    }
    let format = format(arguments, &logs)?;
    input::sort(&mut logs, &format);
    let builder = || {
        let builder =
            ProfileBuilder::new(format.clone(), arguments.interval, arguments.all_methods);
        let builder = builder.with_templates(templates.clone());
        if arguments.stub {
            builder.with_answers()
        } else {
            builder
        }
    };
    let (mut profile, mut answers) = read(builder(), &mut logs)?;
    if let Some((window, share)) = intervals.and_then(|n| profile.busiest_stretch(n)) {
        say::report_window(&window, share);
        (profile, answers) = read(builder().within_window(window), &mut logs)?;
    }
    if arguments.stub {
        return stub(arguments, profile.origin, answers);
    }
    let seen = profile.observed.clone().unwrap_or_default();
    say::report_observed(&seen, &profile);
    if arguments.sessions {
        profile = profile.with_sessions()?;
    }
    write_profile(arguments, profile)
}

fn write_profile(
    arguments: &ProfileArguments,
    profile: LoadProfile,
) -> Result<CommandOutcome, Error> {
    match &arguments.output {
        _ if arguments.json => print_data(&one_line_json(&json::profile_document(profile))?)?,
        Some(path) => files::write(path, &profile.toml_text()?)?,
        None => print_data(&profile.toml_text()?)?,
    }
    Ok(CommandOutcome::Done)
}

/// A recording has bodies and no rates, so the flags for logs do not apply.
fn replay_recording(
    arguments: &ProfileArguments,
    logs: &mut [OpenedLog],
) -> Result<CommandOutcome, Error> {
    let of_logs = [
        ("--server", arguments.server.is_some()),
        ("--format", arguments.format.is_some()),
        ("--busiest", arguments.busiest.is_some()),
        ("--templates", arguments.templates.is_some()),
        ("--sessions", arguments.sessions),
        ("--stub", arguments.stub),
    ];
    let [log] = logs else {
        let problem = "a HAR file cannot be combined with other files";
        return Err(Error::usage(problem).with_hint(
            "record everything in one file, or merge the profiles: each [[request]] is independent",
        ));
    };
    if let Some((flag, _)) = of_logs.iter().find(|(_, is_given)| *is_given) {
        let path = log.path.display();
        let problem = format!("{flag} is for access logs, but {path} is a HAR file");
        return Err(Error::usage(problem).with_hint(format!("leave out {flag}")));
    }
    let origin = log.path.display().to_string();
    let recorded = read_har(log.text_reader()?, &origin).map_err(|error| {
        let hint = "save the recording again: in the network view of a browser, Export HAR";
        Error::usage(error).with_hint(hint)
    })?;
    say::report_recording(&recorded);
    write_profile(arguments, recorded.profile)
}

fn stub(
    arguments: &ProfileArguments,
    origin: String,
    (seen, left_out): Answers,
) -> Result<CommandOutcome, Error> {
    say::report_answers(&seen, left_out);
    let text = StubFile::from_seen_answers(origin, seen).to_toml();
    let text = text.map_err(Error::environment)?;
    match &arguments.output {
        Some(path) => files::write(path, &text)?,
        None => print_data(&text)?,
    }
    Ok(CommandOutcome::Done)
}

fn intervals(arguments: &ProfileArguments) -> Result<Option<usize>, Error> {
    let interval = arguments.interval;
    if !(interval.is_finite() && interval > 0.0) {
        let problem = "--interval must be above 0";
        return Err(Error::usage(problem).with_hint("it is in seconds: --interval 60"));
    }
    let Some(length) = arguments.busiest else {
        return Ok(None);
    };
    let intervals = length.as_secs_f64() / interval;
    if intervals < 1.0 || intervals.fract() != 0.0 {
        let problem = format!("--busiest must be a multiple of --interval, which is {interval} s");
        let longer = interval * intervals.ceil().max(1.0);
        return Err(Error::usage(problem).with_hint(format!("--busiest {longer}s")));
    }
    Ok(Some(intervals as usize))
}

fn templates(arguments: &ProfileArguments) -> Result<RequestTemplates, Error> {
    let Some(path) = &arguments.templates else {
        return Ok(RequestTemplates::default());
    };
    let text = std::fs::read_to_string(path).map_err(|error| cannot_read(path, &error))?;
    let folder = |file: &Path| file.parent().map(Path::to_owned).unwrap_or_default();
    let beside = arguments.output.as_deref().map(folder).unwrap_or_default();
    RequestTemplates::parse_templates(&text, &folder(path), &beside).map_err(Error::from)
}

fn format(arguments: &ProfileArguments, logs: &[OpenedLog]) -> Result<AccessLogFormat, Error> {
    let source = arguments
        .server
        .map_or(LogSource::Unsaid, LogServer::source);
    if let Some(text) = &arguments.format {
        return format_by_name(text, source).map_err(|error| {
            let problem = if text.contains(['%', '$']) {
                error.to_string()
            } else {
                format!("--format: `{text}` is not a known format")
            };
            Error::usage(problem)
                .with_hint(format!("--format also takes {}", format_names().join(", ")))
        });
    }
    let Some(log) = logs.iter().find(|log| !log.head.trim_ascii().is_empty()) else {
        return Err(Error::usage("the logs are empty").with_hint(input::LOGS));
    };
    let found = detect_format(&log.head, source).map_err(|unknown| {
        // Lines of JSON may be a log with unknown fields, others almost of a known format.
        let kind = FileKind::of_bytes(&log.path, &log.head)
            .filter(|kind| !["JSON", "an access log"].contains(&kind.name));
        if let Some(kind) = kind {
            return files::refuse_kind(&log.path, kind, "an access log");
        }
        let closest = unknown.closest.map(|said| format!("; {said}"));
        let problem = format!(
            "{}: unknown access-log format. First line:\n  {}\ntried: {}{closest}",
            log.path.display(),
            unknown.line,
            format_names().join(", "),
            closest = closest.unwrap_or_default(),
        );
        Error::usage(problem).with_hint(HOW)
    })?;
    say::report_format(&found);
    Ok(found.format)
}

const HOW: &str = "give the server's own log format with --format, for example \
                   '%h %l %u %t \"%r\" %s %b %D' or '$remote_addr [$time_local] \"$request\" \
                   $status'";

fn read(
    mut builder: ProfileBuilder,
    logs: &mut [OpenedLog],
) -> Result<(LoadProfile, Answers), Error> {
    let mut rejected: Option<(PathBuf, RejectedLine)> = None;
    for log in logs.iter_mut() {
        let text = log.text_reader()?;
        let found = builder.read(text);
        found.map_err(|error| cannot_read(&log.path, &error))?;
        let first = builder.rejected_line().filter(|_| rejected.is_none());
        rejected = first
            .map(|line| (log.path.clone(), line.clone()))
            .or(rejected);
    }
    let names = logs.iter().map(|log| log.path.display());
    let names = join_words(names, ", ");
    let answers = builder.take_answers();
    let profile = builder.build_profile(&names);
    let place = rejected.map(|(path, line)| {
        let (path, RejectedLine { number, text }) = (path.display(), line);
        format!("{path}, line {number}: {text}")
    });
    let seen = profile.observed.as_ref();
    if seen.is_none_or(|seen| seen.requests == 0) {
        let shown = place.map_or(String::new(), |place| format!("; the first is\n  {place}"));
        let problem = format!("no line has this format{shown}");
        return Err(Error::usage(problem).with_hint(HOW));
    }
    if let Some(place) = place {
        talk!("not understood: {place}");
    }
    Ok((profile, answers))
}
