//! The cluster that trials run in, as an experiment names it.
//!
//! Owns the table's meaning; speaks to none.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::str::FromStr;

use loadline_sizing::Cpus;
use loadline_sizing::units::ParseUnitError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::KubernetesTable;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSettings {
    pub context: Option<String>,
    pub namespace: Option<String>,
    pub trial_image: String,
    pub trial_cpu: TrialCpu,
    pub node_selector: BTreeMap<String, String>,
    /// The RuntimeClass of its pods; `None` is the workload's own, else the cluster's default.
    pub runtime_class: Option<String>,
    pub from: Option<TemplateWorkload>,
    pub slots: Slots,
    pub share_nodes: NonZeroU32,
    pub generators: Option<NonZeroU32>,
}

/// The CPU of loadline's own container, as `1` or `500m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct TrialCpu(pub Cpus);

impl Default for TrialCpu {
    /// Enough for some thousand requests a second.
    fn default() -> Self {
        Self(Cpus::from_whole(1))
    }
}

impl FromStr for TrialCpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cpus: Cpus = text
            .parse()
            .map_err(|error: ParseUnitError| error.to_string())?;
        match cpus.as_millis() {
            0 => Err("its own container needs CPU: at least 100m, to send anything".to_owned()),
            _ => Ok(Self(cpus)),
        }
    }
}

impl TryFrom<String> for TrialCpu {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TrialCpu> for String {
    fn from(of: TrialCpu) -> Self {
        of.0.to_string()
    }
}

/// How many trials run at once, as `3` or `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "SlotsForm", into = "SlotsForm")]
#[schemars(with = "SlotsForm")]
pub enum Slots {
    /// So many.
    Number(NonZeroU32),
    /// As many as there are nodes of one kind with room for a trial when the result is begun.
    Auto,
}

/// A number, or a word in its place.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum SlotsForm {
    /// At least 1.
    Number(u32),
    /// `auto`.
    Word(String),
}

impl Default for Slots {
    fn default() -> Self {
        Self::Number(NonZeroU32::MIN)
    }
}

impl FromStr for Slots {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            number => number.parse().map(Self::Number).map_err(|_| {
                format!("`{number}` is not a number of slots: write at least 1, or auto")
            }),
        }
    }
}

impl TryFrom<SlotsForm> for Slots {
    type Error = String;

    fn try_from(form: SlotsForm) -> Result<Self, String> {
        match form {
            SlotsForm::Number(number) => number.to_string().parse(),
            SlotsForm::Word(word) => word.parse(),
        }
    }
}

impl From<Slots> for SlotsForm {
    fn from(slots: Slots) -> Self {
        match slots {
            Slots::Number(number) => Self::Number(number.get()),
            Slots::Auto => Self::Word("auto".to_owned()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateWorkload {
    pub workload: String,
    pub container: String,
    /// Whether trials may have its secrets, its account and its init containers.
    pub as_production: bool,
}

/// So many slots [`Slots::Auto`] gives at most: more are asked for by their number.
pub const MOST_SLOTS: usize = 64;

/// loadline's own image where none is named: as the Dockerfile's first line builds it.
pub const TRIAL_IMAGE: &str = "localhost/loadline:latest";

impl From<&KubernetesTable> for ClusterSettings {
    fn from(table: &KubernetesTable) -> Self {
        let image = table.trial_image.clone();
        Self {
            context: table.context.clone(),
            namespace: table.namespace.clone(),
            trial_image: image.unwrap_or_else(|| TRIAL_IMAGE.to_owned()),
            trial_cpu: table.trial_cpu.unwrap_or_default(),
            node_selector: table.node_selector.clone(),
            runtime_class: table.runtime_class.clone(),
            from: table.from.clone().map(|workload| TemplateWorkload {
                workload,
                container: table.container.clone().unwrap_or_default(),
                as_production: table.as_production,
            }),
            slots: table.slots.unwrap_or_default(),
            share_nodes: table.share_nodes.unwrap_or(NonZeroU32::MIN),
            generators: table.generators,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_a_number_or_auto_in_files_and_flags() {
        let of = |text: &str| toml::from_str::<KubernetesTable>(text).map(|table| table.slots);
        let three = Slots::Number(NonZeroU32::new(3).expect("three"));
        assert_eq!(of("slots = 3"), Ok(Some(three)));
        assert_eq!(of("slots = \"auto\""), Ok(Some(Slots::Auto)));
        assert_eq!(Slots::from_str("3"), Ok(three));
        for slots in [three, Slots::Auto] {
            let table = KubernetesTable {
                slots: Some(slots),
                ..KubernetesTable::default()
            };
            let text = toml::to_string(&table).expect("it is written");
            assert_eq!(of(&text), Ok(Some(slots)), "{text}");
        }
        for wrong in ["slots = 0", "slots = -1", "slots = \"many\""] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let said = Slots::from_str("many").expect_err("it is none");
        assert!(said.contains("at least 1, or auto"), "{said}");
    }
}
