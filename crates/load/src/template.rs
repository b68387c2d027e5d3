//! Variables in requests: `{seq}`, `{rand:1:100}`, `{uuid}`, `{csv:FILE:COLUMN}`, `{pick:A|B|C}`.
//!
//! Owns their text form and values. Values come from the plan's seed, so the same plan sends the
//! same requests; threads and parts never share a value of `{seq}`. Any other text in braces
//! stands for itself, as bodies are often JSON. In a path values are percent-encoded. Rows of a
//! CSV file are taken in turn; its first line names the columns.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use loadline_analysis::random::RandomStream;

use crate::csv::CsvRecord;
use crate::error::LoadError;
use crate::schedule::shard_seed;
use crate::spec::read_bounded;

#[derive(Debug, Default)]
pub(crate) struct TextTemplate(Vec<TemplateSegment>);

#[derive(Debug)]
enum TemplateSegment {
    Text(Vec<u8>),
    Sequence,
    Random { low: u64, high: u64 },
    Uuid,
    Column(Vec<Vec<u8>>),
    Pick(Vec<Vec<u8>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueEncoding {
    Plain,
    /// Percent-encoded, but for letters, digits and `-._~` (RFC 3986 §2.3).
    Path,
}

#[derive(Debug)]
pub(crate) struct TemplateVariables {
    random: RandomStream,
    sequence: u64,
    next: u64,
    stride: u64,
}

impl TemplateVariables {
    pub(crate) fn new(seed: u64, stream: u32, streams: u32) -> Self {
        Self {
            random: RandomStream::from_seed(shard_seed(seed ^ VALUE_SEED, stream)),
            sequence: 0,
            next: u64::from(stream),
            stride: u64::from(streams),
        }
    }

    pub(crate) fn next_request(&mut self) {
        self.sequence = self.next;
        self.next += self.stride;
    }
}

/// Keeps values apart from arrivals, which use the same seed.
const VALUE_SEED: u64 = 0x7661_6c00;

impl TextTemplate {
    pub(crate) fn append_text(&mut self, text: &str) {
        self.append_bytes(text.as_bytes());
    }

    fn append_bytes(&mut self, bytes: &[u8]) {
        match self.0.last_mut() {
            Some(TemplateSegment::Text(last)) => last.extend_from_slice(bytes),
            _ => self.0.push(TemplateSegment::Text(bytes.to_vec())),
        }
    }

    /// Appends text in which variables are replaced.
    /// Errors: [`LoadError::Plan`] for a variable with wrong arguments or a CSV file that cannot be
    /// read.
    pub(crate) fn append_compiled(
        &mut self,
        text: &[u8],
        encoding: ValueEncoding,
    ) -> Result<(), LoadError> {
        let mut rest = text;
        while let Some(begin) = rest.iter().position(|b| *b == b'{') {
            self.append_bytes(&rest[..begin]);
            rest = &rest[begin..];
            match parse_variable(rest, encoding)? {
                Some((segment, length)) => {
                    self.0.push(segment);
                    rest = &rest[length..];
                }
                None => {
                    self.append_bytes(b"{");
                    rest = &rest[1..];
                }
            }
        }
        self.append_bytes(rest);
        Ok(())
    }

    pub(crate) fn fixed_text(&self) -> Option<Vec<u8>> {
        match self.0.as_slice() {
            [] => Some(Vec::new()),
            [TemplateSegment::Text(text)] => Some(text.clone()),
            _ => None,
        }
    }

    pub(crate) fn render(&self, variables: &mut TemplateVariables, out: &mut Vec<u8>) {
        for segment in &self.0 {
            match segment {
                TemplateSegment::Text(text) => out.extend_from_slice(text),
                TemplateSegment::Sequence => push_number(out, variables.sequence),
                TemplateSegment::Random { low, high } => {
                    // The bias of the remainder is below 1 in 2^32 for ranges below 2^32.
                    let span = (high - low).saturating_add(1);
                    push_number(out, low + variables.random.next_u64() % span);
                }
                TemplateSegment::Uuid => push_uuid(out, &mut variables.random),
                TemplateSegment::Pick(values) => {
                    let at = variables.random.next_u64() % values.len() as u64;
                    out.extend_from_slice(&values[at as usize]);
                }
                TemplateSegment::Column(values) => {
                    let row = variables.sequence % values.len() as u64;
                    out.extend_from_slice(&values[row as usize]);
                }
            }
        }
    }
}

/// A text without variables as it is, others as `count` requests would send them.
pub(crate) fn sample_texts(text: &str, count: usize) -> Result<Vec<String>, LoadError> {
    let mut template = TextTemplate::default();
    template.append_compiled(text.as_bytes(), ValueEncoding::Plain)?;
    let mut variables = TemplateVariables::new(0, 0, 1);
    let count = if template.fixed_text().is_some() {
        1
    } else {
        count
    };
    let render = |_| {
        let mut sample = Vec::new();
        variables.next_request();
        template.render(&mut variables, &mut sample);
        String::from_utf8_lossy(&sample).into_owned()
    };
    Ok((0..count).map(render).collect())
}

/// What a variable's braces begin with; and a reference to the environment, which is filled in before.
const NAMES: [&str; 7] = ["seq", "uuid", "rand", "pick", "base64", "csv", "env"];

/// Whether a load would replace a part of this text.
pub(crate) fn has_variable(text: &str) -> bool {
    let mut inner = text.split('{').skip(1);
    inner.any(|rest| {
        let name = rest.split([':', '}']).next().unwrap_or_default();
        NAMES.contains(&name)
    })
}

fn parse_variable(
    text: &[u8],
    encoding: ValueEncoding,
) -> Result<Option<(TemplateSegment, usize)>, LoadError> {
    let Some(end) = text.iter().position(|b| *b == b'}') else {
        return Ok(None);
    };
    let Ok(inner) = std::str::from_utf8(&text[1..end]) else {
        return Ok(None);
    };
    let refuse = |why: String| LoadError::plan("variable", format!("`{{{inner}}}` {why}"));
    let segment = match inner.split_once(':') {
        None if inner == "seq" => TemplateSegment::Sequence,
        None if inner == "uuid" => TemplateSegment::Uuid,
        Some(("rand", range)) => {
            let bounds = range.split_once(':').and_then(|(low, high)| {
                let bounds: (u64, u64) = (low.parse().ok()?, high.parse().ok()?);
                (bounds.0 <= bounds.1).then_some(bounds)
            });
            let (low, high) =
                bounds.ok_or_else(|| refuse("is not a range; write {rand:1:100}".to_owned()))?;
            TemplateSegment::Random { low, high }
        }
        // Written out by the user: never encoded.
        Some(("pick", values)) => {
            TemplateSegment::Pick(values.split('|').map(|v| v.as_bytes().to_vec()).collect())
        }
        // How messages that are no text stand in a body.
        Some(("base64", values)) => {
            let values = values.split('|').map(|value| STANDARD.decode(value));
            let values: Result<Vec<_>, _> = values.collect();
            let mut values = values.map_err(|error| {
                refuse(format!("is not base64: {error}; write {{base64:AAECAw==}}"))
            })?;
            match values.len() {
                1 => TemplateSegment::Text(values.remove(0)),
                _ => TemplateSegment::Pick(values),
            }
        }
        Some(("csv", source)) => {
            let (file, column) = source
                .rsplit_once(':')
                .ok_or_else(|| refuse("has no column; write {csv:FILE:COLUMN}".to_owned()))?;
            let values = read_column(file, column).map_err(refuse)?;
            let encode = |value: Vec<u8>| match encoding {
                ValueEncoding::Plain => value,
                ValueEncoding::Path => escape_text(&value).into_bytes(),
            };
            TemplateSegment::Column(values.into_iter().map(encode).collect())
        }
        _ => return Ok(None),
    };
    Ok(Some((segment, end + 1)))
}

/// The text with absolute paths of tables: relative ones are below `base`.
pub(crate) fn absolute_tables(text: &str, base: &Path) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, file, after)) = find_table(rest) {
        made.push_str(before);
        made.push_str(TABLE);
        made.push_str(&base.join(file).to_string_lossy());
        rest = after;
    }
    made + rest
}

pub(crate) fn table_files(text: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut rest = text;
    while let Some((_, file, after)) = find_table(rest) {
        files.push(PathBuf::from(file));
        rest = after;
    }
    files
}

const TABLE: &str = "{csv:";

/// The first table in a text: the text before it, its file, and the rest from the colon before the
/// column on.
fn find_table(text: &str) -> Option<(&str, &str, &str)> {
    let (before, after) = text.split_once(TABLE)?;
    let end = after.find('}')?;
    let colon = after[..end].rfind(':')?;
    Some((before, &after[..colon], &after[colon..]))
}

fn read_column(file: &str, column: &str) -> Result<Vec<Vec<u8>>, String> {
    let bytes = read_bounded(Path::new(file)).map_err(|e| format!("cannot be read: {e}"))?;
    let text = String::from_utf8(bytes).map_err(|e| format!("cannot be read: {e}"))?;
    let mut lines = text.lines();
    let mut record = CsvRecord::default();
    record.split_line(lines.next().unwrap_or_default().as_bytes());
    let Some([index]) = record.find_columns([column]) else {
        let names: Vec<_> = record.fields().map(String::from_utf8_lossy).collect();
        return Err(format!(
            "names an unknown column; it has {}",
            names.join(", ")
        ));
    };
    let rows = lines.filter(|line| !line.is_empty());
    let values: Vec<_> = rows
        .map(|line| {
            record.split_line(line.as_bytes());
            record.field(index).unwrap_or_default().to_vec()
        })
        .collect();
    if values.is_empty() {
        Err("has no rows".to_owned())
    } else {
        Ok(values)
    }
}

/// Each byte that has a meaning in an address as `%20`. Source: RFC 3986 §2.3.
pub(crate) fn escape_text(text: &[u8]) -> String {
    let escape = |byte: &u8| match *byte {
        b'-' | b'.' | b'_' | b'~' => char::from(*byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.iter().map(escape).collect()
}

/// Version 4: random, RFC 9562 §5.4.
fn push_uuid(out: &mut Vec<u8>, random: &mut RandomStream) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut bits = (u128::from(random.next_u64()) << 64) | u128::from(random.next_u64());
    bits = bits & !(0xf << 76) | 0x4 << 76;
    bits = bits & !(0x3 << 62) | 0x2 << 62;
    for digit in 0..32 {
        if matches!(digit, 8 | 12 | 16 | 20) {
            out.push(b'-');
        }
        out.push(HEX[(bits >> (124 - 4 * digit)) as usize & 0xf]);
    }
}

pub(crate) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn render(text: &str, encoding: ValueEncoding, count: usize) -> Vec<String> {
        let mut template = TextTemplate::default();
        template.append_compiled(text.as_bytes(), encoding).unwrap();
        let mut variables = TemplateVariables::new(1, 1, 2);
        let mut all = Vec::new();
        for _ in 0..count {
            let mut out = Vec::new();
            variables.next_request();
            template.render(&mut variables, &mut out);
            all.push(String::from_utf8(out).unwrap());
        }
        all
    }

    #[test]
    fn every_variable_is_found_before_it_is_parsed() {
        for name in NAMES.iter().filter(|name| **name != "env") {
            let known = |text: &str| {
                let parsed = parse_variable(text.as_bytes(), ValueEncoding::Plain);
                !matches!(parsed, Ok(None)) && has_variable(text)
            };
            assert!(
                known(&format!("{{{name}}}")) || known(&format!("{{{name}:x}}")),
                "{name}"
            );
        }
        assert!(has_variable("a {env:TOKEN}"));
        assert!(!has_variable(
            r#"{"seq": 1, "n": {"rand": 2}} {sequence} {"#
        ));
    }

    #[test]
    fn sequence_numbers_of_streams_never_meet() {
        assert_eq!(
            render("/{seq}-{seq}", ValueEncoding::Path, 3),
            ["/1-1", "/3-3", "/5-5"]
        );
    }

    #[test]
    fn random_numbers_stay_in_their_range_and_reach_its_ends() {
        let all = render("{rand:3:5}", ValueEncoding::Plain, 200);
        for number in ["3", "4", "5"] {
            assert!(all.iter().any(|n| n == number));
        }
        assert!(all.iter().all(|n| ["3", "4", "5"].contains(&n.as_str())));
    }

    #[test]
    fn one_of_several_texts_is_picked() {
        let all = render("{pick:/a/1|/b}", ValueEncoding::Path, 50);
        assert!(all.iter().any(|p| p == "/a/1") && all.iter().any(|p| p == "/b"));
    }

    #[test]
    fn a_uuid_has_its_version_and_variant() {
        let all = render("{uuid}", ValueEncoding::Plain, 50);
        for uuid in &all {
            assert_eq!((uuid.len(), uuid.as_bytes()[14]), (36, b'4'), "{uuid}");
            assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
        }
        assert_ne!(all[0], all[1]);
    }

    #[test]
    fn rows_of_a_file_come_in_turn() {
        let file = std::env::temp_dir().join(format!("loadline-csv-{}", std::process::id()));
        fs::write(&file, "id,name\n1,Da vis\n2,\"O\"\"x, y\"\n").unwrap();
        let text = format!("{{csv:{}:name}}", file.display());
        let plain = render(&text, ValueEncoding::Plain, 2);
        let path = render(&text, ValueEncoding::Path, 2);
        let wrong =
            TextTemplate::default().append_compiled(b"{csv:/nowhere:x}", ValueEncoding::Plain);
        fs::remove_file(&file).unwrap();
        assert_eq!(plain, ["O\"x, y", "O\"x, y"]);
        assert_eq!(path[0], "O%22x%2C%20y");
        assert!(wrong.is_err());
    }

    #[test]
    fn tables_lie_beside_the_file_that_names_them() {
        let text = "a {csv:x.csv:id} {csv:/y/z.csv:id} {csv:broken";
        let made = absolute_tables(text, Path::new("/base"));
        assert_eq!(made, "a {csv:/base/x.csv:id} {csv:/y/z.csv:id} {csv:broken");
        assert_eq!(
            table_files(&made),
            ["/base/x.csv", "/y/z.csv"].map(PathBuf::from)
        );
    }

    #[test]
    fn other_braces_are_text() {
        let json = "{\"a\": {\"b\": {}}, \"c\": \"{seqs}\"}";
        assert_eq!(render(json, ValueEncoding::Plain, 1), [json]);
        assert!(
            TextTemplate::default()
                .append_compiled(b"{rand:5:1}", ValueEncoding::Plain)
                .is_err()
        );
    }
}
