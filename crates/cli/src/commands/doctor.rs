//! `loadline doctor`: what this machine can measure, tried by doing, and what to fix.

use std::path::Path;

use clap::Args;
use loadline_cgroup::host::Host;
use loadline_cgroup::{Check, Status};
use loadline_host::{Options, blindness, jvm_words, preflight, rootless};
use loadline_jvm::detect::{Found, Jdk, Places};
use loadline_report::table::{Cell, Table, Tone};
use schemars::JsonSchema;
use serde::Serialize;

use super::{json, print, width};
use crate::error::{Error, ErrorKind, Outcome};

/// Show what this machine can measure, and what to fix
#[derive(Args)]
pub struct DoctorArguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Tries everything and prints what works. Fails when something that trials need does not.
pub fn run(arguments: DoctorArguments) -> Result<Outcome, Error> {
    let mut checks = vec![machine()];
    checks.extend(without_root());
    checks.extend(preflight(&Options::default()));
    let found = Found::look(&Places::of_process());
    checks.push(java(&found));
    checks.extend(found.jdks.iter().filter_map(blind));
    print(&if arguments.json {
        json(&document(&checks, &found))?
    } else {
        as_text(&checks, &found)
    })?;
    let broken = checks.iter().filter(|c| c.status == Status::Broken).count();
    match broken {
        0 => Ok(Outcome::Done),
        _ => Err(Error::new(
            ErrorKind::Environment,
            format!(
                "{broken} of {} things that trials need do not work here",
                checks.len()
            ),
        )
        .hint("the column `what to do` above says how to mend each")),
    }
}

/// Whether this machine can measure, in a sentence.
pub fn in_short() -> String {
    let mut checks: Vec<Check> = without_root().into_iter().collect();
    checks.extend(preflight(&Options::default()));
    let are = |status: Status| checks.iter().filter(|c| c.status == status).count();
    match (are(Status::Broken), are(Status::Missing)) {
        (0, 0) => "This machine can measure.".to_owned(),
        (0, missing) => format!(
            "This machine can measure; {missing} of what results could hold will lack: loadline doctor"
        ),
        (broken, _) => format!(
            "This machine cannot measure yet, {broken} of {} things that trials need do not work: loadline doctor",
            checks.len()
        ),
    }
}

/// Only where it does not work; the check of namespaces stands on it.
fn without_root() -> Option<Check> {
    let refusal = rootless::enter().err()?;
    Some(Check {
        name: "trials without root",
        status: Status::Broken,
        detail: refusal.to_string(),
        fix: Some(refusal.hint),
    })
}

fn machine() -> Check {
    let (status, detail) = match Host::read(Path::new("/proc")) {
        Ok(host) => {
            let cpu = host.cpu_model.as_deref().unwrap_or("unknown CPU");
            let (memory, cpus) = (host.memory, host.cpus_allowed.len());
            let swap = if memory.swap_total.as_bytes() == 0 {
                "no swap".to_owned()
            } else {
                format!("swap {}", memory.swap_total)
            };
            (
                Status::Works,
                format!(
                    "Linux {}, {cpus} x {cpu}, {:.1} GiB memory, {swap}",
                    host.kernel,
                    memory.total.as_gib()
                ),
            )
        }
        Err(error) => (Status::Broken, error.to_string()),
    };
    Check {
        name: "machine",
        status,
        detail,
        fix: None,
    }
}

fn java(found: &Found) -> Check {
    let fix = "install one (apt-get install openjdk-17-jdk-headless), or set JAVA_HOME; only applications that are not started by `java` can be measured without";
    match found.jdks.as_slice() {
        [] => Check {
            name: "JDK",
            status: Status::Missing,
            detail: "none found".to_owned(),
            fix: Some(fix.to_owned()),
        },
        jdks => Check {
            name: "JDK",
            status: Status::Works,
            detail: format!("{} found; `java` means {}", jdks.len(), jdks[0].name),
            fix: None,
        },
    }
}

/// A JDK that takes the machine for its own inside any container of this kernel.
fn blind(jdk: &Jdk) -> Option<Check> {
    let (detail, fix) = blindness(jdk)?;
    Some(Check {
        name: "JDK that sees its limits",
        status: Status::Missing,
        detail,
        fix: Some(fix.to_owned()),
    })
}

/// What this machine can measure, as JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Document {
    /// Version of this form.
    schema: u32,
    /// Everything that was tried.
    checks: Vec<CheckForm>,
    /// The JDKs here.
    jdks: Vec<JdkForm>,
}

/// One thing that was tried.
#[derive(Debug, Serialize, JsonSchema)]
struct CheckForm {
    /// What.
    name: String,
    /// `works`, `missing` (less is measured) or `broken` (nothing is).
    status: String,
    /// What was seen.
    detail: String,
    /// What to do; null where nothing has to be done.
    fix: Option<String>,
}

/// One JDK.
#[derive(Debug, Serialize, JsonSchema)]
struct JdkForm {
    /// The name that experiments use.
    name: String,
    /// Its full version.
    version: String,
    /// Who built it.
    vendor: String,
    /// Its virtual machine, HotSpot or OpenJ9.
    vm: String,
    /// The build of the virtual machine by its own words; null for HotSpot, which has the JDK's
    /// version, and for one that did not answer.
    vm_build: Option<String>,
    /// Its directory.
    home: String,
}

fn document(checks: &[Check], found: &Found) -> Document {
    let check = |c: &Check| CheckForm {
        name: c.name.to_owned(),
        status: c.status.to_string(),
        detail: c.detail.clone(),
        fix: c.fix.clone(),
    };
    let jdk = |j: &Jdk| JdkForm {
        name: j.name.clone(),
        version: j.version.full.clone(),
        vendor: j.vendor.clone(),
        vm: j.kind.to_string(),
        vm_build: jvm_words::words(j).map(|words| words.vm_build),
        home: j.home.display().to_string(),
    };
    Document {
        schema: 1,
        checks: checks.iter().map(check).collect(),
        jdks: found.jdks.iter().map(jdk).collect(),
    }
}

/// The virtual machine, with its build where that is not the JDK's version.
fn in_words(jdk: &Jdk) -> String {
    match jvm_words::words(jdk) {
        Some(words) => format!("{} {}", jdk.kind, words.vm_build),
        None => jdk.kind.to_string(),
    }
}

fn as_text(checks: &[Check], found: &Found) -> String {
    let mut table = Table::new()
        .left("what")
        .left("status")
        .wrapping("seen")
        .wrapping("what to do");
    for check in checks {
        let tone = match check.status {
            Status::Works => Tone::Good,
            Status::Missing => Tone::Muted,
            Status::Broken => Tone::Bad,
        };
        let fix = check.fix.clone().unwrap_or_default();
        table.row([
            Cell::from(check.name),
            Cell::new(check.status.to_string(), tone),
            Cell::from(check.detail.as_str()),
            Cell::from(fix),
        ]);
    }
    let mut jdks = Table::new()
        .left("JDK")
        .left("version")
        .left("vendor")
        .left("VM")
        .wrapping("home");
    for jdk in &found.jdks {
        jdks.row(
            [
                jdk.name.clone(),
                jdk.version.full.clone(),
                jdk.vendor.clone(),
                in_words(jdk),
                jdk.home.display().to_string(),
            ]
            .map(Cell::from),
        );
    }
    let unusable: Vec<String> = found
        .unusable
        .iter()
        .map(|e| format!("not usable: {e}\n"))
        .collect();
    if found.jdks.is_empty() {
        return table.terminal(width());
    }
    format!(
        "{}\n{}{}",
        table.terminal(width()),
        jdks.terminal(width()),
        unusable.concat()
    )
}
