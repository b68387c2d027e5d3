# Runs "$@" in cgroups of 512 MiB and half a CPU, once a layout, and prints a line
#   LAYOUT: its output, words separated by blanks
# Needs root and a hybrid or v1 machine; changes nothing outside its own mount namespace and groups.
# Called by layouts.rs; the JDK's own view of v2 is emulated with files (kernel files are read-only).
set -eu
name=loadline-layout-$$
memory=/sys/fs/cgroup/memory/$name
cpu=/sys/fs/cgroup/cpu/$name
unified=/sys/fs/cgroup/unified/$name

clean() {
    for group in "$memory/child" "$cpu/child" "$memory" "$cpu" "$unified"; do
        rmdir "$group" 2>/dev/null || true
    done
    rm -rf "$work"
}
work=$(mktemp -d)
trap clean EXIT

mkdir "$memory" "$cpu" "$memory/child" "$cpu/child"
echo 536870912 > "$memory/memory.limit_in_bytes"
echo 100000 > "$cpu/cpu.cfs_period_us"
echo 50000 > "$cpu/cpu.cfs_quota_us"

# Runs the rest in the groups $1 and $2.
within() {
    sh -c 'echo $$ > "$1/cgroup.procs"; echo $$ > "$2/cgroup.procs"; shift 2; exec "$@"' sh "$@"
}
say() {
    layout=$1
    shift
    echo "$layout:" $("$@")
}

say v1-leaf within "$memory" "$cpu" "$@"
say v1-ancestor within "$memory/child" "$cpu/child" "$@"
# With a cgroup namespace the own group is `/`, and the mounts made inside show no more than it.
# shellcheck disable=SC2016
say v1-namespace within "$memory" "$cpu" unshare --cgroup --mount sh -c '
    umount -l /sys/fs/cgroup/memory /sys/fs/cgroup/cpu
    mount -t cgroup -o memory none /sys/fs/cgroup/memory
    mount -t cgroup -o cpu none /sys/fs/cgroup/cpu
    exec "$@"' sh "$@"
# A container without a namespace: its group is bound over the mount point.
# shellcheck disable=SC2016
say v1-bind within "$memory" "$cpu" unshare --mount sh -c '
    mount --bind "$1" /sys/fs/cgroup/memory
    mount --bind "$2" /sys/fs/cgroup/cpu
    shift 2
    exec "$@"' sh "$memory" "$cpu" "$@"

# v2: a unified mount, with the files of a group made by hand.
row='%s\t0\t1\t1\n'
for kernel in old new; do
    {
        printf '#subsys_name\thierarchy\tnum_cgroups\tenabled\n'
        for controller in cpu cpuacct blkio devices freezer; do printf "$row" $controller; done
        if [ $kernel = old ]; then
            for controller in cpuset memory pids; do printf "$row" $controller; done
        fi
    } > "$work/$kernel"
    for depth in leaf ancestor; do
        # shellcheck disable=SC2016
        say v2-$kernel-$depth unshare --mount sh -eu -c '
            cgroups=$1 depth=$2 name=$3 work=$4
            shift 4
            mount --make-rprivate /
            umount -l /sys/fs/cgroup
            mount -t cgroup2 none /sys/fs/cgroup
            group=/sys/fs/cgroup/$name
            mkdir $group
            own=$group
            if [ $depth = ancestor ]; then own=$group/child; mkdir $own; fi
            echo $$ > $own/cgroup.procs
            mount -t tmpfs none $group
            mkdir -p $own
            for directory in $group $own; do
                echo max > $directory/memory.max
                echo "max 100000" > $directory/cpu.max
            done
            echo 536870912 > $group/memory.max
            echo "50000 100000" > $group/cpu.max
            echo "cpuset cpu io memory hugetlb pids rdma misc" > $work/controllers
            mount --bind $work/controllers /sys/fs/cgroup/cgroup.controllers
            mount --bind $cgroups /proc/cgroups
            "$@"
            umount -l $group
            echo $$ > /sys/fs/cgroup/cgroup.procs
            if [ $depth = ancestor ]; then rmdir $own; fi
            rmdir $group' sh "$work/$kernel" $depth "$name-$kernel-$depth" "$work" "$@"
    done
done
