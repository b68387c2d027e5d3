//! The display of a terminal of a given width after a program has run in it.
//!
//! Owns a terminal as far as loadline uses one: wrapping lines, going back and up, erasing. An
//! unknown sequence ends the test. `script` of util-linux, which Debian always has, makes the
//! terminal itself.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

/// Of lines; more than any test writes.
const ROWS: usize = 500;

/// What a program wrote to its terminal.
pub struct Written {
    pub raw: String,
    pub columns: usize,
    pub code: Option<i32>,
}

/// Runs a program on a terminal to its end.
pub fn run(
    columns: usize,
    program: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Written {
    let program = program.display().to_string();
    let words = std::iter::once(program.as_str()).chain(arguments.iter().copied());
    let words: Vec<String> = words
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
        .collect();
    let line = format!(
        "stty cols {columns} rows {ROWS} && exec {}",
        words.join(" ")
    );
    let mut child = Command::new("script")
        .args(["-qefc", &line, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm-256color")
        // Colours must not depend on the place that runs the tests, nor on `CI`.
        .env_remove("CI")
        .env_remove("CLICOLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("NO_COLOR")
        .env_remove("COLUMNS")
        .envs(variables.iter().copied())
        // Open until the end: an end of input would be typed into the terminal.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("script of util-linux starts");
    let mut raw = String::new();
    let mut output = child.stdout.take().expect("it is piped");
    let _input = child.stdin.take();
    output.read_to_string(&mut raw).expect("it can be read");
    let code = child.wait().expect("it is a child").code();
    Written { raw, columns, code }
}

impl Written {
    /// Whether it has a colour or another style of letters.
    pub fn has_style(&self) -> bool {
        let mut sequences = self.raw.split("\u{1b}[").skip(1);
        let end = |text: &str| text.find(|c: char| c.is_ascii_alphabetic());
        sequences.any(|text| end(text).is_some_and(|at| text[at..].starts_with('m')))
    }

    /// The lines left on the terminal, without empty ones.
    pub fn left(&self) -> Vec<String> {
        let mut screen = Screen::default();
        let mut rest = self.raw.chars();
        while let Some(c) = rest.next() {
            match c {
                '\n' => screen.row += 1,
                '\r' => screen.column = 0,
                '\u{8}' => screen.column = screen.column.saturating_sub(1),
                '\u{1b}' => screen.sequence(&mut rest),
                c => screen.put(c, self.columns),
            }
        }
        let lines = screen
            .lines
            .iter()
            .map(|line| line.iter().collect::<String>());
        let lines = lines.map(|line| line.trim_end().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    }
}

#[derive(Default)]
struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Screen {
    fn line(&mut self) -> &mut Vec<char> {
        let rows = self.lines.len().max(self.row + 1);
        self.lines.resize(rows, Vec::new());
        &mut self.lines[self.row]
    }

    fn put(&mut self, c: char, columns: usize) {
        assert!(!c.is_control(), "{c:?} is not known");
        if self.column == columns {
            (self.row, self.column) = (self.row + 1, 0);
        }
        let at = self.column;
        let line = self.line();
        line.resize(line.len().max(at + 1), ' ');
        line[at] = c;
        self.column += 1;
    }

    fn sequence(&mut self, rest: &mut impl Iterator<Item = char>) {
        assert_eq!(rest.next(), Some('['), "another kind of sequence");
        let mut numbers = String::new();
        let end = loop {
            match rest.next().expect("a sequence ends") {
                c if c.is_ascii_alphabetic() => break c,
                c => numbers.push(c),
            }
        };
        let count = numbers.parse().unwrap_or(1);
        let column = self.column;
        match (end, numbers.as_str()) {
            ('m', _) | ('h' | 'l', "?25") => {}
            ('K', "" | "0") => self.line().truncate(column),
            ('K', "2") => self.line().clear(),
            ('J', "" | "0") => {
                self.line().truncate(column);
                self.lines.truncate(self.row + 1);
            }
            ('A', _) => self.row = self.row.saturating_sub(count),
            ('B', _) => self.row += count,
            _ => panic!("ESC[{numbers}{end} is not known"),
        }
    }
}
