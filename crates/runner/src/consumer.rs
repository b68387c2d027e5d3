//! The option that every consumer's JVM gets: it ends when it runs out of memory.
//!
//! If the working thread of a consumer dies of an OutOfMemoryError, the process goes on answering for
//! its metrics, and nothing starts it again. Measured: at 92Mi one answered 70 of 76 scrapes, with its
//! lag at NaN.

use loadline_analysis::record::{Configuration, JvmOption, ValueProvenance};
use loadline_jvm::detect::{DetectedJdks, InstalledJdk, JdkPlaces};
use loadline_sizing::options::gate;
use loadline_sizing::{JdkRelease, Vm};

use crate::command::{AssembledCommand, assemble};
use loadline_experiment::Experiment;

const FLAG: &str = "ExitOnOutOfMemoryError";

/// Adds the option to every configuration of a consumer, if all its JVMs know it and neither the
/// command nor its environment names it.
pub fn end_on_out_of_memory(experiment: &mut Experiment, jdks: &DetectedJdks, places: &JdkPlaces) {
    let takes_option = |configuration: &Configuration| {
        let assembled = assemble(experiment, configuration, jdks, places);
        assembled.is_ok_and(|command| is_known(command.jdk.as_ref()) && !is_named(&command))
    };
    let mut all = experiment.configurations().into_iter();
    if experiment.load.is_timed() && all.all(|configuration| takes_option(&configuration)) {
        experiment.base.jvm_options.push(JvmOption {
            text: format!("-XX:+{FLAG}"),
            provenance: ValueProvenance::Loadline,
        });
    }
}

fn is_known(jdk: Option<&InstalledJdk>) -> bool {
    let hotspot = jdk.filter(|jdk| jdk.kind == Vm::HotSpot);
    let version = hotspot.and_then(|jdk| jdk.version.full.parse().ok());
    version.is_some_and(|version| gate::is_known(JdkRelease::for_hotspot(version), FLAG))
}

fn is_named(command: &AssembledCommand) -> bool {
    let variables = command.app.app_environment().values();
    let mut texts = command.command_line().iter().chain(variables);
    texts.any(|text| text.contains(FLAG))
}
