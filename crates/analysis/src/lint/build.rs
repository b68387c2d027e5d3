//! The JVMs of a build against the memory that they share.

use loadline_sizing::Bytes;

use super::amounts::heap_of;
use super::{ContainerResources, LintFinding, LintedContainer, Severity, finding};

/// JVMs that a build runs at the same time with the same options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildJvm {
    /// `Gradle's daemon (org.gradle.jvmargs)`.
    pub name: String,
    pub options: Vec<String>,
    pub count: u32,
}

impl BuildJvm {
    /// The largest heap of each: its own, else what a JVM takes of so much memory.
    fn largest_heap(&self, memory: Bytes) -> Option<Bytes> {
        let container = LintedContainer {
            limits: ContainerResources {
                memory: Some(memory),
                ..ContainerResources::default()
            },
            jvm: self.options.clone(),
            ..LintedContainer::default()
        };
        heap_of(&container, &container.options()).map(|heap| heap.max)
    }
}

/// Heaps that do not fit together: each JVM takes its own, or a share of the whole memory.
pub fn check_build(jvms: &[BuildJvm], memory: Bytes) -> Option<LintFinding> {
    let all = |(jvm, heap): &(&BuildJvm, Bytes)| heap.mul_ratio(u64::from(jvm.count), 1);
    // JVMs of one name, as those of several modules, run one after the other: the largest counts.
    let mut heaps: Vec<(&BuildJvm, Bytes)> = Vec::new();
    let own = |jvm: &BuildJvm| jvm.largest_heap(memory);
    for next in jvms.iter().filter_map(|jvm| Some((jvm, own(jvm)?))) {
        let mut known = heaps.iter_mut();
        match known.find(|(known, _)| known.name == next.0.name) {
            Some(known) if all(known) >= all(&next) => {}
            Some(known) => *known = next,
            None => heaps.push(next),
        }
    }
    let sum = heaps.iter().map(all);
    let sum = sum.fold(Bytes::default(), Bytes::saturating_add);
    let part = |(jvm, heap): &(&BuildJvm, Bytes)| match jvm.count {
        1 => format!("{} {heap}", jvm.name),
        count => format!("{count} x {} {heap}", jvm.name),
    };
    let parts: Vec<String> = heaps.iter().map(part).collect();
    let parts = parts.join(", ");
    let problem =
        format!("the heaps of its JVMs may take {sum} together, and there are {memory}: {parts}");
    let hint = "give each less, or give the build more memory; `loadline size --job` measures what it needs";
    (sum > memory).then(|| finding(Severity::Error, problem, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heaps_of_all_jvms_have_to_fit_together() {
        let jvm = |name: &str, options: &[&str], count| BuildJvm {
            name: name.to_owned(),
            options: options.iter().map(|o| (*o).to_owned()).collect(),
            count,
        };
        let build = [
            jvm("Maven itself", &[], 1),
            jvm("test JVMs", &["-Xmx512m"], 2),
        ];
        let said = |mib| check_build(&build, Bytes::from_mib(mib)).map(|f| f.problem);
        let modules = [(); 4].map(|()| jvm("test JVMs", &["-Xmx512m"], 2));
        assert_eq!(check_build(&modules, Bytes::from_mib(1024)), None);
        assert_eq!(said(2048), None, "a quarter is Maven's");
        assert_eq!(
            said(1024).as_deref(),
            Some(
                "the heaps of its JVMs may take 1280Mi together, and there are 1Gi: Maven itself 256Mi, 2 x test JVMs 512Mi"
            )
        );
    }
}
