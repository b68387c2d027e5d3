//! What results promised, read for `loadline fleet --measured`.

use std::path::Path;
use std::time::Duration;

use loadline_analysis::interval::median;
use loadline_analysis::record::{TrialPurpose, TrialRecord};
use loadline_analysis::sli::Sli;
use loadline_fleet::promised::{Promise, PromiseCheck, check_promise};
use loadline_fleet::workload::{FleetView, FleetWorkload};
use loadline_report::ResultView;

use crate::error::Error;
use crate::result::view_by_id;

pub struct NamedPromise {
    workload: String,
    promise: Promise,
}

pub fn read(measured: &[String], state: Option<&Path>) -> Result<Vec<NamedPromise>, Error> {
    let one = |text: &String| {
        let Some((workload, id)) = text.split_once('=') else {
            let what = format!("--measured {text}: it names no result");
            return Err(Error::usage(what)
                .with_hint("give NAMESPACE/NAME=RESULT, for example --measured shop/orders=last"));
        };
        let view = view_by_id(id, state)?;
        Ok(NamedPromise {
            workload: workload.to_owned(),
            promise: promise(&view)?,
        })
    };
    measured.iter().map(one).collect()
}

pub fn find_workload<'a>(fleet: &'a FleetView, text: &str) -> Result<&'a FleetWorkload, Error> {
    let workloads = fleet.workloads.iter();
    let mut found: Vec<&FleetWorkload> = workloads.filter(|w| w.name.is_meant_by(text)).collect();
    // A workload's name does not mean its sidecar.
    if found.iter().any(|w| w.jvm.is_some() || w.traffic.is_some()) {
        found.retain(|w| w.jvm.is_some() || w.traffic.is_some());
    }
    match found.as_slice() {
        [one] => Ok(one),
        [] => {
            let what = format!("no running workload is called {text}");
            Err(Error::usage(what).with_hint("give NAMESPACE/NAME as `loadline fleet` lists it"))
        }
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|w| format!("{}/{}/{}", w.name.namespace, w.name.name, w.name.container))
                .collect();
            let what = format!("{text} has several containers");
            Err(Error::usage(what).with_hint(format!("give one: {}", names.join(", "))))
        }
    }
}

pub fn hold_promises(
    fleet: &FleetView,
    promises: &[NamedPromise],
) -> Result<Vec<PromiseCheck>, Error> {
    let one = |named: &NamedPromise| {
        let workload = find_workload(fleet, &named.workload)?;
        Ok(check_promise(workload, &named.promise))
    };
    promises.iter().map(one).collect()
}

fn promise(view: &ResultView) -> Result<Promise, Error> {
    let Some(answer) = &view.recommendation else {
        let what = format!("{} recommends nothing, so it promised nothing", view.title);
        return Err(Error::usage(what)
            .with_hint("name a result of `loadline size` that found an answer: loadline list"));
    };
    let size = answer.configuration.memory;
    let is_own = |t: &&TrialRecord| {
        t.purpose == TrialPurpose::Prove
            && t.configuration.memory == size
            && t.configuration.label == answer.configuration.label
            && t.verdict.is_evidence()
    };
    let starts: Vec<&TrialRecord> = view.trials.iter().filter(is_own).collect();
    let slis = starts.iter().map(|t| Sli::from_record(t));
    let slis: Vec<Sli> = slis
        .collect::<Result<_, _>>()
        .map_err(|e| Error::environment(e).with_hint("measure it again"))?;
    let of = |figure: fn(&Sli) -> Option<f64>| {
        let values: Vec<f64> = slis.iter().filter_map(figure).collect();
        median(&values)
    };
    let seconds = |figure| of(figure).map(Duration::from_secs_f64);
    Ok(Promise {
        result: view.id.clone(),
        memory: size,
        memory_peak: slis.iter().filter_map(|s| s.peak_working_set).max(),
        cpu_per_request: seconds(|s| Some(s.cpu_per_request?.as_secs_f64())),
        p99: seconds(|s| Some(s.p99?.as_secs_f64())),
        rate_per_second: of(|s| s.achieved_rate),
    })
}
