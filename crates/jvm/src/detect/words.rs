//! A JVM's own properties after its start: `java -XshowSettings:properties -version`.
//!
//! Owns the options and the parsing; `loadline_trial` starts it. Needed for OpenJ9, because no file
//! has its build. Facts: the launcher prints `    name = value` on stderr, JDK 7 and later; Debian
//! 17.0.15, Temurin 25.0.3, OpenJ9 25.

/// Options that make a JVM print its properties and end. OpenJ9 makes a shared class cache in the
/// user's directory otherwise; HotSpot refuses the word, so only OpenJ9 gets it.
pub const ASK_OPENJ9: [&str; 3] = [
    "-Xshareclasses:none",
    "-XshowSettings:properties",
    "-version",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaProperties {
    /// `java.vm.name`: `Eclipse OpenJ9 VM`, `OpenJDK 64-Bit Server VM`.
    pub vm: String,
    /// `java.vm.version`, which names the build of the virtual machine: `openj9-0.51.0`,
    /// `25.0.3+9-LTS`.
    pub vm_build: String,
    /// `java.runtime.version`: `25+27`.
    pub runtime: String,
    pub vendor: String,
}

impl JavaProperties {
    /// Reads what it printed; `None` when the properties are not there (it did not start).
    pub fn from_output(text: &str) -> Option<Self> {
        let property = |name: &str| {
            let mut lines = text
                .lines()
                .filter_map(|line| line.trim().split_once(" = "));
            let (_, value) = lines.find(|(key, _)| *key == name)?;
            let printable = value.trim().chars().filter(|c| !c.is_control());
            Some(printable.collect::<String>())
        };
        Some(Self {
            vm: property("java.vm.name")?,
            vm_build: property("java.vm.version")?,
            runtime: property("java.runtime.version")?,
            vendor: property("java.vendor").unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_stands_among_the_properties() {
        let text = "Property settings:\n    java.runtime.version = 17.0.15+6-Debian-1deb12u1\n    java.vendor = Debian\n    java.vm.name = OpenJDK 64-Bit Server VM\n    java.vm.version = 17.0.15+6-Debian-1deb12u1\n    java.vm.version.date = x\n";
        let words = JavaProperties::from_output(text).expect("all are there");
        assert_eq!(words.vm_build, "17.0.15+6-Debian-1deb12u1");
        assert!(!words.vm.contains("J9"));
        // OpenJ9 25 as it was built from source (cf92035774).
        let text = "Property settings:\n    java.fullversion = 25-internal-adhoc.root.jdk\n    java.runtime.version = 25-internal-adhoc.root.jdk\n    java.vendor = Eclipse OpenJ9\n    java.vm.name = Eclipse OpenJ9 VM\n    java.vm.version = HEAD-cf92035774\n";
        let words = JavaProperties::from_output(text).expect("all are there");
        assert_eq!(words.vm_build, "HEAD-cf92035774");
        assert!(words.vm.contains("J9"));
        assert_eq!(
            JavaProperties::from_output("Error: Could not create the Java Virtual Machine."),
            None
        );
    }
}
