//! The trials as CSV (RFC 4180), one row each: for spreadsheets.
//!
//! A text that a spreadsheet would run as a formula (`= + - @`, tab, carriage return first) gets an
//! apostrophe in front, as OWASP advises.

use crate::columns::{COLUMNS, ColumnValue, TrialRow, trial_rows};
use crate::view::ResultView;

/// All trials; the first line names the columns. Missing numbers are empty.
pub fn render_csv(view: &ResultView) -> String {
    let mut out = COLUMNS.map(|(name, _)| name).join(",") + "\r\n";
    for row in trial_rows(view) {
        let cells: Vec<String> = COLUMNS
            .iter()
            .map(|(_, value)| csv_cell(value, &row))
            .collect();
        out.push_str(&(cells.join(",") + "\r\n"));
    }
    out
}

fn csv_cell(value: &ColumnValue, row: &TrialRow) -> String {
    let text = value.read_text(row).map(|text| csv_field(&text));
    let count = || Some(value.read_count(row)?.to_string());
    let number = || Some(value.read_number(row)?.to_string());
    text.or_else(count).or_else(number).unwrap_or_default()
}

fn csv_field(text: &str) -> String {
    let runs = text.starts_with(['=', '+', '-', '@']);
    let text = if runs {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if text.contains(['"', ',', '\'']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_and_never_formulas() {
        assert_eq!(csv_field("plain"), "plain");
        assert_eq!(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(csv_field("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
    }
}
