//! How to run it again: command, experiment verbatim, machine, versions. Secrets are taken out.

use super::section::Section;
use crate::table::{Table, TableCell, Tone};
use crate::view::ResultView;
use crate::{format, redact, text};

pub fn reproduce_section(view: &ResultView) -> Option<Section> {
    let machine = &view.machine;
    let mut table = Table::new().left("Machine").wrapping("");
    let memory = format::bytes_or(machine.memory);
    let version = machine.version_in_words();
    let version = version.map_or_else(|| format::NONE.to_owned(), |v| text::cell(&v));
    for (name, value) in [
        ("loadline", machine.loadline.as_str()),
        ("Kernel", machine.kernel.as_str()),
        ("CPU", machine.cpu_model.as_str()),
        ("CPUs", machine.cpus.to_string().as_str()),
        ("Memory", memory.as_str()),
        ("cgroup", machine.cgroup.as_str()),
        ("JDK", machine.jdks.join(", ").as_str()),
        ("Version of the application", version.as_str()),
        ("Result", view.id.as_str()),
    ] {
        table.add_row([TableCell::from(name), TableCell::new(value, Tone::Code)]);
    }
    let command: Vec<String> = redact::redact_command(&view.command)
        .iter()
        .map(|a| shell_quoted(a))
        .collect();
    let mut section = Section::new("reproduce", "How to reproduce it")
        .folded()
        .with_verbatim(command.join(" "))
        .with_table(table);
    if !view.experiment.trim().is_empty() {
        section = section
            .with_paragraph("The experiment:")
            .with_verbatim(redact::redact_experiment(&view.experiment));
    }
    Some(section)
}

pub fn shell_quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}
