//! "What does a start cost?": caches against each other, and start time over the CPU limit.
//!
//! Owns the words and tables of `loadline_analysis::startup`, which owns every figure, and what the
//! drawings of this section show. There is nothing to say about results that vary neither the cache
//! nor the CPU.

use loadline_analysis::interval::{Bootstrap, ConfidenceInterval};
use loadline_analysis::record::{Configuration, TrialRecord};
use loadline_analysis::startup::{
    self, ClassSharing, ConfigurationStarts, CpuStudy, PairedComparison, archived_share, boost,
    compare_paired, footprint, ready_seconds, start_cpu_seconds, suggest_probes,
};
use loadline_sizing::{Bytes, Cpus};

use super::groups::ConfigurationNames;
use super::section::Section;
use crate::format;
use crate::table::{Table, TableCell};
use crate::view::ResultView;

/// Limits from which a model of the start time is worth its words: two points fit anything.
const LIMITS: usize = 3;

pub fn startup_section(view: &ResultView) -> Option<Section> {
    let groups = startup::group_starts(&view.trials);
    let names = ConfigurationNames::for_result(view);
    let mut section = Section::new("start", "What does a start cost?");
    for family in families(&groups, startup::is_same_but_sharing) {
        section = with_caches(section, &family, &names);
    }
    for family in families(&groups, is_same_but_cpu) {
        section = with_limits(section, &family);
    }
    (!section.blocks.is_empty()).then_some(section)
}

#[derive(Debug, Clone, PartialEq)]
pub struct CacheFamily {
    pub name: String,
    pub rows: Vec<CacheRow>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CacheRow {
    pub name: String,
    pub is_reference: bool,
    pub start: Option<ConfidenceInterval>,
    pub memory: Option<ConfidenceInterval>,
}

pub fn cache_families(view: &ResultView) -> Vec<CacheFamily> {
    let groups = startup::group_starts(&view.trials);
    let names = ConfigurationNames::for_result(view);
    let family = |family: Family<'_, '_>| {
        let reference = reference(&family)?;
        let row = |compared: &ComparedStarts<'_, '_>| CacheRow {
            name: sharing(compared.group.configuration),
            is_reference: compared.is_reference,
            start: compared.start.map(|paired| paired.ratio),
            memory: compared.memory.map(|paired| paired.ratio),
        };
        Some(CacheFamily {
            name: names.variant(reference.configuration),
            rows: compare(&family, reference).iter().map(row).collect(),
        })
    };
    let all = families(&groups, startup::is_same_but_sharing);
    all.into_iter().filter_map(family).collect()
}

#[derive(Debug, Clone, PartialEq)]
pub struct LimitFamily {
    pub name: String,
    pub study: CpuStudy,
    /// Every start: CPU limit and seconds.
    pub starts: Vec<(Cpus, f64)>,
}

pub fn limit_families(view: &ResultView) -> Vec<LimitFamily> {
    let groups = startup::group_starts(&view.trials);
    let family = |family: Family<'_, '_>| {
        let starts = |group: &&ConfigurationStarts<'_>| -> Vec<(Cpus, f64)> {
            let Some(limit) = group.configuration.cpu else {
                return Vec::new();
            };
            let times = group.trials.iter().filter_map(|trial| ready_seconds(trial));
            times.map(|seconds| (limit, seconds)).collect()
        };
        Some(LimitFamily {
            name: sharing(family[0].configuration),
            study: study(&family)?,
            starts: family.iter().flat_map(starts).collect(),
        })
    };
    let all = families(&groups, is_same_but_cpu);
    all.into_iter().filter_map(family).collect()
}

fn study(family: &Family<'_, '_>) -> Option<CpuStudy> {
    startup::cpu_study(family).filter(|study| study.limits.len() >= LIMITS)
}

type Family<'g, 'r> = Vec<&'g ConfigurationStarts<'r>>;

fn families<'g, 'r>(
    groups: &'g [ConfigurationStarts<'r>],
    is_same: fn(&Configuration, &Configuration) -> bool,
) -> Vec<Family<'g, 'r>> {
    let mut families: Vec<Family<'g, 'r>> = Vec::new();
    for group in groups {
        let configuration = group.configuration;
        let mut known = families.iter_mut();
        match known.find(|family| is_same(family[0].configuration, configuration)) {
            Some(family) => family.push(group),
            None => families.push(vec![group]),
        }
    }
    families.retain(|family| family.len() > 1);
    families
}

fn is_same_but_cpu(one: &Configuration, other: &Configuration) -> bool {
    let plain = |configuration: &Configuration| Configuration {
        label: String::new(),
        cpu: None,
        ..configuration.clone()
    };
    plain(one) == plain(other)
}

/// The reference: the JVM's default, else no sharing at all.
fn reference<'g, 'r>(family: &Family<'g, 'r>) -> Option<&'g ConfigurationStarts<'r>> {
    let of = |wanted| {
        let mut family = family.iter().copied();
        family.find(|group| ClassSharing::for_configuration(group.configuration) == wanted)
    };
    of(ClassSharing::Default).or_else(|| of(ClassSharing::Off))
}

fn with_caches(section: Section, family: &Family<'_, '_>, names: &ConfigurationNames) -> Section {
    let Some(reference) = reference(family) else {
        return section;
    };
    let mut table = Table::new()
        .left("Classes")
        .right("Starts | Start | Start, relative | CPU until ready | From an archive")
        .right("Memory at ready | Memory, relative | PSS | Archive");
    let mut sentences = Vec::new();
    for compared in compare(family, reference) {
        let (start, memory) = (compared.start, compared.memory);
        let (group, is_reference) = (compared.group, compared.is_reference);
        let archived = group.median(archived_share).map(format::as_percent);
        table.add_row([
            sharing(group.configuration).into(),
            group.trials.len().to_string().into(),
            seconds_cell(group.median(ready_seconds)),
            relative(start, is_reference),
            seconds_cell(group.median(start_cpu_seconds)),
            format::or_none(archived).into(),
            mebibytes(group.median(footprint)),
            relative(memory, is_reference),
            mebibytes(group.median(pss)),
            mebibytes(group.median(archive)),
        ]);
        sentences.extend(start.and_then(|s| in_words(group, reference, s, memory)));
    }
    let family_name = names.variant(reference.configuration);
    let relative_to = match ClassSharing::for_configuration(reference.configuration) {
        ClassSharing::Off => "no archive at all",
        ClassSharing::Default | ClassSharing::Cache(..) => "the JDK's own archive",
    };
    section
        .with_paragraph(format!(
            "Start-up caches, {family_name}: relative to {relative_to}, the median of pairs that ran next to each other, with its 95 % interval. Memory is RSS with huge pages, PSS divides shared pages among those who share them."
        ))
        .with_table(table)
        .with_list(sentences)
}

struct ComparedStarts<'g, 'r> {
    group: &'g ConfigurationStarts<'r>,
    is_reference: bool,
    start: Option<PairedComparison>,
    memory: Option<PairedComparison>,
}

fn compare<'g, 'r>(
    family: &Family<'g, 'r>,
    reference: &'g ConfigurationStarts<'r>,
) -> Vec<ComparedStarts<'g, 'r>> {
    let mut rows = family.clone();
    rows.sort_by_key(|group| ClassSharing::for_configuration(group.configuration));
    let compared = |group: &'g ConfigurationStarts<'r>| {
        let is_reference = std::ptr::eq(group, reference);
        let against = |figure: fn(&TrialRecord) -> Option<f64>| {
            let pairs = compare_paired(group, reference, figure, Bootstrap::default());
            pairs.filter(|_| !is_reference)
        };
        ComparedStarts {
            group,
            is_reference,
            start: against(ready_seconds),
            memory: against(footprint),
        }
    };
    rows.into_iter().map(compared).collect()
}

fn sharing(configuration: &Configuration) -> String {
    match ClassSharing::for_configuration(configuration) {
        ClassSharing::Off => "none".to_owned(),
        ClassSharing::Default => "JDK's default".to_owned(),
        ClassSharing::Cache(kind, 0) => format!("{kind}, start only"),
        ClassSharing::Cache(kind, requests) => format!("{kind}, {requests} requests"),
    }
}

fn pss(record: &TrialRecord) -> Option<f64> {
    record.evidence.start.pss.map(|b| b.as_bytes() as f64)
}

fn archive(record: &TrialRecord) -> Option<f64> {
    let cache = record.evidence.cache.as_ref()?;
    Some(cache.archive.as_bytes() as f64)
}

fn in_words(
    group: &ConfigurationStarts<'_>,
    reference: &ConfigurationStarts<'_>,
    start: PairedComparison,
    memory: Option<PairedComparison>,
) -> Option<String> {
    let ClassSharing::Cache(..) = ClassSharing::for_configuration(group.configuration) else {
        return None;
    };
    let (with, without) = (
        group.median(ready_seconds)?,
        reference.median(ready_seconds)?,
    );
    let pairs = format::count_of(start.pairs, "pair");
    let mut words = format!(
        "{}: ready in {} instead of {}, {} (95 % interval {}, {pairs}).",
        sharing(group.configuration),
        format::measured_seconds(with),
        format::measured_seconds(without),
        change(start.ratio.estimate),
        range(start.ratio),
    );
    if let Some(PairedComparison { ratio, .. }) = memory {
        let change = change(ratio.estimate);
        words += &format!(" Memory at ready {change} ({}).", range(ratio));
    }
    if let Some(size) = group.median(archive) {
        words += &format!(" The file has {}.", size_of(size));
    }
    Some(words)
}

fn change(ratio: f64) -> String {
    let share = format::as_percent((ratio - 1.0).abs());
    if ratio < 1.0 {
        format!("{share} less")
    } else {
        format!("{share} more")
    }
}

fn range(ratio: ConfidenceInterval) -> String {
    let end = |value: f64| format!("{:+.1} %", (value - 1.0) * 100.0);
    format!("{} to {}", end(ratio.low), end(ratio.high))
}

fn relative(paired: Option<PairedComparison>, is_reference: bool) -> TableCell {
    match (paired, is_reference) {
        (_, true) => "1".into(),
        (Some(paired), false) => ratio_words(paired.ratio).into(),
        (None, false) => format::NONE.into(),
    }
}

pub fn ratio_words(ratio: ConfidenceInterval) -> String {
    format!(
        "{:.2} ({:.2} to {:.2})",
        ratio.estimate, ratio.low, ratio.high
    )
}

fn seconds_cell(value: Option<f64>) -> TableCell {
    format::or_none(value.map(format::measured_seconds)).into()
}

fn size_of(bytes: f64) -> String {
    format::measured_bytes(Bytes::from_bytes(bytes as u64))
}

fn mebibytes(value: Option<f64>) -> TableCell {
    format::or_none(value.map(size_of)).into()
}

fn with_limits(section: Section, family: &Family<'_, '_>) -> Section {
    let Some(study) = study(family) else {
        return section;
    };
    let mut table = Table::new()
        .right("CPU limit | Start | Predicted without it | Error | CPU until ready")
        .right("Throttled until ready")
        .left("startupProbe | readinessProbe");
    for limit in &study.limits {
        let mut groups = family.iter();
        let group = groups.find(|group| group.configuration.cpu == Some(limit.limit));
        let error = limit.error().map(|e| format!("{:+.1} %", e * 100.0));
        let between = limit.is_between(&study.limits);
        let slowest = group.and_then(|g| g.largest(ready_seconds));
        let probes = suggest_probes(slowest.unwrap_or(limit.measured));
        let probe = |period: u64, failures: u64| {
            let timeout = probes.timeout;
            format!("periodSeconds {period}, failureThreshold {failures}, timeoutSeconds {timeout}")
        };
        table.add_row([
            limit.limit.to_string().into(),
            format::measured_seconds(limit.measured).into(),
            seconds_cell(limit.predicted),
            match error {
                Some(error) if between => error,
                Some(error) => format!("{error} (outside)"),
                None => format::NONE.to_owned(),
            }
            .into(),
            seconds_cell(group.and_then(|g| g.median(start_cpu_seconds))),
            seconds_cell(group.and_then(|g| g.median(throttled_share))),
            probe(probes.startup_period, probes.startup_failures).into(),
            probe(probes.readiness_period, probes.readiness_failures).into(),
        ]);
    }
    section
        .with_paragraph(model_in_words(&study, family))
        .with_table(table)
        .with_list(boosts(&study))
}

fn throttled_share(record: &TrialRecord) -> Option<f64> {
    let throttled = record.evidence.start.throttled;
    throttled.map(|d| d.as_secs_f64())
}

fn model_in_words(study: &CpuStudy, family: &Family<'_, '_>) -> String {
    let model = study.model;
    let between = study.limits.iter();
    let between = between.filter(|limit| limit.is_between(&study.limits));
    let errors = between.filter_map(|limit| limit.error());
    let worst = errors.map(f64::abs).reduce(f64::max);
    let mut words = format!(
        "Start time over the CPU limit, {}: t = {:.2} s + {:.2} s / CPUs.",
        sharing(family[0].configuration),
        model.fixed,
        model.cpu,
    );
    if let Some(worst) = worst {
        let worst = format::as_percent(worst);
        words +=
            &format!(" A limit between others, left out of the fit, is predicted within {worst}.");
    }
    words += &format!(
        " The startupProbe gives a start {} times the slowest that was seen at that limit.",
        startup::START_MARGIN
    );
    words
}

/// What the largest limit measured would buy at each smaller one, during the start alone.
fn boosts(study: &CpuStudy) -> Vec<String> {
    let Some((largest, smaller)) = study.limits.split_last() else {
        return Vec::new();
    };
    let sentence = |limit: &startup::HeldOut| {
        let saved = boost(&study.model, limit.limit.as_f64(), largest.limit.as_f64());
        format!(
            "A start boost from {} to {} CPU would save {} of {}; the CPU time of the start stays the same.",
            limit.limit,
            largest.limit,
            format::measured_seconds(saved),
            format::measured_seconds(limit.measured),
        )
    };
    smaller.iter().map(sentence).collect()
}
