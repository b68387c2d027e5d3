//! Every parser of the crate against arbitrary text: none may panic, and what prints parses back.

use loadline_sizing::CpuSet;
use proptest::prelude::*;

use crate::anything::parsers;
use crate::fake;
use crate::name::GroupName;

fn kernel_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("cpu ".to_owned()),
        Just("some total=".to_owned()),
        Just("full avg10=1 total=".to_owned()),
        Just("oom_kill ".to_owned()),
        Just("throttled_usec ".to_owned()),
        Just("total_rss ".to_owned()),
        Just("1 2 0:1 / /sys/fs/cgroup - cgroup2 c rw".to_owned()),
        Just("0::/".to_owned()),
        Just("\\04".to_owned()),
        Just("(x) S ".to_owned()),
        Just("Cpus_allowed_list:\t".to_owned()),
        any::<u64>().prop_map(|n| n.to_string()),
        any::<Vec<u8>>().prop_map(|b| String::from_utf8_lossy(&b).into_owned()),
        Just("\n".to_owned()),
        Just(" ".to_owned()),
    ];
    proptest::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_parser_panics(text in kernel_text()) {
        parsers().for_each(|parse| parse(&text));
    }

    #[test]
    fn cpu_sets_print_and_parse_back(cpus in proptest::collection::btree_set(0u32..300, 0..40)) {
        let set: CpuSet = cpus.into_iter().collect();
        prop_assert_eq!(set.to_string().parse::<CpuSet>(), Ok(set));
    }

    #[test]
    fn names_print_and_parse_back(
        boot in "[0-9a-f]{8}", namespace: u64, pid: u32, start_time: u64,
        trial in "[0-9a-zA-Z-]{1,60}",
    ) {
        let name = GroupName { boot, namespace, pid, start_time, trial };
        prop_assert_eq!(name.to_string().parse::<GroupName>().unwrap(), name);
    }

    #[test]
    fn own_directories_never_leave_the_mount(root in kernel_text(), path in kernel_text()) {
        let root = root.replace(['\n', ' '], "_");
        let mountinfo = format!("1 2 0:1 {root} /sys/fs/cgroup rw - cgroup2 c rw\n");
        let fake = fake::FakeCgroupTree::new(&mountinfo, &format!("0::/{}\n", path.replace('\n', "_")));
        if let Some(v2) = fake.detected_layout(fake::ROOT).v2() {
            prop_assert!(v2.own.starts_with(fake.cgroup_root()));
            prop_assert!(!v2.own.components().any(|c| c.as_os_str() == ".."));
        }
    }
}
