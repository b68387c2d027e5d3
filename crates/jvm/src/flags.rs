//! The flags of a JVM as `-XX:+PrintFlagsFinal` prints them.
//!
//! Owns the arguments that ask for them and the text form (JDK 8 and 9+); the caller runs the
//! JVM. Source: JVMFlag::print_on, openjdk/jdk:src/hotspot/share/runtime/flags/jvmFlag.cpp.

use std::collections::BTreeMap;

/// One flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// The type as HotSpot names it: `bool`, `size_t`, `uintx`, `ccstr`, `double`.
    pub kind: String,
    /// The value as printed; empty for an unset string.
    pub value: String,
    /// Who set it.
    pub origin: Origin,
}

/// Who set a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Nobody.
    Default,
    /// The JVM, from the machine and its limits.
    Ergonomic,
    /// The command line.
    CommandLine,
    /// Anything else: an environment variable, an option file, management, attach. On JDK 8
    /// everything that is not the default.
    Other,
}

/// All flags by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    by_name: BTreeMap<String, Flag>,
}

/// What to run to see the flags that `java` would use with these options. The flags are on
/// stdout, the version on stderr; limits are those of the process that is started.
pub fn print_command(java: &std::path::Path, options: &[String]) -> Vec<String> {
    let mut command = vec![java.to_string_lossy().into_owned()];
    command.extend_from_slice(options);
    command.extend(["-XX:+PrintFlagsFinal".to_owned(), "-version".to_owned()]);
    command
}

impl Flags {
    /// Reads the text. Lines that are no flag are left out; a text without any gives no flags.
    pub fn parse(text: &str) -> Self {
        let by_name = text.lines().filter_map(parse_line).collect();
        Self { by_name }
    }

    /// Whether there is none: the JVM refused its options or is no HotSpot.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// One flag.
    pub fn get(&self, name: &str) -> Option<&Flag> {
        self.by_name.get(name)
    }

    /// The value of a number flag; `None` when there is no such flag or it is no whole number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.value.parse().ok()
    }

    /// The value of a `bool` flag.
    pub fn is_on(&self, name: &str) -> Option<bool> {
        self.get(name)?.value.parse().ok()
    }

    /// All flags in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Flag)> {
        self.by_name
            .iter()
            .map(|(name, flag)| (name.as_str(), flag))
    }
}

/// `   size_t MaxHeapSize   = 132120576   {product} {ergonomic}`; JDK 8 has `:=` for what is not
/// the default and no second brace.
fn parse_line(line: &str) -> Option<(String, Flag)> {
    let (head, rest) = line.split_once('=')?;
    let changed = head.ends_with(':') || head.ends_with('+');
    let mut words = head.trim_end_matches([':', '+']).split_whitespace();
    let (kind, name) = (words.next()?, words.next()?);
    let brace = rest.find('{')?;
    if words.next().is_some() || !rest.trim_end().ends_with('}') {
        return None;
    }
    let origin = match rest[brace..]
        .rsplit('{')
        .next()?
        .trim_end()
        .trim_end_matches('}')
    {
        "default" => Origin::Default,
        "ergonomic" => Origin::Ergonomic,
        "command line" => Origin::CommandLine,
        _ if rest[brace..].matches('{').count() > 1 || changed => Origin::Other,
        _ => Origin::Default,
    };
    let flag = Flag {
        kind: kind.to_owned(),
        value: rest[..brace].trim().to_owned(),
        origin,
    };
    Some((name.to_owned(), flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    // JDK 25.0.3 and 17.0.15 on 2 CPUs, `-Xmx300m`; JDK 8 lines as in its documentation.
    const LINES: &str = "\
[Global flags]
    ccstr AOTCache                                 =                                           {product} {default}
   size_t G1HeapRegionSize                         = 4194304                                   {product} {ergonomic}
   double MaxRAMPercentage                         = 25.000000                                 {product} {default}
   size_t MaxHeapSize                              = 314572800                                 {product} {command line}
     bool UseG1GC                                  = true                                      {product} {ergonomic}
     intx CICompilerCount                          = 2                            {product} {environment}
    uintx InitialHeapSize                         := 264241152       {product}
    uintx ParallelGCThreads                        = 8               {product}
     bool UseSVE                                   = false          {ARCH product} {default}
ccstrlist OnOutOfMemoryError                       = kill -9 %p; echo = done                   {product} {command line}
openjdk version \"25.0.3\" 2026-04-21 LTS
";

    #[test]
    fn flags_have_value_and_origin() {
        let flags = Flags::parse(LINES);
        assert_eq!(flags.number("MaxHeapSize"), Some(300 << 20));
        assert_eq!(
            flags.get("MaxHeapSize").unwrap().origin,
            Origin::CommandLine
        );
        assert_eq!(flags.is_on("UseG1GC"), Some(true));
        assert_eq!(flags.get("UseG1GC").unwrap().origin, Origin::Ergonomic);
        assert_eq!(flags.get("AOTCache").unwrap().value, "");
        assert_eq!(flags.get("MaxRAMPercentage").unwrap().kind, "double");
        assert_eq!(flags.get("CICompilerCount").unwrap().origin, Origin::Other);
        assert_eq!(
            flags.get("OnOutOfMemoryError").unwrap().value,
            "kill -9 %p; echo = done"
        );
        assert_eq!(flags.iter().count(), 10);
    }

    #[test]
    fn flags_of_jdk_8_say_only_whether_they_changed() {
        let flags = Flags::parse(LINES);
        assert_eq!(flags.get("InitialHeapSize").unwrap().origin, Origin::Other);
        assert_eq!(flags.number("InitialHeapSize"), Some(264_241_152));
        assert_eq!(
            flags.get("ParallelGCThreads").unwrap().origin,
            Origin::Default
        );
    }

    #[test]
    fn a_refusal_gives_no_flags() {
        let text =
            "Error: Could not create the Java Virtual Machine.\nUnrecognized VM option 'X={}'\n";
        assert!(Flags::parse(text).is_empty());
    }
}
