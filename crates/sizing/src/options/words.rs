//! Splitting option text into words, the way each reader of that text does it.
//!
//! Owns three dialects: the JVM's environment variables, the `java` launcher's `JDK_JAVA_OPTIONS`
//! and the `@argument` files. No shell is involved anywhere: `$`, `*` and backticks are letters.

use std::fmt;

/// Whether `word` is one of the words of a list in the source, which spaces and line ends separate.
pub fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// The variable that every JVM reads, whoever starts it.
pub const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// The variable that OpenJ9 reads after it. Open Liberty's start script puts its own GC log and
/// class cache into it, but leaves them out or puts them first if the variable is already set.
pub const OPENJ9_OPTIONS: &str = "OPENJ9_JAVA_OPTIONS";

/// What the start script of Gradle gives its client. The JVM that builds gets the property's options
/// (docs.gradle.org, "Build environment configuration").
const GRADLE: (&str, &str) = ("GRADLE_OPTS", GRADLE_JVM_OPTIONS);
pub const GRADLE_JVM_OPTIONS: &str = "-Dorg.gradle.jvmargs=";

/// The value with which a variable gives a JVM these options, behind its `own` text: for the same option
/// the last wins. A start script splits it at blanks, whatever the quotes. `None` when an option
/// cannot be said there.
pub fn join_environment(variable: &str, own: Option<&str>, options: &[&str]) -> Option<String> {
    let is_of_jvm = [TOOL_OPTIONS, OPENJ9_OPTIONS].contains(&variable);
    let quote = |option: &&str| {
        if is_of_jvm {
            quote_option(option)
        } else {
            is_bare(option).then(|| (*option).to_owned())
        }
    };
    let options: Vec<String> = options.iter().map(quote).collect::<Option<_>>()?;
    let (name, property) = GRADLE;
    let options = if variable == name && !options.is_empty() {
        // The last such property counts whole, so it takes along the options of an earlier one.
        let words = split_environment(own.unwrap_or_default()).unwrap_or_default();
        let mut earlier = words.iter().filter_map(|word| word.strip_prefix(property));
        let all = earlier.next_back().into_iter();
        let all: Vec<&str> = all.chain(options.iter().map(String::as_str)).collect();
        vec![format!("\"{property}{}\"", all.join(" "))]
    } else {
        options
    };
    let all = own.map(str::to_owned).into_iter().chain(options);
    Some(all.collect::<Vec<_>>().join(" "))
}

fn is_bare(option: &str) -> bool {
    !option.contains(|c: char| c.is_whitespace() || c == '"' || c == '\'')
}

/// An option as the JVM's own variables keep it whole; `None` with both kinds of quotes.
pub fn quote_option(option: &str) -> Option<String> {
    if is_bare(option) {
        Some(option.to_owned())
    } else if !option.contains('"') {
        Some(format!("\"{option}\""))
    } else if !option.contains('\'') {
        Some(format!("'{option}'"))
    } else {
        None
    }
}

/// A quote that is never closed. What it quotes is not kept: it may be a password, and this is
/// printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnclosedQuote {
    pub quote: char,
}

impl fmt::Display for UnclosedQuote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a quote {} is never closed", self.quote)
    }
}

impl std::error::Error for UnclosedQuote {}

/// Words of `JAVA_TOOL_OPTIONS`, `_JAVA_OPTIONS` and `JDK_JAVA_OPTIONS`: white space separates,
/// either quote groups and is removed, anywhere in a word; a backslash is a letter.
///
/// Source: arguments.cpp, `Arguments::parse_options_buffer`; args.c, `JLI_AddArgsFromEnvVar`.
/// `JAVA_OPTS` is read the same way, so that a value means the same wherever it stands.
/// Errors: [`UnclosedQuote`]: the JVM refuses such a variable.
pub fn split_environment(text: &str) -> Result<Vec<String>, UnclosedQuote> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            c if is_space(c) => words.extend(word.take()),
            '\'' | '"' => {
                let inside = &text[at + c.len_utf8()..];
                let Some(end) = inside.find(c) else {
                    return Err(UnclosedQuote { quote: c });
                };
                word.get_or_insert_default().push_str(&inside[..end]);
                // Skip the consumed text and the closing quote.
                rest = text.char_indices();
                let resume = at + c.len_utf8() + end + c.len_utf8();
                while rest.clone().next().is_some_and(|(i, _)| i < resume) {
                    rest.next();
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

const COMMAND_OPTIONS: [&str; 2] = ["-XX:OnOutOfMemoryError=", "-XX:OnError="];

/// Why a word keeps java from starting, and what to do: blanks that quotes keep in an option, or that no
/// quote keeps in a value. The word may hold a password: only its begin is said.
pub fn misread_word(word: &str, is_jvm: bool) -> Option<(String, &'static str)> {
    let mut parts = word.split_whitespace();
    let first = parts.next()?;
    // Their value is a command with options of its own.
    let is_command = COMMAND_OPTIONS.iter().any(|name| word.starts_with(name));
    let has_option = parts.next().is_some_and(|part| part.starts_with('-'));
    if word.starts_with("-X") && has_option && !is_command {
        let what = format!(
            "{first} and what follows it are one option, because quotes stand around them: java does not start with it"
        );
        return Some((what, "take the quotes away"));
    }
    // JDK_JAVA_OPTIONS takes options in two words; the JVM's own variables do not.
    let hint = match word.chars().next() {
        Some('$') => {
            "the JVM fills in no variables: name them before this one in the manifest, as $(NAME)"
        }
        Some('\u{2010}'..='\u{201f}') => {
            "it begins with a typographic dash or quote: type it again"
        }
        _ => "put quotes around a value with blanks",
    };
    let what = "a word in it does not begin with -: java does not start with it";
    (is_jvm && !word.starts_with('-')).then(|| (what.to_owned(), hint))
}

/// Options of `java` that name the class path with the next word.
pub const CLASS_PATH_OPTIONS: &str = "-cp -classpath --class-path";

/// Further options of `java` that take the next word as their value.
pub const OPTIONS_WITH_VALUE: &str = "-p --module-path --upgrade-module-path --add-modules --enable-native-access --add-reads \
    --add-exports --add-opens --limit-modules --patch-module -d --describe-module --source";

/// How many of the words after `java` are up to the jar or the main class: the rest is the application's.
/// A word with `$` may stand for options.
pub fn count_java_words<S: AsRef<str>>(words: &[S]) -> usize {
    let mut read = 0;
    while let Some(word) = words.get(read).map(AsRef::as_ref) {
        read += 1;
        let is_module = ["-m", "--module"].contains(&word);
        if is_module || has_word(CLASS_PATH_OPTIONS, word) || has_word(OPTIONS_WITH_VALUE, word) {
            read += 1;
        }
        let is_target = !word.starts_with(['-', '@', '$']) && !word.is_empty();
        if is_module || is_target || word.starts_with("--module=") {
            break;
        }
    }
    read.min(words.len())
}

/// The jar among the words after `java` that it takes for a main class, because `-jar` is missing.
pub fn find_bare_jar<S: AsRef<str>>(words: &[S]) -> Option<&str> {
    let own = &words[..count_java_words(words)];
    let is_value = |option: &S| {
        let option = option.as_ref();
        has_word(CLASS_PATH_OPTIONS, option) || has_word(OPTIONS_WITH_VALUE, option)
    };
    let has_jar = own.iter().any(|word| word.as_ref() == "-jar");
    let (last, before) = own.split_last()?;
    let jar = last.as_ref();
    let is_target = jar.ends_with(".jar") && !jar.starts_with(['-', '@', '$']);
    (is_target && !has_jar && !before.last().is_some_and(is_value)).then_some(jar)
}

/// Why a JVM option behind the jar has no effect.
pub const TOO_LATE: &str = "words behind the jar or the main class are the application's";

/// JVM options among the application's own words behind `java`, where they have no effect.
pub fn find_late_options<S: AsRef<str>>(words: &[S]) -> impl Iterator<Item = &str> {
    let behind = words[count_java_words(words)..].iter().map(AsRef::as_ref);
    let begins = ["-Xm", "-Xs", "-XX:"];
    behind.filter(move |word| begins.iter().any(|begin| word.starts_with(begin)))
}

/// Signs of an option as people write them: two, or the dash of a text processor.
pub const DASHES: [char; 5] = ['-', '\u{2010}', '\u{2013}', '\u{2014}', '\u{2212}'];

/// JVM options anywhere in a text for a shell, a script or a framework, such as `exec java -Xmx1g
/// -jar a.jar` or `${JAVA_OPTS:--Xmx1g}`, without quotes and separators.
pub fn find_jvm_options(text: &str) -> Vec<&str> {
    let is_end = |c: char| is_space(c) || "\"'`".contains(c);
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let mut options = Vec::new();
    // What follows a jar is the application's, up to the end of the command.
    let mut is_behind = false;
    for line in lines.filter_map(|line| line.split(" #").next()) {
        for (nth, command) in line.split([';', '|', '&']).enumerate() {
            is_behind &= nth == 0;
            for word in command.split(is_end) {
                is_behind |= word == "-jar";
                let option = jvm_option(word).filter(|_| !is_behind);
                options.extend(option.map(|option| with_quoted_value(text, option)));
            }
        }
        is_behind &= line.ends_with('\\');
    }
    options
}

/// The option with its value where that is in quotes: `-Xmx"${HEAP}"m`.
fn with_quoted_value<'a>(text: &'a str, option: &'a str) -> &'a str {
    let begin = option.as_ptr().addr() - text.as_ptr().addr();
    let rest = &text[begin + option.len()..];
    let is_open = option.ends_with('=') || ["-Xmx", "-Xms", "-Xmn", "-Xss"].contains(&option);
    let quote = rest
        .chars()
        .next()
        .filter(|c| is_open && "\"'".contains(*c));
    let Some(close) = quote.and_then(|quote| rest[1..].find(quote)) else {
        return option;
    };
    let behind = &rest[close + 2..];
    let tail = behind.find(|c: char| is_space(c) || "\"'`;".contains(c));
    &text[begin..begin + option.len() + close + 2 + tail.unwrap_or(behind.len())]
}

/// The JVM option in a word of a shell: behind an assignment, a default, or the `-J` of the JDK's tools.
fn jvm_option(word: &str) -> Option<&str> {
    let starts = |part: &&str| {
        let bare = part.trim_start_matches(DASHES);
        let rest = bare.strip_prefix('X').filter(|_| bare.len() < part.len());
        // `-XPOST` is curl's.
        rest.is_some_and(|rest| {
            let is_heap = ["MX", "MS"].iter().any(|name| {
                let size = rest.strip_prefix(name);
                size.is_some_and(|size| size.starts_with(|c: char| c.is_ascii_digit()))
            });
            is_heap || rest.starts_with("X:") || rest.starts_with(|c: char| c.is_ascii_lowercase())
        })
    };
    let behind = |mark: &str| {
        let (name, rest) = word.split_once(mark)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-${.".contains(c);
        // A property is the application's, unless it has the options of another JVM.
        let mut ends = ["jvmargs", "jvmArguments", "argLine"].iter();
        let is_other = name.starts_with("-D") && !ends.any(|end| name.ends_with(end));
        (!is_other && name.chars().all(is_name)).then_some(rest)
    };
    let tool = word.strip_prefix("-J");
    let found = [Some(word), tool, behind("="), behind(":-")];
    let found = found.into_iter().flatten().find(starts)?;
    Some(if found.contains(['{', '(']) {
        found
    } else {
        found.trim_end_matches(['}', ')', '\\'])
    })
}

/// Words of an `@argument` file: white space separates, quotes group, a backslash escapes inside
/// quotes and joins lines at their end, `#` starts a comment. An open quote ends with its line.
///
/// Source: args.c, `nextToken` and `checkToken` (JDK 9, JEP 293 era).
pub fn split_argument_file(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (_, '\n' | '\r') => {
                quote = None;
                words.extend(word.take());
            }
            (Some(_), '\\') => escape(&mut letters, &mut word),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') => while letters.next_if(|c| !matches!(c, '\n' | '\r')).is_some() {},
            (None, '\\') if matches!(letters.peek(), Some('\n' | '\r')) => {
                skip_line_break(&mut letters);
            }
            (None, c) if is_space(c) => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn escape(letters: &mut Letters<'_>, word: &mut Option<String>) {
    match letters.next() {
        Some('n') => word.get_or_insert_default().push('\n'),
        Some('r') => word.get_or_insert_default().push('\r'),
        Some('t') => word.get_or_insert_default().push('\t'),
        Some('f') => word.get_or_insert_default().push('\x0c'),
        Some(c @ ('\n' | '\r')) => {
            if c == '\r' {
                letters.next_if_eq(&'\n');
            }
            skip_indentation(letters);
        }
        Some(c) => word.get_or_insert_default().push(c),
        None => {}
    }
}

fn skip_line_break(letters: &mut Letters<'_>) {
    letters.next_if_eq(&'\r');
    letters.next_if_eq(&'\n');
    skip_indentation(letters);
}

fn skip_indentation(letters: &mut Letters<'_>) {
    while letters
        .next_if(|c| matches!(c, ' ' | '\t' | '\x0c'))
        .is_some()
    {}
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_in_what_a_shell_reads() {
        for (text, options) in [
            (
                "exec java -Xms1g -Xmx2g -jar /app/a.jar",
                &["-Xms1g", "-Xmx2g"][..],
            ),
            (
                "export JAVA_OPTS=\"-Xmx1g -Xss512k\"; exec ./run.sh",
                &["-Xmx1g", "-Xss512k"],
            ),
            (
                "JAVA_OPTS=-Xmx1g ./run.sh && curl -XPOST -X GET x",
                &["-Xmx1g"],
            ),
            (
                "java ${JAVA_OPTS:--Xmx1g -Xms1g} -jar a.jar",
                &["-Xmx1g", "-Xms1g"],
            ),
            (
                "java \\\n  -Xmx1g\\\n -XX:MaxMetaspaceSize=96m",
                &["-Xmx1g", "-XX:MaxMetaspaceSize=96m"],
            ),
            (
                "jruby -J-Xmx1g --jvm-opts=-Xmn1g -Dx=-Xmx9g",
                &["-Xmx1g", "-Xmn1g"],
            ),
            (
                "java -Xmx${HEAP} -Xms$(MIN) x",
                &["-Xmx${HEAP}", "-Xms$(MIN)"],
            ),
            ("(java -Xmx1g)", &["-Xmx1g"]),
            (
                "# java -Xmx9g; -Xmx8g\n  # -Xms9g\njava -Xmx1g # or -Xmx9g\nx y#-Xss1m",
                &["-Xmx1g"],
            ),
            (
                "java -Xmx\"$HEAP\"m -XX:MaxRAMPercentage='50' -Xss1m",
                &["-Xmx\"$HEAP\"m", "-XX:MaxRAMPercentage='50'", "-Xss1m"],
            ),
            ("OPTS=\"-Dx=y -Xmx\"1g", &["-Xmx"]),
            (
                "gradle '-Dorg.gradle.jvmargs=-Xmx2g -Xss1m' java.arg.3=-Xmn1g",
                &["-Xmx2g", "-Xss1m", "-Xmn1g"],
            ),
            ("java \u{2013}Xmx1g --Xms1g", &["\u{2013}Xmx1g", "--Xms1g"]),
            (
                "java \\\n -Xmx1g \\\n -jar a.jar \\\n -Xmx9g\njava -Xss1m b",
                &["-Xmx1g", "-Xss1m"],
            ),
            ("kubectl -n x get pod", &[]),
        ] {
            assert_eq!(find_jvm_options(text), options, "{text}");
        }
    }

    #[test]
    fn what_stands_behind_the_jar_is_the_applications() {
        for (line, wanted) in [
            ("-Xmx1g -jar a.jar -Xmx9g", 3),
            ("-jar -Xmx1g a.jar -Xmx9g", 3),
            ("-cp /app -Xmx1g Main -Xmx9g", 4),
            ("-p mods -m shop/Main -Xmx9g", 4),
            ("--module=shop/Main -Xmx9g", 1),
            ("@/app/args $JAVA_OPTS $(MORE) -Xmx1g Main -Xmx9g", 5),
            ("-Xmx1g -version", 2),
            ("-Xmx1g -cp", 2),
            ("", 1),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(count_java_words(&words), wanted, "{line}");
            assert_eq!(find_bare_jar(&words), None, "{line}");
            let late: Vec<&str> = find_late_options(&words).collect();
            assert_eq!(late, ["-Xmx9g"][..usize::from(line.ends_with("9g"))]);
        }
        for line in ["-Xmx1g a.jar", "-cp b.jar a.jar -jar"] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(find_bare_jar(&words), Some("a.jar"), "{line}");
        }
        assert_eq!(find_bare_jar(&["-cp", "a.jar"]), None);
    }

    #[test]
    fn quotes_group_and_vanish_anywhere_in_a_word() {
        let words = split_environment(r#" -Dx="a b"  -Dy='c "d" e' -Dz=*$HOME\n "" "#).unwrap();
        assert_eq!(words, ["-Dx=a b", r#"-Dy=c "d" e"#, r"-Dz=*$HOME\n", ""]);
        assert_eq!(split_environment("a'b'\"c\"d"), Ok(vec!["abcd".to_owned()]));
        assert_eq!(split_environment("\"é ü\"ß"), Ok(vec!["é üß".to_owned()]));
        assert_eq!(split_environment(" \t\n"), Ok(vec![]));
        let error = split_environment("-Dpassword=\"geheim").unwrap_err();
        assert_eq!(error.to_string(), "a quote \" is never closed");
    }

    #[test]
    fn argument_files_know_comments_escapes_and_joined_lines() {
        let text = "-Xmx1g # heap\n-cp \"a b:\\\n    c\\tд\" '-Dq=\\\\x' one\\\n  two\n";
        let words = split_argument_file(text);
        assert_eq!(words, ["-Xmx1g", "-cp", "a b:c\tд", r"-Dq=\x", "onetwo"]);
    }

    #[test]
    fn each_variable_gets_options_as_its_reader_takes_them() {
        let join = |variable, options: &[&str]| join_environment(variable, Some("-Xss1m"), options);
        let (heap, blank) = (["-Xms64m", "-Xmx64m"], ["-Da=b c"]);
        for (variable, options, text) in [
            (TOOL_OPTIONS, &heap[..], Some("-Xss1m -Xms64m -Xmx64m")),
            (TOOL_OPTIONS, &blank, Some("-Xss1m \"-Da=b c\"")),
            (OPENJ9_OPTIONS, &["-Da=\"b\""], Some("-Xss1m '-Da=\"b\"'")),
            (TOOL_OPTIONS, &["-Da=\"'"], None),
            ("MAVEN_OPTS", &heap, Some("-Xss1m -Xms64m -Xmx64m")),
            ("MAVEN_OPTS", &blank, None),
            (
                "GRADLE_OPTS",
                &heap,
                Some("-Xss1m \"-Dorg.gradle.jvmargs=-Xms64m -Xmx64m\""),
            ),
            ("GRADLE_OPTS", &[], Some("-Xss1m")),
        ] {
            assert_eq!(join(variable, options).as_deref(), text, "{variable}");
        }
        let own = "-Da=b \"-Dorg.gradle.jvmargs=-XX:MaxMetaspaceSize=1g -Xss2m\"";
        let joined = join_environment("GRADLE_OPTS", Some(own), &heap);
        let last = joined.as_deref().and_then(|text| text.strip_prefix(own));
        let all = " \"-Dorg.gradle.jvmargs=-XX:MaxMetaspaceSize=1g -Xss2m -Xms64m -Xmx64m\"";
        assert_eq!(last, Some(all), "of two, a JVM keeps the last");
    }

    #[test]
    fn a_command_in_an_option_may_have_options() {
        let is_misread = |word: &str| misread_word(word, true).is_some();
        assert!(!is_misread("-XX:OnOutOfMemoryError=kill -9 %p"));
        assert!(is_misread("-Xms64m -Xmx64m"));
    }
}
