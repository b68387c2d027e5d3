//! The environment, read once: settings of the launcher and options of the JVM.

use std::ffi::{OsStr, OsString};

use loadline_sizing::{Bytes, Cpus};

use crate::init::InitOptions;

const PARENT_DEATH: [(&str, i32); 5] = [
    ("TERM", libc::SIGTERM),
    ("INT", libc::SIGINT),
    ("HUP", libc::SIGHUP),
    ("QUIT", libc::SIGQUIT),
    ("KILL", libc::SIGKILL),
];

pub struct Environment {
    pub(crate) variables: Vec<(OsString, OsString)>,
    flags: Vec<(&'static str, OsString)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LauncherMode {
    Apply,
    /// Say them, start java unchanged.
    Report,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogMode {
    Text,
    Json,
    Quiet,
}

impl Environment {
    pub fn from_process() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
            flags: Vec::new(),
        }
    }

    pub fn from_pairs(pairs: &[(&str, &str)]) -> Self {
        let pair = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
        Self {
            variables: pairs.iter().map(pair).collect(),
            flags: Vec::new(),
        }
    }

    /// With flags of the command line, which win over variables and are not passed on.
    pub fn with_flags(mut self, flags: &[(&'static str, OsString)]) -> Self {
        self.flags.extend_from_slice(flags);
        self
    }

    pub fn raw_value(&self, name: &str) -> Option<&OsStr> {
        let flag = self.flags.iter().rfind(|(n, _)| *n == name);
        let variable = || self.variables.iter().find(|(n, _)| n == OsStr::new(name));
        let flag = flag.map(|(_, value)| value);
        let value = flag.or_else(|| variable().map(|(_, value)| value))?;
        (!value.is_empty()).then_some(value)
    }

    pub fn text_value(&self, name: &str) -> Option<String> {
        self.raw_value(name)
            .map(|value| value.to_string_lossy().into_owned())
    }

    pub fn is_on(&self, name: &str) -> bool {
        self.is_one_of(name, ["1", "true", "on", "yes"])
    }

    pub fn is_off(&self, name: &str) -> bool {
        self.is_one_of(name, ["0", "false", "off", "no"])
    }

    fn is_one_of(&self, name: &str, words: [&str; 4]) -> bool {
        let value = self.text_value(name).unwrap_or_default();
        words.iter().any(|word| value.eq_ignore_ascii_case(word))
    }

    /// `LOADLINE_MODE`; an unknown value means apply.
    pub fn launcher_mode(&self) -> LauncherMode {
        match self.text_value("LOADLINE_MODE").as_deref() {
            Some("off") => LauncherMode::Off,
            Some("report") => LauncherMode::Report,
            _ => LauncherMode::Apply,
        }
    }

    pub fn log_mode(&self) -> LogMode {
        match self.text_value("LOADLINE_LOG").as_deref() {
            Some("json") => LogMode::Json,
            Some("quiet") => LogMode::Quiet,
            _ => LogMode::Text,
        }
    }

    pub fn init_options(&self) -> InitOptions {
        let name = self.text_value("LOADLINE_PARENT_DEATH").unwrap_or_default();
        let signal = PARENT_DEATH.iter().find(|(known, _)| *known == name);
        InitOptions {
            is_group: self.is_on("LOADLINE_SIGNAL_GROUP"),
            parent_death: signal.map_or(0, |(_, signal)| *signal),
        }
    }

    /// A note for each setting with an invalid value; its default applies.
    pub fn odd_values(&self) -> Vec<String> {
        let settings: [(&str, &[&str]); 4] = [
            ("LOADLINE_MODE", &["apply", "report", "off"]),
            ("LOADLINE_LOG", &["text", "json", "quiet"]),
            ("LOADLINE_INIT", &["auto", "always", "never"]),
            ("LOADLINE_PARENT_DEATH", &PARENT_DEATH.map(|(name, _)| name)),
        ];
        let odd = |(name, values): (&str, &[&str])| {
            let value = self
                .text_value(name)
                .filter(|value| !values.contains(&value.as_str()))?;
            let values = values.join(", ");
            Some(format!(
                "{name} is `{value}`, which is not one of {values}; the default holds"
            ))
        };
        settings.into_iter().filter_map(odd).collect()
    }

    pub fn memory_override(&self) -> Result<Option<Bytes>, String> {
        let text = self.text_value("LOADLINE_MEMORY");
        let parsed = text.map(|text| text.parse().map_err(|e| format!("LOADLINE_MEMORY: {e}")));
        parsed.transpose()
    }

    pub fn cpu_override(&self) -> Result<Option<Cpus>, String> {
        let text = self.text_value("LOADLINE_CPUS");
        let parsed = text.map(|text| text.parse().map_err(|e| format!("LOADLINE_CPUS: {e}")));
        parsed.transpose()
    }
}
