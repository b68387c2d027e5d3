# For user-mode Linux (tests/uml/run.sh), called by layouts.rs: what the launcher, and a JVM started
# by it, make of a container of 512 MiB and half a CPU on a real cgroup tree. Prints lines
#   options JAVA LAYOUT: the launcher's options
#   heap JAVA LAYOUT: the JVM's heap in MiB and its processors
# The guest is thrown away afterwards: nothing is tidied but what stands in the way.
#
#   layouts_uml.sh LAUNCHER CLASSES JAVA...
set -eu
launcher=$1 classes=$2
shift 2
cgroup=/sys/fs/cgroup

ask() {
    for java in $javas; do
        echo "options $java $layout:" $("$@" "$launcher" options -- "$java")
        # A JVM starts slowly here: only where layouts differ for it.
        case $layout in
            *-new-*) echo "heap $java $layout:" $(LOADLINE_LOG=quiet "$@" "$launcher" -- "$java" -cp "$classes" Show) ;;
        esac
    done
}
javas=$*

# Runs the rest in a group: in $1 of each hierarchy given before `--`.
within() {
    (
        while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs"; shift; done
        shift
        exec "$@"
    )
}

# v1: memory and cpu, each its own hierarchy.
umount $cgroup
mount -t tmpfs cgroup $cgroup
mkdir $cgroup/memory $cgroup/cpu
mount -t cgroup -o memory cgroup $cgroup/memory
mount -t cgroup -o cpu,cpuacct cgroup $cgroup/cpu
mkdir $cgroup/memory/t $cgroup/memory/t/child $cgroup/cpu/t $cgroup/cpu/t/child
echo 1 > $cgroup/memory/t/memory.use_hierarchy 2>/dev/null || true
echo 536870912 > $cgroup/memory/t/memory.limit_in_bytes
echo 100000 > $cgroup/cpu/t/cpu.cfs_period_us
echo 50000 > $cgroup/cpu/t/cpu.cfs_quota_us
layout=v1-leaf; ask within $cgroup/memory/t $cgroup/cpu/t --
layout=v1-ancestor; ask within $cgroup/memory/t/child $cgroup/cpu/t/child --
rmdir $cgroup/memory/t/child $cgroup/memory/t $cgroup/cpu/t/child $cgroup/cpu/t
umount $cgroup/memory $cgroup/cpu $cgroup

mount -t cgroup2 none $cgroup
for controller in cpu memory pids; do
    # A controller comes back when the kernel has let go of its last v1 group.
    until grep -qw $controller $cgroup/cgroup.controllers; do :; done
done
echo "+cpu +memory +pids" > $cgroup/cgroup.subtree_control
limited() {
    mkdir "$1"
    echo 536870912 > "$1/memory.max"
    echo "50000 100000" > "$1/cpu.max"
}
limited $cgroup/leaf
limited $cgroup/outer
limited $cgroup/namespaced
mkdir $cgroup/outer/inner
echo "+cpu +memory +pids" > $cgroup/outer/cgroup.subtree_control

# A cgroup namespace whose root is the group, as containers have it.
namespace() {
    within $cgroup/leaf -- unshare --cgroup --mount sh -ec '
        umount /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"' sh "$@"
}
# The same, and the limit is on the namespace's root, above the process.
namespace_ancestor() {
    within $cgroup/namespaced -- unshare --cgroup --mount sh -ec '
        umount /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup
        mkdir -p /sys/fs/cgroup/child; echo 0 > /sys/fs/cgroup/child/cgroup.procs
        echo "+cpu +memory" > /sys/fs/cgroup/cgroup.subtree_control
        "$@"
        echo "-cpu -memory" > /sys/fs/cgroup/cgroup.subtree_control' sh "$@"
}
# No namespace, but the group bound over the mount point.
bound() {
    within $cgroup/leaf -- unshare --mount sh -ec '
        mount --bind /sys/fs/cgroup/leaf /sys/fs/cgroup; exec "$@"' sh "$@"
}

# This kernel has no cpusets: /proc/cgroups looks as on many kernels from 6.12 on. With a file over
# it, it looks as on older ones.
for kernel in new old; do
    if [ $kernel = old ]; then
        { cat /proc/cgroups; printf 'cpuset\t0\t1\t1\n'; } > /run/cgroups
        mount --bind /run/cgroups /proc/cgroups
    fi
    layout=v2-$kernel-leaf; ask within $cgroup/leaf --
    layout=v2-$kernel-ancestor; ask within $cgroup/outer/inner --
    layout=v2-$kernel-namespace; ask namespace
    layout=v2-$kernel-namespace-ancestor; ask namespace_ancestor
    layout=v2-$kernel-bound; ask bound
done
