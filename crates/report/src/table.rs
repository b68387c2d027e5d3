//! One table, three writers: aligned text for a terminal, Markdown, HTML.
//!
//! Owns column widths, wrapping and the escaping of cells. A cell is foreign text until a writer
//! has escaped it.

use std::collections::BTreeSet;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{escape, format, text};

const NARROWEST: usize = 16;
const TITLES: usize = 2;
const FEWEST: usize = 4;
const COMFORTABLE: usize = 28;
const GAP: usize = 2;

type Narrowing = dyn Fn(&TableColumn, usize, usize) -> Option<usize>;

type Fit = fn(&str, usize) -> Vec<String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// What a cell means; never shown by colour alone, the text says it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
    Muted,
    Code,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCell {
    pub text: String,
    pub tone: Tone,
}

impl TableCell {
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            tone,
        }
    }
}

impl<T: Into<String>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self::new(text, Tone::Plain)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TableColumn {
    title: String,
    align: Align,
    wraps: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    columns: Vec<TableColumn>,
    rows: Vec<Vec<TableCell>>,
    chosen: Option<usize>,
}

impl Table {
    pub fn new() -> Self {
        Self::default()
    }

    /// A column, or several, their titles separated by ` | `.
    pub fn left(self, titles: impl AsRef<str>) -> Self {
        self.with_columns(titles.as_ref(), Align::Left, false)
    }

    pub fn right(self, titles: impl AsRef<str>) -> Self {
        self.with_columns(titles.as_ref(), Align::Right, false)
    }

    pub fn wrapping(self, titles: impl AsRef<str>) -> Self {
        self.with_columns(titles.as_ref(), Align::Left, true)
    }

    fn with_columns(mut self, titles: &str, align: Align, wraps: bool) -> Self {
        let column = |title: &str| TableColumn {
            title: title.to_owned(),
            align,
            wraps,
        };
        self.columns.extend(titles.split(" | ").map(column));
        self
    }

    pub fn add_row(&mut self, cells: impl IntoIterator<Item = TableCell>) -> &mut Self {
        let mut cells: Vec<TableCell> = cells.into_iter().take(self.columns.len()).collect();
        cells.resize_with(self.columns.len(), || TableCell::from(""));
        self.rows.push(cells);
        self
    }

    pub fn add_texts(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) -> &mut Self {
        self.add_row(cells.into_iter().map(TableCell::from))
    }

    pub fn mark_last(&mut self) {
        self.chosen = self.rows.len().checked_sub(1);
    }

    /// Leaves out the columns in which no row knows anything.
    pub fn drop_unknown_columns(&mut self) {
        let is_known = |column: usize| self.rows.iter().any(|row| row[column].text != format::NONE);
        let known: Vec<bool> = (0..self.columns.len()).map(is_known).collect();
        let mut kept = known.iter();
        self.columns.retain(|_| kept.next() == Some(&true));
        for row in &mut self.rows {
            let mut kept = known.iter();
            row.retain(|_| kept.next() == Some(&true));
        }
    }

    pub fn has_no_rows(&self) -> bool {
        self.rows.is_empty()
    }

    /// Aligned text, at most `width` terminal cells wide where the wrapping columns allow it.
    /// Each line ends in a newline, none in a space.
    pub fn to_terminal(&self, width: usize) -> String {
        self.laid_out(&self.rows, width, wrap)
    }

    /// The same in about `lines` lines: one a row, cut off where it is longer, and of many rows
    /// those around the chosen one.
    pub fn to_brief(&self, width: usize, lines: usize) -> String {
        let most = lines.saturating_sub(TITLES + 1).max(FEWEST);
        // Where titles wrap they take lines of the rows.
        let mut rows = most;
        let mut out = self.excerpt(width, rows);
        while out.lines().count() > lines && rows > FEWEST {
            rows -= 1;
            out = self.excerpt(width, rows);
        }
        out
    }

    fn excerpt(&self, width: usize, most: usize) -> String {
        let kept = self.telling_rows(most);
        let rows = kept.iter().filter_map(|i| self.rows.get(*i)).cloned();
        let rows: Vec<Vec<TableCell>> = rows.collect();
        let mut out = self.laid_out(&rows, width, |cell, width| vec![cut_to_width(cell, width)]);
        let left = self.rows.len() - rows.len();
        if left > 0 {
            out.push_str(&format!("and {left} more\n"));
        }
        out
    }

    /// The chosen row, the last good one and the first two bad ones below it; then what is nearest to
    /// the chosen one. Without a chosen one the first rows.
    fn telling_rows(&self, most: usize) -> BTreeSet<usize> {
        let chosen = self.chosen.unwrap_or_default();
        let has = |row: &[TableCell], tone| row.iter().any(|cell| cell.tone == tone);
        let good = self.rows.iter().rposition(|row| has(row, Tone::Good));
        let good = good.filter(|_| self.chosen.is_some());
        let bad = good.map_or(self.rows.len(), |good| good + 1)..self.rows.len();
        let bad = bad.filter(|i| has(&self.rows[*i], Tone::Bad)).take(2);
        let mut near: Vec<usize> = (0..self.rows.len()).collect();
        near.sort_by_key(|i| i.abs_diff(chosen));
        let mut kept = BTreeSet::new();
        for row in self.chosen.into_iter().chain(good).chain(bad).chain(near) {
            if kept.len() < most {
                kept.insert(row);
            }
        }
        kept
    }

    fn laid_out(&self, rows: &[Vec<TableCell>], width: usize, fit: Fit) -> String {
        let clean = |row: &Vec<TableCell>| row.iter().map(|c| text::cell(&c.text)).collect();
        let clean: Vec<Vec<String>> = rows.iter().map(clean).collect();
        let widths = self.widths(&clean, width);
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.clone()).collect();
        let rules: Vec<String> = widths.iter().map(|w| "─".repeat(*w)).collect();
        let mut out = String::new();
        for row in [titles, rules] {
            self.write_row(&mut out, &row, &widths, wrap);
        }
        for row in &clean {
            self.write_row(&mut out, row, &widths, fit);
        }
        out
    }

    /// The widths: natural where they fit; else sentences give way first, then titles, then sentences
    /// down to their narrowest, and at last every cell, down to its longest word.
    fn widths(&self, rows: &[Vec<String>], width: usize) -> Vec<usize> {
        let most = |of: &dyn Fn(&str) -> usize| -> Vec<usize> {
            let cells = |i: usize| rows.iter().filter_map(move |row| row.get(i));
            let widest = |i: usize| cells(i).map(|cell| of(cell)).max().unwrap_or(0);
            (0..self.columns.len()).map(widest).collect()
        };
        let cells = most(&|cell| cell.width());
        let words = most(&longest_word);
        let columns = || self.columns.iter().zip(&cells).zip(&words);
        let natural = columns().map(|((column, cell), _)| column.title.width().max(*cell));
        let mut widths: Vec<usize> = natural.collect();
        let steps: [&Narrowing; 4] = [
            &|column, _, _| column.wraps.then_some(COMFORTABLE),
            &|column, cell, _| (!column.wraps).then_some(longest_word(&column.title).max(cell)),
            &|column, _, _| column.wraps.then_some(NARROWEST),
            &|column, _, word| Some(longest_word(&column.title).max(word)),
        ];
        for step in steps {
            let floors = columns().map(|((column, cell), word)| step(column, *cell, *word));
            shrink(&mut widths, &floors.collect::<Vec<_>>(), width);
        }
        widths
    }

    fn write_row(&self, out: &mut String, cells: &[String], widths: &[usize], fit: Fit) {
        let cells = cells.iter().zip(widths);
        let wrapped: Vec<Vec<String>> = cells.map(|(cell, width)| fit(cell, *width)).collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let mut text = String::new();
            for (i, lines) in wrapped.iter().enumerate() {
                let cell = lines.get(line).map_or("", String::as_str);
                let pad = " ".repeat(widths[i].saturating_sub(cell.width()));
                let gap = if i == 0 { "" } else { "  " };
                match self.columns[i].align {
                    Align::Left => text.extend([gap, cell, &pad]),
                    Align::Right => text.extend([gap, &pad, cell]),
                }
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
    }

    pub fn to_markdown(&self) -> String {
        let mut out = String::new();
        let mut line = |cells: Vec<String>| {
            out.push_str("| ");
            out.push_str(&cells.join(" | "));
            out.push_str(" |\n");
        };
        let columns = || self.columns.iter();
        line(
            columns()
                .map(|c| escape::escape_markdown(&c.title))
                .collect(),
        );
        let rule = |column: &TableColumn| match column.align {
            Align::Right => "---:".to_owned(),
            Align::Left => "---".to_owned(),
        };
        line(columns().map(rule).collect());
        for (i, row) in self.rows.iter().enumerate() {
            let bold = self.chosen == Some(i);
            line(row.iter().map(|cell| markdown_cell(cell, bold)).collect());
        }
        out
    }

    /// An HTML table in a box that scrolls sideways; `caption` is for screen readers.
    pub fn to_html(&self, caption: &str) -> String {
        let mut out = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption class=\"unseen\">{0}</caption><thead><tr>",
            escape::escape_html(caption)
        );
        for column in &self.columns {
            let class = match column.align {
                Align::Right => " class=\"num\"",
                Align::Left => "",
            };
            let title = escape::escape_html(&column.title);
            out += &format!("<th scope=\"col\"{class}>{title}</th>");
        }
        out.push_str("</tr></thead><tbody>\n");
        for (i, row) in self.rows.iter().enumerate() {
            out += if self.chosen == Some(i) {
                "<tr class=\"chosen\">"
            } else {
                "<tr>"
            };
            for (j, cell) in row.iter().enumerate() {
                out.push_str(&html_cell(cell, &self.columns[j], j == 0));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

fn shrink(widths: &mut [usize], floors: &[Option<usize>], width: usize) {
    let gaps = GAP * widths.len().saturating_sub(1);
    let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
    while excess > 0 {
        let can_shrink = |i: &usize| floors[*i].is_some_and(|floor| widths[*i] > floor);
        let widest = (0..widths.len())
            .filter(can_shrink)
            .max_by_key(|i| widths[*i]);
        let Some(widest) = widest else { break };
        widths[widest] -= 1;
        excess -= 1;
    }
}

fn longest_word(text: &str) -> usize {
    text.split(' ').map(|word| word.width()).max().unwrap_or(0)
}

fn markdown_cell(cell: &TableCell, bold: bool) -> String {
    let text = text::cell(&cell.text);
    match cell.tone {
        Tone::Code if !text.is_empty() => escape::markdown_code(&text),
        _ if bold && !text.is_empty() => format!("**{}**", escape::escape_markdown(&text)),
        _ => escape::escape_markdown(&text),
    }
}

fn html_cell(cell: &TableCell, column: &TableColumn, is_header: bool) -> String {
    let tone = match cell.tone {
        Tone::Good => Some("good"),
        Tone::Bad => Some("bad"),
        Tone::Muted => Some("muted"),
        Tone::Plain | Tone::Code => None,
    };
    let number = (column.align == Align::Right).then_some("num");
    let wraps = column.wraps.then_some("wraps");
    let classes: Vec<&str> = [number, wraps, tone].into_iter().flatten().collect();
    let class = match classes.join(" ") {
        classes if classes.is_empty() => classes,
        classes => format!(" class=\"{classes}\""),
    };
    let mut text = escape::escape_html(&text::cell(&cell.text));
    if cell.tone == Tone::Code {
        text = format!("<code>{text}</code>");
    }
    if is_header {
        format!("<th scope=\"row\"{class}>{text}</th>")
    } else {
        format!("<td{class}>{text}</td>")
    }
}

fn cut_to_width(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if kept.width() + c.width().unwrap_or(0) + 1 > width {
            break;
        }
        kept.push(c);
    }
    format!("{}…", kept.trim_end())
}

pub fn wrap(text: &str, width: usize) -> Vec<String> {
    if text.width() <= width || width == 0 {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    let push = |word: &str, lines: &mut Vec<String>| {
        let last = lines.last_mut().expect("it starts with one line");
        let space = usize::from(!last.is_empty());
        if last.width() + space + word.width() <= width {
            last.push_str(if space == 1 { " " } else { "" });
            last.push_str(word);
        } else if last.is_empty() {
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    };
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        if word.width() <= width {
            push(word, &mut lines);
            continue;
        }
        let mut piece = String::new();
        for c in word.chars() {
            let mut buffer = [0; 4];
            if piece.width() + c.encode_utf8(&mut buffer).width() > width {
                push(&piece, &mut lines);
                piece.clear();
            }
            piece.push(c);
        }
        push(&piece, &mut lines);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new()
            .right("Size")
            .left("Verdict")
            .wrapping("Reason");
        table.add_row([
            "1Gi".into(),
            TableCell::new("PASS", Tone::Good),
            "kept the SLO".into(),
        ]);
        table.add_row([
            "128Mi".into(),
            TableCell::new("KO", Tone::Bad),
            "killed | at <its> limit while\nit started \u{1b}[31m日本".into(),
        ]);
        table.mark_last();
        table
    }

    #[test]
    fn a_terminal_table_is_aligned_and_wraps_where_it_may() {
        insta::assert_snapshot!(table().to_terminal(40), @"
         Size  Verdict  Reason
        ─────  ───────  ────────────────────────
          1Gi  PASS     kept the SLO
        128Mi  KO       killed | at <its> limit
                        while it started 日本
        ");
    }

    #[test]
    fn a_markdown_table() {
        insta::assert_snapshot!(table().to_markdown(), @r"
        | Size | Verdict | Reason |
        | ---: | --- | --- |
        | 1Gi | PASS | kept the SLO |
        | **128Mi** | **KO** | **killed \| at &lt;its&gt; limit while it started 日本** |
        ");
    }

    #[test]
    fn an_html_table() {
        insta::assert_snapshot!(table().to_html("Sizes"), @r#"
        <div class="scroll" tabindex="0" role="region" aria-label="Sizes"><table><caption class="unseen">Sizes</caption><thead><tr><th scope="col" class="num">Size</th><th scope="col">Verdict</th><th scope="col">Reason</th></tr></thead><tbody>
        <tr><th scope="row" class="num">1Gi</th><td class="good">PASS</td><td class="wraps">kept the SLO</td></tr>
        <tr class="chosen"><th scope="row" class="num">128Mi</th><td class="bad">KO</td><td class="wraps">killed | at &lt;its&gt; limit while it started 日本</td></tr>
        </tbody></table></div>
        "#);
    }

    #[test]
    fn an_excerpt_has_the_answer_the_last_that_passed_and_where_it_breaks() {
        let mut table = Table::new().right("Size").left("Verdict");
        for (size, tone) in [
            ("1Gi", Tone::Good),
            ("512Mi", Tone::Good),
            ("256Mi", Tone::Good),
            ("244Mi", Tone::Good),
            ("236Mi", Tone::Good),
            ("228Mi", Tone::Bad),
            ("220Mi", Tone::Bad),
            ("128Mi", Tone::Bad),
        ] {
            table.add_row([size.into(), TableCell::new(format!("{tone:?}"), tone)]);
            if size == "256Mi" {
                table.mark_last();
            }
        }
        insta::assert_snapshot!(table.to_brief(40, 7), @r"
         Size  Verdict
        ─────  ───────
        256Mi  Good
        236Mi  Good
        228Mi  Bad
        220Mi  Bad
        and 4 more
        ");
    }

    #[test]
    fn missing_cells_are_empty_and_extra_ones_dropped() {
        let mut table = Table::new().left("a").left("b");
        table
            .add_row(["1".into()])
            .add_row(["1".into(), "2".into(), "3".into()]);
        assert_eq!(table.to_terminal(80), "a  b\n─  ─\n1\n1  2\n");
    }

    #[test]
    fn words_longer_than_the_line_are_broken() {
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
