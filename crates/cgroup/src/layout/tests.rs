use super::*;
use crate::fake::{FakeCgroupTree, ROOT};

const USER: Privilege = Privilege {
    root: false,
    systemd: true,
};
const ROOT_UNDER_SYSTEMD: Privilege = Privilege {
    root: true,
    systemd: true,
};

/// Version, parent and own directory of each controller, and the v2 mount, below the root.
fn describe(fake: &FakeCgroupTree, layout: &CgroupLayout) -> String {
    let below = |path: &Path| {
        path.strip_prefix(fake.cgroup_root())
            .unwrap()
            .display()
            .to_string()
    };
    let mut lines = vec![layout.mode().to_string()];
    for (controller, place) in layout.controller_hierarchies() {
        let parent = place.parent().map_or("refused".to_owned(), below);
        let own = below(&place.own);
        lines.push(format!(
            "{controller} {:?} parent=/{parent} own=/{own}",
            place.version
        ));
    }
    if let Some(v2) = layout.v2() {
        lines.push(format!("unified mount=/{}", below(&v2.mount)));
    }
    lines.join("\n")
}

#[test]
fn a_hybrid_machine_has_v1_controllers_and_a_v2_shadow() {
    let fake = FakeCgroupTree::from_captured("hybrid");
    fake.add_group("unified", &[("cgroup.controllers", "hugetlb\n")]);
    insta::assert_snapshot!(describe(&fake, &fake.detected_layout(ROOT)), @"
    hybrid
    cpu V1 parent=/cpu own=/cpu
    cpuacct V1 parent=/cpuacct own=/cpuacct
    cpuset V1 parent=/cpuset own=/cpuset
    memory V1 parent=/memory own=/memory/example/0123456789abcdef
    pids V1 parent=/pids own=/pids
    freezer V1 parent=/freezer own=/freezer
    unified mount=/unified
    ");
}

#[test]
fn a_v1_machine_may_have_two_controllers_on_one_mount() {
    let fake = FakeCgroupTree::from_captured("v1");
    let layout = fake.detected_layout(ROOT);
    insta::assert_snapshot!(describe(&fake, &layout), @"
    v1
    cpu V1 parent=/cpu,cpuacct own=/cpu,cpuacct
    cpuacct V1 parent=/cpu,cpuacct own=/cpu,cpuacct
    memory V1 parent=/memory own=/memory
    pids V1 parent=/pids own=/pids
    freezer V1 parent=/freezer own=/freezer
    ");
    assert_eq!(layout.hierarchies().len(), 4);
}

#[test]
fn a_v2_machine_offers_what_its_root_lists() {
    let fake = FakeCgroupTree::from_captured("v2");
    fake.add_group("", &[("cgroup.controllers", "cpu io memory pids\n")]);
    insta::assert_snapshot!(describe(&fake, &fake.detected_layout(ROOT)), @"
    v2
    cpu V2 parent=/ own=/
    memory V2 parent=/ own=/
    pids V2 parent=/ own=/
    unified mount=/
    ");
}

/// A systemd machine with v2, loadline in a scope of a user.
fn systemd_v2(own: &str) -> FakeCgroupTree {
    let mountinfo = "35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n";
    let fake = FakeCgroupTree::new(mountinfo, &format!("0::/{own}\n"));
    fake.add_group("", &[("cgroup.controllers", "cpuset cpu io memory pids\n")]);
    fake.add_group(
        "user.slice/run.scope",
        &[
            ("cgroup.controllers", "cpu memory pids\n"),
            ("cgroup.procs", ""),
        ],
    );
    fake
}

#[test]
fn a_user_gets_groups_below_the_own_delegated_group() {
    let fake = systemd_v2("user.slice/run.scope");
    insta::assert_snapshot!(describe(&fake, &fake.detected_layout(USER)), @"
    v2
    cpu V2 parent=/user.slice/run.scope own=/user.slice/run.scope
    memory V2 parent=/user.slice/run.scope own=/user.slice/run.scope
    pids V2 parent=/user.slice/run.scope own=/user.slice/run.scope
    unified mount=/
    ");
}

#[test]
fn a_second_loadline_in_the_same_scope_is_found_beside_the_supervisor() {
    let fake = systemd_v2("user.slice/run.scope/loadline-supervisor");
    let layout = fake.detected_layout(USER);
    assert!(layout.v2().unwrap().own.ends_with("user.slice/run.scope"));
}

#[test]
fn root_under_systemd_is_refused_a_v2_group_that_is_not_delegated() {
    let fake = systemd_v2("user.slice/run.scope");
    let refusal = fake.detected_layout(ROOT_UNDER_SYSTEMD).check_permission();
    let error = refusal.unwrap_err();
    let text = format!("{error}\nhint: {}", error.suggested_fix().unwrap());
    let text = text.replace(&fake.cgroup_root().display().to_string(), "ROOT");
    insta::assert_snapshot!(text, @"
    not permitted to make a cgroup below ROOT/user.slice/run.scope: systemd manages it and has not delegated it
    hint: systemd owns the cgroup tree; run: systemd-run --scope -p Delegate=yes loadline ...
    ");
}

#[test]
fn a_user_without_delegation_is_told_what_to_do() {
    let fake = systemd_v2("user.slice/session-1.scope");
    let refusal = fake
        .detected_layout(USER)
        .check_permission()
        .unwrap_err()
        .suggested_fix()
        .unwrap();
    assert!(
        refusal.ends_with("systemd-run --user --scope -p Delegate=yes loadline ..."),
        "{refusal}"
    );
}

#[test]
fn a_container_sees_a_part_of_the_hierarchy() {
    let mountinfo = "33 31 0:30 /docker/ab /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                     34 31 0:31 /../other /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    let cgroup = "4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab/inner\n";
    let fake = FakeCgroupTree::new(mountinfo, cgroup);
    insta::assert_snapshot!(describe(&fake, &fake.detected_layout(ROOT)), @"
    v1
    cpu V1 parent=/cpu,cpuacct own=/cpu,cpuacct/inner
    cpuacct V1 parent=/cpu,cpuacct own=/cpu,cpuacct/inner
    memory V1 parent=/memory own=/memory
    ");
}

#[test]
fn no_mount_is_an_error_with_a_hint() {
    let fake = FakeCgroupTree::new("1 2 0:1 / / rw - ext4 /dev/vda rw\n", "0::/\n");
    let hint = fake.try_detect(ROOT).unwrap_err().suggested_fix().unwrap();
    assert!(hint.contains("mount -t cgroup2"), "{hint}");
}
