//! The Parquet file, read again by the crate that wrote it and compared with the CSV.

use std::fs::File;
use std::io::Write;

use loadline_report::ResultView;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

use crate::fixture;

fn read_table(view: &ResultView) -> SerializedFileReader<File> {
    let table = loadline_report::render_parquet(view).expect("it is a table");
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&table).expect("it has room");
    SerializedFileReader::new(file).expect("it is Parquet")
}

#[test]
fn parquet_has_the_rows_of_the_csv_with_types() {
    let view = fixture::search();
    let table = read_table(&view);
    let rows: Vec<Row> = table
        .get_row_iter(None)
        .expect("rows")
        .map(|row| row.expect("a row"))
        .collect();
    assert_eq!(rows.len(), view.trials.len());
    let csv = loadline_report::render_csv(&view);
    let names = csv.lines().next().expect("the names");
    for (row, line) in rows.iter().zip(csv.lines().skip(1)) {
        let columns: Vec<&str> = row
            .get_column_iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(columns.join(","), names);
        for (name, cell) in row.get_column_iter() {
            let text = match cell {
                Field::Null => String::new(),
                Field::Str(text) => text.clone(),
                Field::Long(count) => count.to_string(),
                Field::Double(number) => number.to_string(),
                other => panic!("{name}: {other:?}"),
            };
            // Quoted fields have commas and apostrophes of their own.
            let is_in = line.contains(&format!("{text},")) || line.ends_with(&text);
            assert!(is_in || line.contains('"'), "{name}: {text} in {line}");
        }
    }
    let cell = |row: &Row, name: &str| {
        let mut columns = row.get_column_iter();
        columns
            .find_map(|(own, cell)| (own == name).then(|| cell.clone()))
            .expect("it is a column")
    };
    let is_killed = |row: &&Row| cell(row, "cause") == Field::Str("cgroup_oom".to_owned());
    let killed = rows.iter().find(is_killed).expect("one was killed");
    assert_eq!(cell(killed, "p99_s"), Field::Double(f64::INFINITY));
    assert_eq!(cell(killed, "oom_kills"), Field::Long(1));
    assert_eq!(cell(killed, "start_s"), Field::Null);
}

#[test]
fn parquet_without_trials_keeps_its_columns() {
    let mut view = fixture::search();
    view.trials.clear();
    let table = read_table(&view);
    let schema = table.metadata().file_metadata().schema();
    assert_eq!(schema.get_fields().len(), 47);
    assert_eq!(table.metadata().file_metadata().num_rows(), 0);
}
