//! `loadline doctor`: what this machine can measure, tried by doing, and what to fix.

use std::path::Path;

use clap::Args;
use loadline_cgroup::host::HostFacts;
use loadline_cgroup::{CheckStatus, PreflightCheck};
use loadline_jvm::detect::{DetectedJdks, InstalledJdk, JdkPlaces};
use loadline_report::table::{Table, TableCell, Tone};
use loadline_trial::{SiteOptions, blindness, jvm_words, preflight_checks, rootless};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{CommandOutcome, Error};
use crate::output::AnswerPrinter;
use crate::say::{one_line_json, width};

#[derive(Args)]
pub struct DoctorArguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: DoctorArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    let mut checks = vec![check_machine()];
    checks.extend(without_root());
    checks.extend(preflight_checks(&SiteOptions::default()));
    let found = DetectedJdks::scan_places(&JdkPlaces::of_process());
    checks.push(check_java(&found));
    checks.extend(found.jdks.iter().filter_map(check_blindness));
    out.print_answer(&if arguments.json {
        one_line_json(&doctor_document(&checks, &found))?
    } else {
        checks_text(&checks, &found)
    })?;
    let is_broken = |c: &&PreflightCheck| c.status == CheckStatus::Broken;
    let (broken, all) = (checks.iter().filter(is_broken).count(), checks.len());
    if broken == 0 {
        return Ok(CommandOutcome::Done);
    }
    let what = format!("{broken} of {all} things that trials need do not work here");
    Err(Error::environment(what).with_hint("the column `what to do` above shows how to fix each"))
}

pub fn in_short() -> String {
    let mut checks: Vec<PreflightCheck> = without_root().into_iter().collect();
    checks.extend(preflight_checks(&SiteOptions::default()));
    let are = |status: CheckStatus| checks.iter().filter(|c| c.status == status).count();
    match (are(CheckStatus::Broken), are(CheckStatus::Missing)) {
        (0, 0) => "This machine can measure.".to_owned(),
        (0, missing) => format!(
            "This machine can measure; {missing} kinds of data will be missing: loadline doctor"
        ),
        (broken, _) => format!(
            "This machine cannot measure yet, {broken} of {} things that trials need do not work: loadline doctor",
            checks.len()
        ),
    }
}

fn without_root() -> Option<PreflightCheck> {
    let refusal = rootless::enter_user_namespace().err()?;
    Some(PreflightCheck {
        name: "trials without root",
        status: CheckStatus::Broken,
        detail: refusal.to_string(),
        fix: Some(refusal.hint),
    })
}

fn check_machine() -> PreflightCheck {
    let (status, detail) = match HostFacts::read(Path::new("/proc")) {
        Ok(host) => {
            let cpu = host.cpu_model.as_deref().unwrap_or("unknown CPU");
            let (memory, cpus) = (host.memory, host.cpus_allowed.cpu_count());
            let swap = match memory.swap_total.as_bytes() {
                0 => "no swap".to_owned(),
                _ => format!("swap {}", memory.swap_total),
            };
            let (kernel, gib) = (&host.kernel, memory.total.as_gib());
            let detail = format!("Linux {kernel}, {cpus} x {cpu}, {gib:.1} GiB memory, {swap}");
            (CheckStatus::Works, detail)
        }
        Err(error) => (CheckStatus::Broken, error.to_string()),
    };
    PreflightCheck {
        name: "machine",
        status,
        detail,
        fix: None,
    }
}

fn check_java(found: &DetectedJdks) -> PreflightCheck {
    let fix = "install one (apt-get install openjdk-17-jdk-headless), or set JAVA_HOME; without one only applications that `java` does not start can be measured";
    match found.jdks.as_slice() {
        [] => PreflightCheck {
            name: "JDK",
            status: CheckStatus::Missing,
            detail: "none found".to_owned(),
            fix: Some(fix.to_owned()),
        },
        jdks => PreflightCheck {
            name: "JDK",
            status: CheckStatus::Works,
            detail: format!("{} found; `java` means {}", jdks.len(), jdks[0].name),
            fix: None,
        },
    }
}

/// A JDK that takes the machine for its own inside any container of this kernel.
fn check_blindness(jdk: &InstalledJdk) -> Option<PreflightCheck> {
    let (detail, fix) = blindness(jdk)?;
    Some(PreflightCheck {
        name: "JDK that sees its limits",
        status: CheckStatus::Missing,
        detail,
        fix: Some(fix.to_owned()),
    })
}

/// What this machine can measure, as JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorDocument {
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
    /// The finding.
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
    /// The build of the virtual machine as it reports it; null for HotSpot, which has the JDK's
    /// version, and without an answer.
    vm_build: Option<String>,
    /// Its directory.
    home: String,
}

fn doctor_document(checks: &[PreflightCheck], found: &DetectedJdks) -> DoctorDocument {
    let check = |c: &PreflightCheck| CheckForm {
        name: c.name.to_owned(),
        status: c.status.to_string(),
        detail: c.detail.clone(),
        fix: c.fix.clone(),
    };
    let jdk = |j: &InstalledJdk| JdkForm {
        name: j.name.clone(),
        version: j.version.full.clone(),
        vendor: j.vendor.clone(),
        vm: j.kind.to_string(),
        vm_build: jvm_words::openj9_words(j).map(|words| words.vm_build),
        home: j.home.display().to_string(),
    };
    DoctorDocument {
        schema: 1,
        checks: checks.iter().map(check).collect(),
        jdks: found.jdks.iter().map(jdk).collect(),
    }
}

fn describe_vm(jdk: &InstalledJdk) -> String {
    match jvm_words::openj9_words(jdk) {
        Some(words) => format!("{} {}", jdk.kind, words.vm_build),
        None => jdk.kind.to_string(),
    }
}

fn checks_text(checks: &[PreflightCheck], found: &DetectedJdks) -> String {
    let mut table = Table::new()
        .left("what | status")
        .wrapping("seen | what to do");
    for check in checks {
        let tone = match check.status {
            CheckStatus::Works => Tone::Good,
            CheckStatus::Missing => Tone::Muted,
            CheckStatus::Broken => Tone::Bad,
        };
        let fix = check.fix.clone().unwrap_or_default();
        table.add_row([
            TableCell::from(check.name),
            TableCell::new(check.status.to_string(), tone),
            TableCell::from(check.detail.as_str()),
            TableCell::from(fix),
        ]);
    }
    let mut jdks = Table::new()
        .left("JDK | version | vendor | VM")
        .wrapping("home");
    for jdk in &found.jdks {
        jdks.add_texts([
            jdk.name.clone(),
            jdk.version.full.clone(),
            jdk.vendor.clone(),
            describe_vm(jdk),
            jdk.home.display().to_string(),
        ]);
    }
    let checks = table.to_terminal(width());
    if found.jdks.is_empty() {
        return checks;
    }
    let unusable = found.unusable.iter();
    let unusable: String = unusable.map(|e| format!("not usable: {e}\n")).collect();
    format!("{checks}\n{}{unusable}", jdks.to_terminal(width()))
}
