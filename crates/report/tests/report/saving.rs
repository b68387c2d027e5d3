//! What the answer saves against what ships today, and that the first screen holds it.

use loadline_report::content::headline;
use loadline_report::{CurrentLimits, render_brief, render_html, render_terminal};

use crate::fixture;

fn said(today: &str) -> String {
    let mut view = fixture::search();
    view.today = Some(today.parse().expect("a size"));
    headline(&view).details[0].clone()
}

#[test]
fn what_is_saved_and_what_is_lacking_is_said() {
    insta::assert_snapshot!(said("2/4Gi"), @r#"Today spring-web ships with 2 CPUs and 4Gi: this saves 1 CPU (50 %) and 3884Mi of memory (94.8 %)."#);
    insta::assert_snapshot!(said("1Gi"), @r#"Today spring-web ships with 1Gi: this saves 812Mi of memory (79.3 %)."#);
    insta::assert_snapshot!(said("0.5/128Mi"), @r#"Today spring-web ships with 0.50 CPUs and 128Mi: that lacks 0.50 CPU (100 %) and 84Mi of memory (65.6 %)."#);
    insta::assert_snapshot!(said("2/128Mi"), @r#"Today spring-web ships with 2 CPUs and 128Mi: this saves 1 CPU (50 %), and adds 84Mi of memory (65.6 %)."#);
    insta::assert_snapshot!(said("1/212Mi"), @r#"Today spring-web ships with 1 CPU and 212Mi: that is this size."#);
}

#[test]
fn it_stands_in_the_text_and_in_the_report_and_nowhere_untold() {
    let mut view = fixture::search();
    assert!(!render_terminal(&view, 100).contains("Today "));
    view.today = Some("2/4Gi".parse().expect("a size"));
    for text in [
        render_terminal(&view, 100),
        render_brief(&view, 100),
        render_html(&view),
    ] {
        assert!(text.contains("ships with 2 CPUs and 4Gi"), "{text}");
    }
}

#[test]
fn a_size_that_is_none_is_refused_with_what_to_write() {
    for text in ["", "2/", "/4Gi", "2/4XB", "0/4Gi", "2/0", "x/4Gi"] {
        let refused = text.parse::<CurrentLimits>().expect_err(text);
        assert!(
            refused.contains("; write CPUs and memory, 2/4Gi"),
            "{refused}"
        );
    }
}
