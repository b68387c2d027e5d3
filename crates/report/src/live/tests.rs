use super::*;

fn listing(title: &str) -> Listing {
    Listing {
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
    let text = list(&[ended, listing("orders")]);
    let (now, then) = text.split_once("Ended").expect("both tables");
    assert!(now.contains("/results/0190d1c2-0000-7000-8000-000000000001\""));
    assert!(then.contains("/results/0190d1c2-0000-7000-8000-000000000002/report\""));
}

#[test]
fn a_service_without_a_release_says_what_makes_one() {
    let page = releases("orders", &[]);
    assert!(page.html.contains("loadline verify"));
}
