#!/bin/bash
# In a guest of tests/uml/run.sh with two disks: has loadline measure, kill, go on and report on a
# real ext4 whose every write is kept in order on the second disk (dm-log-writes of Debian's
# user-mode Linux). What loadline has said to be finished is a mark between the writes: `finished-N`.
#
#   power.sh LOADLINE ZOO STARTS
#
# What follows from the log is `cargo xtask power-loss`. Format: Documentation/admin-guide/
# device-mapper/log-writes.rst of the kernel.
set -eu
loadline=$1 zoo=$2 starts=$3

module() {
    perl -e 'open my $file, "<", $ARGV[0] or die "$ARGV[0]: $!\n"; my $none = "";
        syscall(313, fileno $file, $none, 0) == 0 or die "$ARGV[0]: $!\n"' \
        "/usr/lib/uml/modules/$(uname -r)/kernel/drivers/md/$1.ko"
}

[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
module dm-mod
module dm-log-writes
dmsetup create logged --noudevsync \
    --table "0 $(blockdev --getsz /dev/ubda) log-writes /dev/ubda /dev/ubdb"
mkfs.ext4 -q -b 4096 -J size=4 -E nodiscard,lazy_itable_init=0 /dev/dm-0
mkdir /run/disk
mount /dev/dm-0 /run/disk
sync
mark() { dmsetup message logged 0 mark "$1"; }
mark begin

# Marks what is printed as finished, now and before.
finished=0
marked() {
    while read -r line; do
        case $line in
            *"(from the store)"*) ;;
            "run "*" #"*) finished=$((finished + 1)); mark "finished-$finished" ;;
            *error:*|*hint:*) echo "$line" ;;
        esac
    done
}

state=/run/disk/state
run=(run --state $state --wait --accept-noise '--slo=errors<99%' --rate=20/s --warm-up=0s
    --measure=200ms --start-deadline=60s --url=http://localhost:8080/ --repeats "$starts")
application=(-- "$zoo" serve heap_mib=8)

# A pipe's reader is a shell of its own: this way it is this one, which counts.
marked < <("$loadline" "${run[@]}" --memory 64Mi "${application[@]}" 2>&1 >/dev/null)
"$loadline" report last --state $state -o /run/disk/report.html
# One that dies in the middle, and goes on.
marked < <(timeout --signal=KILL 6 \
    "$loadline" "${run[@]}" --memory 96Mi "${application[@]}" 2>&1 >/dev/null)
marked < <("$loadline" resume last --state $state --wait 2>&1 >/dev/null)
"$loadline" report last --state $state -o /run/disk/report.html
mark end
umount /run/disk
dmsetup remove logged
echo "finished $finished"
