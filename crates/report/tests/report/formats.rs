//! Every format of an ordinary result.

use crate::fixture;

#[test]
fn terminal() {
    println!("{}", loadline_report::terminal(&fixture::search(), 100));
    println!("{}", loadline_report::terminal(&fixture::matrix(), 100));
    std::fs::write(
        "/tmp/report-search.html",
        loadline_report::html(&fixture::search()),
    )
    .unwrap();
    std::fs::write(
        "/tmp/report-matrix.html",
        loadline_report::html(&fixture::matrix()),
    )
    .unwrap();
}
