//! Where the own cgroup lies in the mounted trees: `/proc/self/cgroup` and `mountinfo` to a list of
//! directories, the own one first, then every ancestor that is mounted.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hierarchy {
    V1,
    V2,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HierarchyMount {
    pub hierarchy: Hierarchy,
    pub root: String,
    pub point: String,
    /// The super options; the controllers of a v1 tree are among them.
    pub controllers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupMembership {
    /// The controllers of a v1 hierarchy; empty for v2.
    pub controllers: Vec<String>,
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerBinding {
    pub hierarchy: Hierarchy,
    pub directories: Vec<String>,
}

/// The cgroup mounts of a `mountinfo`.
///
/// Source: proc(5): `36 35 98:0 /root /point options [optional ...] - type source superoptions`.
pub fn parse_mounts(mountinfo: &str) -> Vec<HierarchyMount> {
    mountinfo.lines().filter_map(parse_mount).collect()
}

fn parse_mount(line: &str) -> Option<HierarchyMount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let root = unescape(before.next()?);
    let point = unescape(before.next()?);
    let mut after = after.split(' ');
    let hierarchy = match after.next()? {
        "cgroup" => Hierarchy::V1,
        "cgroup2" => Hierarchy::V2,
        _ => return None,
    };
    let options = after.nth(1).unwrap_or_default();
    let controllers = options.split(',').map(str::to_owned).collect();
    Some(HierarchyMount {
        hierarchy,
        root,
        point,
        controllers,
    })
}

fn unescape(text: &str) -> String {
    let escapes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    escapes
        .iter()
        .fold(text.to_owned(), |text, (escape, letter)| {
            text.replace(escape, letter)
        })
}

/// The own groups of a `/proc/self/cgroup`; named hierarchies have no controllers and are left out.
pub fn cgroup_memberships(text: &str) -> Vec<CgroupMembership> {
    let membership = |line: &str| {
        // 4:cpu,cpuacct:/user.slice    0::/user.slice
        let mut fields = line.splitn(3, ':');
        let (id, controllers) = (fields.next()?, fields.next()?);
        let path = fields.next()?.to_owned();
        let is_named = controllers.starts_with("name=");
        if !path.starts_with('/') || is_named || controllers.is_empty() && id != "0" {
            return None;
        }
        let names = controllers.split(',').filter(|c| !c.is_empty());
        let controllers = names.map(str::to_owned).collect();
        Some(CgroupMembership { controllers, path })
    };
    text.lines().filter_map(membership).collect()
}

pub fn bindings(controller: &str, mountinfo: &str, own: &str) -> Vec<ControllerBinding> {
    collect_bindings(controller, mountinfo, own, visible_mount)
}

/// The same as HotSpot reads it: the first mount of a controller, even where another covers it
/// ("Duplicate memory controllers detected" in its log).
pub fn bindings_of_first_mounts(
    controller: &str,
    mountinfo: &str,
    own: &str,
) -> Vec<ControllerBinding> {
    collect_bindings(controller, mountinfo, own, |candidates| {
        candidates.first().copied()
    })
}

fn collect_bindings(
    controller: &str,
    mountinfo: &str,
    own: &str,
    pick: impl for<'a> Fn(&[&'a HierarchyMount]) -> Option<&'a HierarchyMount>,
) -> Vec<ControllerBinding> {
    let mounts = parse_mounts(mountinfo);
    let own = cgroup_memberships(own);
    let v1 = || {
        let has_controller =
            |mount: &&HierarchyMount| mount.controllers.iter().any(|c| c == controller);
        let mounts = mounts
            .iter()
            .filter(|mount| mount.hierarchy == Hierarchy::V1);
        let mounts: Vec<&HierarchyMount> = mounts.filter(has_controller).collect();
        let path = own
            .iter()
            .find(|own| own.controllers.iter().any(|c| c == controller));
        bind_path(pick(&mounts)?, &path?.path)
    };
    let v2 = || {
        let mounts = mounts
            .iter()
            .filter(|mount| mount.hierarchy == Hierarchy::V2);
        let mounts: Vec<&HierarchyMount> = mounts.collect();
        let path = own.iter().find(|own| own.controllers.is_empty());
        bind_path(pick(&mounts)?, &path?.path)
    };
    [v1(), v2()].into_iter().flatten().collect()
}

fn visible_mount<'a>(candidates: &[&'a HierarchyMount]) -> Option<&'a HierarchyMount> {
    let first = candidates.first()?;
    candidates
        .iter()
        .rev()
        .find(|mount| mount.point == first.point)
        .copied()
}

fn bind_path(mount: &HierarchyMount, path: &str) -> Option<ControllerBinding> {
    // Without a cgroup namespace in a container, the mount shows only a part of the tree.
    // With one, root and path are both seen from the namespace.
    let inside = match path.strip_prefix(mount.root.as_str()) {
        Some(rest) if mount.root == "/" || rest.is_empty() || rest.starts_with('/') => rest,
        // A path outside the mounted part (`/../x`, or another container's): the mount point is the
        // nearest readable directory.
        _ => "",
    };
    let mut directories = Vec::new();
    let mut names: Vec<&str> = inside.split('/').filter(|name| !name.is_empty()).collect();
    if names.contains(&"..") {
        names.clear();
    }
    let point = mount.point.trim_end_matches('/');
    while !names.is_empty() {
        directories.push(format!("{point}/{}", names.join("/")));
        names.pop();
    }
    directories.push(point.to_owned());
    Some(ControllerBinding {
        hierarchy: mount.hierarchy,
        directories,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "30 29 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
    const V2: &str = "31 29 0:27 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_own_group_comes_first_then_its_ancestors() {
        let bindings = bindings("memory", V1, "4:memory:/pods/a\n0::/\n");
        assert_eq!(bindings.len(), 1);
        assert_eq!(
            bindings[0].directories,
            [
                "/sys/fs/cgroup/memory/pods/a",
                "/sys/fs/cgroup/memory/pods",
                "/sys/fs/cgroup/memory"
            ]
        );
    }

    #[test]
    fn a_container_without_a_namespace_sees_its_group_at_the_mount_point() {
        let info = V1.replace(" / /sys", " /docker/abc /sys");
        let inside = bindings("memory", &info, "4:memory:/docker/abc/app\n");
        assert_eq!(
            inside[0].directories,
            ["/sys/fs/cgroup/memory/app", "/sys/fs/cgroup/memory"]
        );
        let other = bindings("memory", &info, "4:memory:/docker/abcdef\n");
        assert_eq!(other[0].directories, ["/sys/fs/cgroup/memory"]);
    }

    #[test]
    fn hybrid_systems_have_both_places_and_moved_processes_the_root() {
        let both = bindings("memory", &format!("{V1}{V2}"), "4:memory:/a\n0::/b\n");
        assert_eq!(both[0].hierarchy, Hierarchy::V1);
        assert_eq!(both[1].directories[0], "/sys/fs/cgroup/b");
        let moved = bindings("memory", V2, "0::/../other\n");
        assert_eq!(moved[0].directories, ["/sys/fs/cgroup"]);
    }

    #[test]
    fn a_mount_over_another_covers_it() {
        let info = format!("{V1}{}", V1.replace(" / /sys", " /a /sys"));
        let covered = bindings("memory", &info, "4:memory:/a/b\n");
        assert_eq!(
            covered[0].directories,
            ["/sys/fs/cgroup/memory/b", "/sys/fs/cgroup/memory"]
        );
    }

    #[test]
    fn odd_lines_are_passed_over() {
        assert!(parse_mounts("garbage\n1 2 3 4\n - cgroup\n").is_empty());
        assert!(cgroup_memberships("garbage\n7:\n").is_empty());
        assert_eq!(unescape("/a\\040b"), "/a b");
    }

    #[test]
    fn mountinfo_lines_are_told_apart() {
        let text = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                    33 31 0:30 /docker/ab /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:9 - cgroup cgroup rw,cpu,cpuacct\n\
                    41 31 0:38 / /mnt/with\\040space rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let mounts = parse_mounts(text);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].root, "/docker/ab");
        assert_eq!(mounts[0].controllers, ["rw", "cpu", "cpuacct"]);
        assert_eq!(mounts[1].point, "/mnt/with space");
        assert_eq!(mounts[1].hierarchy, Hierarchy::V2);
    }

    #[test]
    fn own_paths_are_read() {
        let text = "9:name=systemd:/x\n4:cpu,cpuacct:/a:b\n0::/user.slice\n1::/odd\nbad\n";
        let found = cgroup_memberships(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].controllers, ["cpu", "cpuacct"]);
        assert_eq!(found[0].path, "/a:b");
        assert_eq!(found[1].path, "/user.slice");
    }

    #[test]
    fn cgroup_mounts_are_found_by_type_wherever_they_are() {
        // Captured on a hybrid host (Linux 6.18), two lines changed to have a space and an
        // optional field.
        let text = "\
22 21 0:20 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
23 22 0:21 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu
24 22 0:22 / /sys/fs/cgroup/my\\040group rw,relatime - cgroup2 cgroup2 rw
25 21 0:23 / /proc rw,relatime - proc proc rw
";
        let points: Vec<String> = parse_mounts(text).into_iter().map(|m| m.point).collect();
        assert_eq!(points, ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/my group"]);
    }
}
