//! One record of CSV (RFC 4180): quotes around a field, and doubled ones in it.

#[derive(Debug, Default)]
pub(crate) struct CsvRecord {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl CsvRecord {
    pub(crate) fn split_line(&mut self, line: &[u8]) {
        self.text.clear();
        self.ends.clear();
        let (mut is_quoted, mut bytes) = (false, line.iter().copied().peekable());
        while let Some(byte) = bytes.next() {
            match byte {
                b'"' if is_quoted && bytes.next_if_eq(&b'"').is_some() => self.text.push(b'"'),
                b'"' => is_quoted = !is_quoted,
                b',' if !is_quoted => self.ends.push(self.text.len()),
                _ => self.text.push(byte),
            }
        }
        self.ends.push(self.text.len());
    }

    pub(crate) fn field(&self, index: usize) -> Option<&[u8]> {
        let begin = match index {
            0 => 0,
            _ => *self.ends.get(index - 1)?,
        };
        self.text.get(begin..*self.ends.get(index)?)
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).filter_map(|index| self.field(index))
    }

    /// The columns of a header with these names. `None` where one is missing.
    pub(crate) fn find_columns<const N: usize>(&self, names: [&str; N]) -> Option<[usize; N]> {
        let at = |name: &str| self.fields().position(|field| field == name.as_bytes());
        let found = names.map(at);
        found
            .iter()
            .all(Option::is_some)
            .then(|| found.map(Option::unwrap_or_default))
    }
}
