use super::*;

fn listing(title: &str) -> ResultListing {
    ResultListing {
        id: "0190d1c2-0000-7000-8000-000000000001".to_owned(),
        kind: "size".to_owned(),
        title: title.to_owned(),
        status: "running".to_owned(),
        is_running: true,
        begun_unix_ms: 1_795_132_800_000,
        trials: 3,
        answer: String::new(),
    }
}

#[test]
fn hostile_titles_stay_text_and_the_policy_names_our_scripts_alone() {
    let page = overview(&[listing("<script>alert(1)</script>\" onload=x")]);
    assert!(!page.html.contains("<script>alert"), "escaped");
    assert!(
        !page.html.contains("\" onload"),
        "escaped within an attribute"
    );
    assert!(!page.policy.contains("unsafe"), "{}", page.policy);
    let scripts = page.html.matches("<script>").count();
    let allowed = page.policy.split(';').find(|p| p.contains("script-src"));
    let hashes = allowed.map(|p| p.matches("'sha256-").count());
    assert_eq!(Some(scripts), hashes, "each script has its hash");
}

#[test]
fn no_script_or_style_of_ours_can_end_its_element() {
    for asset in [LIVE_JS, LIVE_CSS] {
        let lower = asset.to_ascii_lowercase();
        for end in ["</script", "</style", "<!--"] {
            assert!(!lower.contains(end), "{end}");
        }
    }
}

#[test]
fn what_runs_stands_first_and_leads_to_its_page_what_ended_to_its_report() {
    let mut ended = listing("orders");
    ended.is_running = false;
    ended.id = "0190d1c2-0000-7000-8000-000000000002".to_owned();
    let text = listing_html(&[ended, listing("orders")]);
    let (now, then) = text.split_once("Ended").expect("both tables");
    assert!(now.contains("/results/0190d1c2-0000-7000-8000-000000000001\""));
    assert!(then.contains("/results/0190d1c2-0000-7000-8000-000000000002/report\""));
}

fn release(short: Option<&str>, words: Option<&str>) -> ServiceRelease {
    ServiceRelease {
        id: "0190d1c2-0000-7000-8000-000000000001".to_owned(),
        begun_unix_ms: 1_795_132_800_000,
        short_version: short.map(str::to_owned),
        version: words.map(str::to_owned),
        machine: "EPYC x2".to_owned(),
        memory: Some(loadline_sizing::Bytes::from_mib(212)),
        needed: None,
        cpu_per_request: None,
        start: None,
        p99: None,
    }
}

#[test]
fn a_release_is_named_by_its_version_on_the_axis_and_by_all_of_it_in_the_table() {
    let named = release(Some("1.4.2"), Some("1.4.2, commit 4d14a3e-dirty"));
    let long = release(Some("release/2026-11-20<b>"), None);
    let page = releases("orders", &[release(None, None), named, long]).html;
    for part in [
        ">1.4.2</text>",
        ">release/2026…</text>",
        ">2026-11-20</text>",
        ">1.4.2, commit 4d14a3e-dirty</td>",
        "<title>1.4.2, commit 4d14a3e-dirty; 0190d1c2-0000, 2026-11-20: 212Mi",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!page.contains("<b>"), "{page}");
}

#[test]
fn a_service_without_a_release_says_what_makes_one() {
    let page = releases("orders", &[]);
    assert!(page.html.contains("loadline verify"));
}
