//! A project as an experiment file: the keys with where each is from.
//!
//! Owns the text of `loadline.toml`. Values are written by the TOML library, comments by hand.

use std::fmt::Write;

use super::{Project, StartMethod};

impl Project {
    pub fn to_toml(&self) -> String {
        let mut text =
            "# What this service promises, and how it is tried: `loadline verify` reads it.\n\
             # Every key: docs/reference/experiment.schema.json (loadline schema experiment).\n\n"
                .to_owned();
        push_key(
            &mut text,
            "slo",
            toml_string(&self.slo.value),
            &self.slo.from,
        );
        if let Some(manifest) = &self.manifest {
            text += "\n# Limits, JVM options, environment and probes are read from it.\n";
            let file = toml_string(&manifest.value.file.display().to_string());
            let table = match &manifest.value.container {
                None => file,
                Some(container) => format!(
                    "{{ file = {file}, workload = {}, container = {} }}",
                    toml_string(&manifest.value.workload),
                    toml_string(container)
                ),
            };
            push_key(&mut text, "manifest", table, &manifest.from);
        }
        text += "\n[app]\n";
        match &self.starts.value {
            StartMethod::Command(command) => {
                let words: Vec<String> = command.iter().map(|word| toml_string(word)).collect();
                let list = format!("[{}]", words.join(", "));
                push_key(&mut text, "command", list, &self.starts.from);
                text += "directory = \".\" # where this file lies\n";
            }
            StartMethod::Image(image) => {
                push_key(&mut text, "image", toml_string(image), &self.starts.from)
            }
        }
        if self.load.is_none() {
            text += "ends = true # a job: judged by its exit, its time and its memory\n";
        }
        // What the manifest's probe asks is read from there.
        let is_probe = |from: &str| from.starts_with("the probe");
        if let Some(ready) = self.ready.as_ref().filter(|r| !is_probe(&r.from)) {
            let table = format!("{{ http = {} }}", toml_string(&ready.value));
            push_key(&mut text, "ready", table, &ready.from);
        }
        if let Some(needs) = &self.needs {
            text += "\n# What it needs next to it.\n[compose]\n";
            let names: Vec<String> = needs.value.needs.iter().map(|n| toml_string(n)).collect();
            push_key(
                &mut text,
                "file",
                toml_string(&needs.value.file),
                &needs.from,
            );
            let _ = writeln!(text, "services = [{}]", names.join(", "));
        }
        if let Some(load) = &self.load {
            text += "\n[load]\n";
            push_key(
                &mut text,
                "url",
                toml_string(&load.url.value),
                &load.url.from,
            );
            push_key(
                &mut text,
                "rate",
                toml_string(&load.rate.value),
                &load.rate.from,
            );
        }
        if let Some((cpu, memory)) = &self.limits {
            text += "\n[limits]\n";
            push_key(&mut text, "cpu", toml_string(&cpu.value), &cpu.from);
            push_key(
                &mut text,
                "memory",
                toml_string(&memory.value),
                &memory.from,
            );
        }
        text
    }

    pub fn describe_guesses(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut say = |what: &str, value: String, from: &str| {
            lines.push(format!("{what}: {value} ({from})"));
        };
        if let Some(tool) = &self.tool {
            say("build", tool.value.tool_name().to_owned(), &tool.from);
        }
        let starts = match &self.starts.value {
            StartMethod::Command(command) => command.join(" "),
            StartMethod::Image(image) => image.clone(),
        };
        say("start", starts, &self.starts.from);
        if let Some(manifest) = &self.manifest {
            let file = manifest.value.file.display().to_string();
            say("manifest", file, &manifest.from);
        }
        if let Some(ready) = &self.ready {
            say("ready", ready.value.clone(), &ready.from);
        }
        if let Some(needs) = &self.needs {
            say("needs", needs.value.needs.join(", "), &needs.from);
        }
        if let Some(load) = &self.load {
            say("load", load.url.value.clone(), &load.url.from);
            say("rate", load.rate.value.clone(), &load.rate.from);
        }
        say("slo", self.slo.value.clone(), &self.slo.from);
        if let Some((cpu, memory)) = &self.limits {
            let both = format!("{} CPU, {}", cpu.value, memory.value);
            say("limits", both, &memory.from);
        }
        lines
    }
}

fn push_key(text: &mut String, name: &str, value: String, from: &str) {
    let from: String = from.chars().filter(|c| !c.is_control()).collect();
    let _ = writeln!(text, "{name} = {value} # {from}");
}

fn toml_string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
