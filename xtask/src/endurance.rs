//! Endurance: runs services at their answered sizes for an hour and records whether they hold.
//!
//! Owns the load schedule, the records (`records/endurance`) and the rule for "held". Each service is an
//! experiment (`experiments/endurance`); loadline chooses the size and measures. Raw results stay in
//! `build/endurance`, so an interrupted campaign continues where it ended.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::error::Error;
use crate::process::{entries, output_of, text as text_of};

const MINUTES: u64 = 60;
/// Length of a load step in seconds. One step in [`BURST_EVERY`] has twice the rate.
const STEP_SECONDS: u64 = 10;
const BURST_EVERY: u64 = 60;
/// The median anonymous memory of this many last seconds is compared with the budget.
const LAST_SECONDS: usize = 300;
const MIB: f64 = 1_048_576.0;

const PARTS: [&str; 9] = [
    "heap_bytes",
    "metaspace_bytes",
    "code_cache_bytes",
    "stacks_bytes",
    "malloc_bytes",
    "private_files_bytes",
    "other_bytes",
    "kernel_bytes",
    "files_bytes",
];

const SERVICES: &str = "service,limit_mib,options,minutes,requests,outcome,need_mib,oversize_percent,anonymous_mib,budget_anonymous_mib";
const PARTS_HEAD: &str = "service,part,aged_mib,expected_mib,end_mib";

struct EnduranceRun<'a> {
    root: &'a Path,
    name: String,
    minutes: u64,
}

pub fn run(root: &Path, words: &[String]) -> Result<bool, Error> {
    let (minutes, names) = parse_words(words)?;
    let (mut held, mut pages) = (0, Vec::new());
    let names = match names.is_empty() {
        true => services(root)?,
        false => names,
    };
    for name in names {
        let run = EnduranceRun {
            root,
            name,
            minutes,
        };
        let name = &run.name;
        if let Some(missing) = run.missing_program()? {
            println!("SKIP {name}: {missing} is not there; its experiment says how to get it");
            continue;
        }
        let size = run.measured("size", || run.loadline("size"))?;
        let answer = &size["recommendation"];
        if !answer.is_object() {
            println!("{name}: no size was found");
            pages.push(false);
            continue;
        }
        let rate = size["load_in_parts"]["rate_per_second"].as_f64();
        let rate = rate.ok_or_else(|| run.unexpected("size", "no rate"))?;
        let endured = run.measured("run", || run.endure_command(answer, rate))?;
        let page = EndurancePage::new(&run, answer, &endured)?;
        page.write()?;
        println!("{}", page.sentence());
        held += usize::from(page.has_held());
        pages.push(page.has_held());
    }
    println!("{held} of {} held", pages.len());
    Ok(held == pages.len())
}

fn parse_words(words: &[String]) -> Result<(u64, Vec<String>), Error> {
    let Some(at) = words.iter().position(|word| word == "--minutes") else {
        return Ok((MINUTES, words.to_vec()));
    };
    let minutes = words.get(at + 1).and_then(|text| text.parse().ok());
    let minutes = minutes.filter(|minutes| (10..=24 * 60).contains(minutes));
    let minutes = minutes
        .ok_or_else(|| Error::Usage("--minutes takes 10 to 1440, as --minutes 60".to_owned()))?;
    Ok((minutes, [&words[..at], &words[at + 2..]].concat()))
}

fn services(root: &Path) -> Result<Vec<String>, Error> {
    let mut files = entries(&root.join("experiments/endurance"))?;
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    let name = |path: PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
    Ok(files.into_iter().filter_map(name).collect())
}

impl EnduranceRun<'_> {
    fn experiment(&self) -> PathBuf {
        let name = format!("{}.toml", self.name);
        self.root.join("experiments/endurance").join(name)
    }

    fn kept(&self, kind: &str) -> PathBuf {
        let name = format!("{}-{kind}.json", self.name);
        self.root.join("build/endurance").join(name)
    }

    /// The first file of `build` that the experiment names and that is not there.
    fn missing_program(&self) -> Result<Option<String>, Error> {
        let path = self.experiment();
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let words = lines.flat_map(|line| line.split('"'));
        let mut named = words.filter(|word| word.starts_with("build/"));
        let missing = named.find(|word| !self.root.join(word).exists());
        Ok(missing.map(str::to_owned))
    }

    /// What loadline printed for this step, from the last time where there was one.
    fn measured(&self, kind: &str, command: impl Fn() -> Command) -> Result<Value, Error> {
        let path = self.kept(kind);
        let parse = |text: &str| {
            serde_json::from_str(text).map_err(|error| self.unexpected(kind, &error.to_string()))
        };
        if let Ok(text) = fs::read_to_string(&path) {
            return parse(&text);
        }
        let mut command = command();
        let output = output_of(&mut command)?;
        // A missed SLO is a result too.
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Err(Error::Failed {
                command: text_of(&command),
                status: output.status,
                output: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let directory = self.root.join("build/endurance");
        fs::create_dir_all(&directory).map_err(Error::file(&directory))?;
        fs::write(&path, &text).map_err(Error::file(&path))?;
        parse(&text)
    }

    fn unexpected(&self, kind: &str, detail: &str) -> Error {
        let command = format!("loadline {kind} ({})", self.kept(kind).display());
        Error::output(command, detail)
    }

    fn loadline(&self, command: &str) -> Command {
        let mut loadline = Command::new(self.root.join("target/release/loadline"));
        let state = self.root.join("build/endurance/state");
        loadline.args([command, "--wait", "--json", "-f"]);
        loadline.arg(self.experiment()).arg("--state").arg(state);
        loadline
    }

    /// The answered size and options under the proved rate, without native memory tracking.
    fn endure_command(&self, answer: &Value, rate: f64) -> Command {
        let configuration = &answer["configuration"];
        let steps = self.minutes * 60 / STEP_SECONDS;
        let rate = |step| rate * if step % BURST_EVERY == 0 { 2.0 } else { 1.0 };
        let rates = (1..=steps).map(|step| format!("{}/s", rate(step)));
        let rates: Vec<String> = rates.collect();
        let mut run = self.loadline("run");
        run.args(["--repeats", "1", "--accept-noise", "--duration"]);
        run.arg(format!("{}s", steps * STEP_SECONDS));
        run.args(["--rate", &rates.join(",")]);
        run.args(["--memory", &configuration["memory_bytes"].to_string()]);
        let options = options(configuration);
        if !options.is_empty() {
            run.arg("--jvm").arg(format!("answer: {options}"));
        }
        run
    }
}

fn options(configuration: &Value) -> String {
    let options = configuration["jvm_options"].as_array();
    let text = |option: &Value| Some(option["text"].as_str().or(option.as_str())?.to_owned());
    let texts: Vec<String> = options.into_iter().flatten().filter_map(text).collect();
    texts.join(" ")
}

struct EndurancePage<'a> {
    run: &'a EnduranceRun<'a>,
    answer: &'a Value,
    trial: &'a Value,
    seconds: Vec<&'a Value>,
}

impl<'a> EndurancePage<'a> {
    fn new(run: &'a EnduranceRun<'a>, answer: &'a Value, ran: &'a Value) -> Result<Self, Error> {
        let trials = ran["trials"].as_array();
        let trial = trials.and_then(|trials| trials.last());
        let trial = trial.ok_or_else(|| run.unexpected("run", "no trial"))?;
        let seconds = trial["evidence"]["seconds"].as_array();
        Ok(Self {
            run,
            answer,
            trial,
            seconds: seconds.into_iter().flatten().collect(),
        })
    }

    fn limit(&self) -> f64 {
        mib(&self.answer["configuration"]["memory_bytes"])
    }

    fn loaded(&self) -> impl Iterator<Item = &&'a Value> {
        self.seconds.iter().filter(|s| s["offered"].is_number())
    }

    fn requests(&self) -> u64 {
        self.loaded().filter_map(|s| s["achieved"].as_u64()).sum()
    }

    fn has_held(&self) -> bool {
        self.has_lived() && self.trial["verdict"]["class"] == "pass"
    }

    fn has_lived(&self) -> bool {
        let end = &self.trial["evidence"]["exit"]["before_stop"];
        let kills = &self.trial["evidence"]["cgroup"]["oom_kills"];
        end == false && kills.as_u64() == Some(0)
    }

    fn end_in_words(&self) -> String {
        let reason = || self.trial["reason"].as_str().unwrap_or_default().to_owned();
        let is_void = self.trial["verdict"]["class"] == "invalid";
        match (self.has_held(), self.has_lived()) {
            (true, _) => "held".to_owned(),
            (false, true) if is_void => format!("lived, its SLO not judged ({})", reason()),
            (false, true) => format!("lived and MISSED ITS SLO ({})", reason()),
            (false, false) => format!("DIED ({})", reason()),
        }
    }

    /// Median anonymous memory of the last minutes, MiB.
    fn last_anonymous(&self) -> f64 {
        let all: Vec<f64> = self.loaded().map(|s| mib(&s["anon_bytes"])).collect();
        let mut last = all[all.len().saturating_sub(LAST_SECONDS)..].to_vec();
        last.sort_by(f64::total_cmp);
        last.get(last.len() / 2).copied().unwrap_or_default()
    }

    fn budget_lines(&self) -> impl Iterator<Item = &'a Value> {
        let lines = self.answer["budget"]["lines"].as_array();
        lines.into_iter().flatten()
    }

    fn budgeted(&self, is_wanted: impl Fn(&str) -> bool) -> f64 {
        let lines = self.budget_lines();
        let wanted = lines.filter(|line| line["part"].as_str().is_some_and(&is_wanted));
        let need = |line: &Value| mib(&line["measured_bytes"]) + mib(&line["growth_bytes"]);
        wanted.map(need).sum()
    }

    /// Need at the end: what cannot be reclaimed, and the file pages of the budget; MiB.
    fn need(&self) -> f64 {
        let parts = &self.trial["evidence"]["memory"];
        let held = PARTS.iter().filter(|part| **part != "files_bytes");
        held.map(|part| mib(&parts[*part])).sum::<f64>() + self.budgeted(|part| part == "files")
    }

    fn sentence(&self) -> String {
        let need = self.need();
        format!(
            "{}: {:.0}Mi {}: {} after {} requests in {} min; needed {need:.0}Mi in the end, {:.1} % less than its limit; anonymous memory {:.0}Mi of {:.0}Mi",
            self.run.name,
            self.limit(),
            options(&self.answer["configuration"]),
            self.end_in_words(),
            self.requests(),
            self.loaded().count() / 60,
            (1.0 - need / self.limit()) * 100.0,
            self.last_anonymous(),
            self.budgeted(|part| !matches!(part, "kernel" | "files")),
        )
    }

    fn write(&self) -> Result<(), Error> {
        let directory = self.run.root.join("records/endurance");
        fs::create_dir_all(&directory).map_err(Error::file(&directory))?;
        for (extension, text) in [("csv", self.points()), ("md", self.page())] {
            let path = directory.join(format!("{}.{extension}", self.run.name));
            fs::write(&path, text).map_err(Error::file(&path))?;
        }
        let name = &self.run.name;
        let services = directory.join("services.csv");
        replace_rows(&services, SERVICES, name, &[self.service_row()])?;
        let parts = directory.join("parts.csv");
        replace_rows(&parts, PARTS_HEAD, name, &self.part_rows())
    }

    /// One row of [`SERVICES`].
    fn service_row(&self) -> String {
        let configuration = &self.answer["configuration"];
        let outcome = match (self.has_held(), self.has_lived()) {
            (true, _) => "held",
            (false, true) if self.trial["verdict"]["class"] == "invalid" => "lived",
            (false, true) => "missed",
            (false, false) => "died",
        };
        let need = self.need();
        format!(
            "{},{:.0},{},{},{},{outcome},{need:.1},{:.1},{:.1},{:.1}",
            self.run.name,
            self.limit(),
            options(configuration),
            self.loaded().count() / 60,
            self.requests(),
            (self.limit() / need - 1.0) * 100.0,
            self.last_anonymous(),
            self.budgeted(|part| !matches!(part, "kernel" | "files")),
        )
    }

    /// Rows of [`PARTS_HEAD`]: a part in the aged start that made the budget, with the growth
    /// expected, and at the end.
    fn part_rows(&self) -> Vec<String> {
        let row = |line: &Value| {
            let (part, aged) = (line["part"].as_str(), mib(&line["measured_bytes"]));
            let expected = aged + mib(&line["growth_bytes"]);
            let (name, part) = (&self.run.name, part.unwrap_or_default());
            let end = self.at_end(line);
            format!("{name},{part},{aged:.1},{expected:.1},{end:.1}")
        };
        self.budget_lines().map(row).collect()
    }

    fn at_end(&self, line: &Value) -> f64 {
        let parts = &self.trial["evidence"]["memory"];
        match line["part"].as_str().unwrap_or_default() {
            "jvm" => mib(&parts["private_files_bytes"]) + mib(&parts["other_bytes"]),
            part => mib(&parts[format!("{part}_bytes")]),
        }
    }

    /// A point each ten seconds.
    fn points(&self) -> String {
        let mut text =
            "second,requests,anonymous_mib,working_set_mib,memory_mib,p99_ms\n".to_owned();
        let loaded: Vec<_> = self.loaded().collect();
        for (index, seconds) in loaded.chunks(STEP_SECONDS as usize).enumerate() {
            let requests: u64 = seconds.iter().filter_map(|s| s["achieved"].as_u64()).sum();
            let most = |key: &str| seconds.iter().map(|s| mib(&s[key])).fold(0.0, f64::max);
            let p99 = seconds.iter().filter_map(|s| s["p99_ns"].as_f64());
            let _ = writeln!(
                text,
                "{},{requests},{:.1},{:.1},{:.1},{:.1}",
                (index as u64 + 1) * STEP_SECONDS,
                most("anon_bytes"),
                most("working_set_bytes"),
                most("memory_bytes"),
                p99.fold(0.0, f64::max) / 1e6,
            );
        }
        text
    }

    fn page(&self) -> String {
        let mut text = format!("# {}\n\n{}\n\n", self.run.name, self.sentence());
        text.push_str(
            "| part | budget, MiB | expected growth | at the end, MiB |\n|---|---:|---:|---:|\n",
        );
        for line in self.budget_lines() {
            let _ = writeln!(
                text,
                "| {} | {:.1} | {:.1} | {:.1} |",
                line["part"].as_str().unwrap_or_default(),
                mib(&line["measured_bytes"]),
                mib(&line["growth_bytes"]),
                self.at_end(line),
            );
        }
        let _ = writeln!(
            text,
            "\nMeasured with `cargo xtask endurance --minutes {} {}`; points every {STEP_SECONDS} s in [{}.csv]({}.csv).",
            self.run.minutes, self.run.name, self.run.name, self.run.name
        );
        text
    }
}

/// Replaces the rows of one service in a table of all, sorted by name.
fn replace_rows(path: &Path, head: &str, service: &str, rows: &[String]) -> Result<(), Error> {
    let before = fs::read_to_string(path).unwrap_or_default();
    let own = format!("{service},");
    let others = before.lines().skip(1).filter(|row| !row.starts_with(&own));
    let mut all: Vec<&str> = others.chain(rows.iter().map(String::as_str)).collect();
    all.sort_by_key(|row| row.split(',').next());
    let text = format!("{head}\n{}\n", all.join("\n"));
    fs::write(path, text).map_err(Error::file(path))
}

fn mib(bytes: &Value) -> f64 {
    bytes.as_f64().unwrap_or_default() / MIB
}
