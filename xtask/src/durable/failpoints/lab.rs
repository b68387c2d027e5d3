//! The place where commands are broken: what they begin with, and what must hold afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::super::{Ended, Programs, Whole, call, copy};
use super::{Calls, Fault, Outcome, Point};
use crate::error::Error;
use crate::process::{empty, stdout_of};

const ALIVE: i32 = 120;

/// A result as `export` wrote it, with a jar as application: input for `emit`.
const KEPT: &str = "records/2026-11-20-spring-web-size/result.json.gz";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scenario {
    First,
    Resume,
    Report,
    Emit,
    Remove,
}

pub(super) const SCENARIOS: [Scenario; 5] = [
    Scenario::First,
    Scenario::Resume,
    Scenario::Report,
    Scenario::Emit,
    Scenario::Remove,
];

pub(super) struct Lab<'a> {
    programs: &'a Programs,
    pub base: PathBuf,
    loadline: String,
    kept: String,
}

impl<'a> Lab<'a> {
    pub fn new(programs: &'a Programs) -> Result<Self, Error> {
        let root = crate::root();
        let beside = programs.loadline.parent().unwrap_or(Path::new("."));
        let base = beside.join("failpoints");
        empty(&base)?;
        let loadline = base.join("loadline");
        fs::hard_link(&programs.loadline, &loadline).map_err(Error::file(&loadline))?;
        let lab = Self {
            programs,
            loadline: loadline.display().to_string(),
            kept: root.join(KEPT).display().to_string(),
            base,
        };
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(lab.base.join("fault"))
            .arg(root.join("tests/faults/fault.c"));
        stdout_of(&mut cc)?;
        lab.templates()?;
        Ok(lab)
    }

    /// A store with a finished result, and a result with a loadline that died in its second trial.
    fn templates(&self) -> Result<(), Error> {
        let whole = self.base.join("whole");
        empty(&whole)?;
        let run = self.words(&self.programs.run("2"), &whole.join("state"));
        expect(&call(&whole, &run)?, "run")?;
        // It dies where its second trial gets its event log. The number of that call among all is not
        // the same each time: a group that is busy is removed more than once.
        let half = self.base.join("half");
        empty(&half)?;
        let logs = format!("openat {}", half.join("state/logs/").display());
        let run = self.words(&self.programs.run("2"), &half.join("state"));
        let fault = ["--only", &logs, "--at", "2", "--with", "kill"];
        call(&half, &self.below(&half.join("points"), &fault, &run))?;
        let finished = self.programs.look_at(&half.join("state"))?.finished;
        if finished.len() == 1 {
            return Ok(());
        }
        let what = format!("{finished:?} were finished when the second trial began");
        Err(Error::Usage(what))
    }

    fn words(&self, arguments: &[impl AsRef<str>], state: &Path) -> Vec<String> {
        let mut words = vec![self.loadline.clone()];
        words.extend(arguments.iter().map(|word| word.as_ref().to_owned()));
        // Behind the subcommand.
        words.splice(2..2, ["--state".to_owned(), state.display().to_string()]);
        words
    }

    fn broken(&self, report: &Path, fault: &Fault, words: &[String]) -> Vec<String> {
        let at = fault.at.to_string();
        let at = ["--at", &at, "--with", fault.kind];
        let fault = [counted(fault.calls), at.as_slice()].concat();
        self.below(report, &fault, words)
    }

    fn below(&self, report: &Path, fault: &[&str], words: &[String]) -> Vec<String> {
        let mut below = vec![self.base.join("fault").display().to_string()];
        below.extend(["--report".to_owned(), report.display().to_string()]);
        below.extend(fault.iter().map(|word| (*word).to_owned()));
        below.push("--".to_owned());
        below.extend_from_slice(words);
        below
    }

    fn command(&self, scenario: Scenario, directory: &Path) -> Vec<String> {
        let state = directory.join("state");
        let to = directory.join("to").display().to_string();
        let own = |arguments: &[&str]| self.words(arguments, &state);
        match scenario {
            Scenario::First => self.words(&self.programs.run("1"), &state),
            Scenario::Resume => own(&["resume", "last", "--wait"]),
            Scenario::Report => own(&["report", "last", "-o", &to]),
            Scenario::Emit => own(&["emit", &self.kept, "--to", &to, "--force"]),
            Scenario::Remove => own(&["clean", "--older", "0d", "--yes"]),
        }
    }

    fn prepare(&self, scenario: Scenario, directory: &Path) -> Result<(), Error> {
        empty(directory)?;
        let template = match scenario {
            Scenario::First | Scenario::Emit => None,
            Scenario::Resume => Some("half"),
            Scenario::Report | Scenario::Remove => Some("whole"),
        };
        if let Some(template) = template {
            let from = self.base.join(template).join("state");
            copy(&from, &directory.join("state"))?;
        }
        let to = directory.join("to");
        match scenario {
            Scenario::Report => fs::write(&to, "an older report").map_err(Error::file(&to)),
            Scenario::Emit => fs::create_dir(&to)
                .and_then(|()| fs::write(to.join("Dockerfile"), "an older one"))
                .map_err(Error::file(&to)),
            _ => Ok(()),
        }
    }

    pub fn points(&self, scenario: Scenario, calls: Calls) -> Result<Vec<Point>, Error> {
        let directory = self.base.join(format!("{scenario:?}"));
        self.prepare(scenario, &directory)?;
        let list = self.base.join("points");
        let words = self.below(&list, counted(calls), &self.command(scenario, &directory));
        expect(&call(&directory, &words)?, "a command that nobody disturbs")?;
        let mut points = points(&list)?;
        if scenario == Scenario::First {
            // From its first trial on it does what `resume` does.
            let is_part = |point: &Point| point.role == "trial-part";
            points.truncate(points.iter().position(is_part).unwrap_or(points.len()));
        }
        Ok(points)
    }

    pub fn outcome(&self, worker: usize, fault: &Fault) -> Result<Outcome, Error> {
        let directory = self.base.join(format!("worker-{worker}"));
        self.prepare(fault.scenario, &directory)?;
        let list = self.base.join(format!("points-{worker}"));
        let command = self.command(fault.scenario, &directory);
        let ended = call(&directory, &self.broken(&list, fault, &command))?;
        let point = points(&list)?.pop();
        let is_mute = point.as_ref().is_some_and(|point| point.what == "stderr");
        let mut wrong = told(&ended, fault, is_mute);
        match fault.scenario {
            Scenario::First | Scenario::Resume => {
                wrong.extend(self.after_trials(fault, &directory, &ended, &command)?);
            }
            Scenario::Report | Scenario::Emit => {
                wrong.extend(self.after_writing(fault, &directory, &command)?);
            }
            Scenario::Remove => wrong.extend(self.after_removal(&directory, &command)?),
        }
        Ok(Outcome { point, wrong })
    }

    /// No finished trial is lost, and the answer equals an undisturbed run's.
    fn after_trials(
        &self,
        fault: &Fault,
        directory: &Path,
        ended: &Ended,
        command: &[String],
    ) -> Result<Vec<String>, Error> {
        let state = directory.join("state");
        let mut wrong = Vec::new();
        let before = match state.join("loadline.db").exists() {
            true => self.programs.look_at(&state)?,
            false => Whole::default(),
        };
        wrong.extend(before.wrong);
        let printed = ended.stderr.lines();
        let printed = printed.filter(|line| line.starts_with("run ") && line.contains(" #"));
        let printed = printed.filter_map(|line| line.split('#').nth(1)?.split(' ').next());
        let printed: BTreeSet<&str> = printed.collect();
        let kept = usize::from(fault.scenario == Scenario::Resume);
        let finished = &before.finished;
        if finished.len() < printed.len().max(kept) {
            wrong.push(format!("{printed:?} were finished, {finished:?} are"));
        }
        let listed = call(directory, &self.words(&["list", "--json"], &state))?;
        let again = match has_result(&listed) {
            true => self.words(&["resume", "last", "--wait"], &state),
            false => command.to_vec(),
        };
        let again = call(directory, &again)?;
        if again.code != 0 {
            wrong.push(format!("it does not go on: {}", again.stderr));
        }
        let show = self.words(&["show", "last", "--json"], &state);
        let shown = call(directory, &show)?;
        let passed = passed(&shown.stdout);
        if passed != (1..=1 + kept as u64).collect() {
            wrong.push(format!("another answer: starts that passed {passed:?}"));
        }
        let after = self.programs.look_at(&state)?;
        wrong.extend(after.wrong);
        if !after.finished.is_superset(&before.finished) {
            wrong.push("what was finished was lost later".to_owned());
        }
        let clean = call(directory, &self.words(&["clean"], &state))?;
        if clean.code != 0 {
            wrong.push(format!("clean: {}", clean.stderr));
        }
        for name in names(&state.join("trials"))? {
            wrong.push(format!("files of a trial are left: {name}"));
        }
        Ok(wrong)
    }

    fn after_writing(
        &self,
        fault: &Fault,
        directory: &Path,
        command: &[String],
    ) -> Result<Vec<String>, Error> {
        let mut wrong = Vec::new();
        let whole = contents(&self.base.join(format!("{:?}", fault.scenario)).join("to"))?;
        let old = ["an older report", "an older one"];
        for (name, bytes) in contents(&directory.join("to"))? {
            let is_old = old.iter().any(|old| old.as_bytes() == bytes);
            // A killed writer leaves a temporary file, which the next one removes.
            let is_beside = name.starts_with(".loadline-") && name.ends_with(".part");
            if !is_old && !is_beside && whole.get(&name) != Some(&bytes) {
                wrong.push(format!("half of a file is left: to/{name}"));
            }
        }
        let again = call(directory, command)?;
        if again.code != 0 || contents(&directory.join("to"))? != whole {
            let said = again.stderr;
            wrong.push(format!("it is not written the second time: {said}"));
        }
        let mut more = names(directory)?;
        more.retain(|name| !["state", "to"].contains(&name.as_str()));
        wrong.extend(more.iter().map(|name| format!("{name} is left")));
        Ok(wrong)
    }

    /// The result exists whole or not at all; a second removal leaves nothing behind.
    fn after_removal(&self, directory: &Path, command: &[String]) -> Result<Vec<String>, Error> {
        let state = directory.join("state");
        let mut wrong = Vec::new();
        // Logs without a row may be left until the next removal; never rows without their logs.
        let before = self.programs.look_at(&state)?;
        let is_orphan = |text: &&String| text.ends_with("belongs to no finished trial");
        wrong.extend(before.wrong.iter().filter(|text| !is_orphan(text)).cloned());
        if ![0, 2].contains(&before.finished.len()) {
            wrong.push(format!("half of it was removed: {:?}", before.finished));
        }
        let again = call(directory, command)?;
        if again.code != 0 {
            wrong.push(format!("it cannot be removed: {}", again.stderr));
        }
        let after = self.programs.look_at(&state)?;
        wrong.extend(after.wrong);
        if !after.finished.is_empty() {
            wrong.push("it was not removed".to_owned());
        }
        Ok(wrong)
    }

    /// Control groups of trials without an owner that `clean` leaves. Processes parallel to this
    /// lab make such groups too, also later: only new ones count.
    pub fn left(&self) -> Result<Vec<String>, Error> {
        let mut left = ownerless()?;
        let whole = self.base.join("whole");
        let clean = self.words(&["clean"], &whole.join("state"));
        expect(&call(&whole, &clean)?, "clean")?;
        let after = ownerless()?;
        left.retain(|group| after.contains(group));
        Ok(left)
    }
}

fn ownerless() -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    let root = Path::new("/sys/fs/cgroup");
    for top in names(root)? {
        let top = root.join(top);
        let owner = |name: &str| name.split('-').nth(3).map(str::to_owned);
        let is_alone =
            |name: &str| owner(name).is_none_or(|pid| !Path::new("/proc").join(pid).exists());
        let mut groups = names(&top)?;
        groups.retain(|name| name.starts_with("loadline-") && is_alone(name));
        all.extend(
            groups
                .iter()
                .map(|name| top.join(name).display().to_string()),
        );
    }
    Ok(all)
}

fn counted(calls: Calls) -> &'static [&'static str] {
    match calls {
        Calls::Changes => &[],
        Calls::Reads => &["--reads", "1"],
    }
}

/// Faults of a command's end; `is_mute` if the broken call wrote its messages.
fn told(ended: &Ended, fault: &Fault, is_mute: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    if ended.code == ALIVE {
        wrong.push("something of it outlived it".to_owned());
    }
    if ended.stderr.contains("panicked") {
        wrong.push(format!("it panicked: {}", ended.stderr));
    }
    if ended.code == 124 {
        wrong.push(format!("it hangs: {}", ended.stderr));
    }
    let was_killed = fault.kind == "kill" && ended.code == 137;
    let is_clear = ended.stderr.contains("error: ") && ended.stderr.contains("hint: ");
    if ended.code != 0 && !was_killed && !is_clear && !is_mute {
        let (code, said) = (ended.code, &ended.stderr);
        let what = format!("code {code}, and it says no reason or no way out: {said}");
        wrong.push(what);
    }
    wrong
}

fn expect(ended: &Ended, what: &str) -> Result<(), Error> {
    match ended.code {
        0 => Ok(()),
        code => Err(Error::output(
            what,
            format!("code {code}: {}", ended.stderr),
        )),
    }
}

fn points(list: &Path) -> Result<Vec<Point>, Error> {
    let text = fs::read(list).map_err(Error::file(list))?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(Point::of).collect())
}

fn has_result(listed: &Ended) -> bool {
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
    let results = listed["results"].as_array();
    results.is_some_and(|all| !all.is_empty())
}

fn passed(shown: &str) -> BTreeSet<u64> {
    let shown: Value = serde_json::from_str(shown).unwrap_or_default();
    let trials = shown["trials"].as_array().into_iter().flatten();
    let passed = trials.filter(|trial| trial["verdict"]["class"] == "pass");
    let repeats = passed.filter_map(|trial| trial["repeat"].as_u64());
    repeats.collect()
}

fn names(directory: &Path) -> Result<BTreeSet<String>, Error> {
    if !directory.is_dir() {
        return Ok(BTreeSet::new());
    }
    let read = fs::read_dir(directory).map_err(Error::file(directory))?;
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    Ok(read.flatten().map(name).collect())
}

fn contents(place: &Path) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let mut found = BTreeMap::new();
    if place.is_file() {
        found.insert(String::new(), fs::read(place).map_err(Error::file(place))?);
    }
    for name in names(place)? {
        let path = place.join(&name);
        found.insert(name, fs::read(&path).map_err(Error::file(&path))?);
    }
    Ok(found)
}
