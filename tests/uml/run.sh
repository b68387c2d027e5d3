#!/bin/bash
# Runs a program on real cgroup v2, whatever this machine has: boots user-mode Linux (a kernel
# that is an ordinary process) on this machine's own root directory, mounted read-only, and runs
# the program there as root. Output and exit code are the program's.
#
#   tests/uml/run.sh PROGRAM [ARGUMENT...]
#
# Exit code: the program's; 77 where user-mode Linux is not installed or cannot boot (no ptrace);
# 125 when the guest was lost while the program ran.
# LOADLINE_UML          the kernel, default `linux.uml` (Debian package user-mode-linux)
# LOADLINE_UML_MEMORY   memory of the guest, default 1500M
# LOADLINE_UML_TIMEOUT  seconds until the guest is killed, default 300
# LOADLINE_UML_DISKS    files that are disks there, /dev/ubda and on; several with spaces between
# LOADLINE_UML_SYSTEMD  when not empty, systemd is init there (this machine's own) and the program a
#                       service of it: what a machine with cgroup v2 and systemd has
#
# In the guest: one CPU; cgroup v2 with cpu, memory, pids; no cpuset, no PSI; /tmp, /run and
# /var/tmp are empty and in memory; no network but lo. Its clock and CPU accounting are coarse:
# check what happens there, never how long it takes.
set -eu

kernel=$(command -v "${LOADLINE_UML:-linux.uml}") || {
    echo "user-mode Linux is not installed: apt-get install user-mode-linux" >&2
    exit 77
}
[ $# -ge 1 ] || { echo "usage: $0 PROGRAM [ARGUMENT...]" >&2; exit 125; }
program=$(command -v "$1") || { echo "$0: no program $1" >&2; exit 125; }
program=$(realpath "$program")
shift

work=$(mktemp -d "${TMPDIR:-/tmp}/loadline-uml.XXXXXX")
trap 'rm -rf "$work"' EXIT
marker="uml-exit-$$-$RANDOM"

# A program, or a working directory, below one of these stays visible: it is not covered then.
covered=""
for dir in /tmp /var/tmp; do
    case "$program $PWD/" in
        "$dir"/*|*" $dir"/*) ;;
        *) covered="$covered $dir" ;;
    esac
done

# The whole environment that a test may need goes in by name.
variables=""
for name in PATH JAVA_HOME RUST_BACKTRACE PROPTEST_CASES; do
    [ -z "${!name:-}" ] || variables="$variables export $name=$(printf %q "${!name}");"
done
command=$(printf '%q ' "$program" "$@")

# Without systemd the program is a child of init. With it nothing that this machine would start is
# started.
systemd="" start=". /run/program"
if [ -n "${LOADLINE_UML_SYSTEMD:-}" ]; then
    systemd='mkdir -p /run/systemd/system
export -p > /run/variables
cat > /run/systemd/system/guest.service <<UNIT
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/bash -c ". /run/variables; . /run/program"
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
UNIT'
    start="exec /lib/systemd/systemd --unit=guest.service --log-target=null --show-status=false"
fi

cat > "$work/init" <<INIT
#!/bin/bash
export HOME=/ ; $variables
export PATH="\$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 none /sys/fs/cgroup
mountpoint -q /dev || mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs shm /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs run /run
for dir in $covered; do mount -t tmpfs tmp \$dir && chmod 1777 \$dir; done
mkdir -p /run/tmp; export TMPDIR=/run/tmp
ip link set lo up
$systemd
cat > /run/program <<'PROGRAM'
cd $(printf %q "$PWD")
echo "$marker begin"
$command < /dev/null
code=\$?
echo; echo "$marker \$code"
poweroff -f -d
PROGRAM
$start
INIT
chmod 755 "$work/init"

# What the kernel needs on a CPU with AMX; without it the guest does not boot there.
preload=""
if grep -qw amx_tile /proc/cpuinfo &&
    cc -shared -fPIC -O2 -o "$work/whole_registers.so" "$(dirname "$0")/whole_registers.c"; then
    preload="$work/whole_registers.so"
fi

# One CPU, drawn from those allowed here: the kernel stops its processes at each call, and two CPUs
# would wake each other up each time.
cpus=()
IFS=, read -ra ranges <<< "$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)"
for range in "${ranges[@]}"; do
    for ((cpu = ${range%-*}; cpu <= ${range#*-}; cpu++)); do cpus+=("$cpu"); done
done
cpu=${cpus[RANDOM % ${#cpus[@]}]}

disks="" number=0
for disk in ${LOADLINE_UML_DISKS:-}; do
    disks="$disks ubd$number=$disk"
    number=$((number + 1))
done

# mem: the guest's memory is a sparse file in TMPDIR. The kernel's own words go to stderr of
# the file, the guest's console to stdout.
timeout --kill-after=5 "${LOADLINE_UML_TIMEOUT:-300}" \
    taskset --cpu-list "$cpu" env LD_PRELOAD="$preload" "$kernel" mem="${LOADLINE_UML_MEMORY:-1500M}" $disks \
    root=/dev/root rootfstype=hostfs rootflags=/ ro \
    init="$work/init" con=null con0=null,fd:1 loglevel=1 uml_dir="$work" umid=guest \
    < /dev/null 2> "$work/kernel" | tr -d '\r' | tee "$work/console" |
    sed -un "/^$marker begin\$/,/^$marker [0-9]/{/^$marker /!p}" || true

code=$(sed -n "s/^$marker \([0-9]*\)$/\1/p" "$work/console")
if [ -z "$code" ]; then
    code=125
    why="the guest ended without a result"
    grep -q "^$marker begin$" "$work/console" || { code=77; why="user-mode Linux does not boot here"; }
    # Its ptrace call for the registers then fails, and init dies by SIGSEGV in put_fp_registers.
    [ $code = 125 ] || ! grep -q put_fp_registers "$work/console" ||
        why="$why: this CPU's registers (AMX) need more room than this kernel has; cc makes what it lacks"
    echo "$0: $why; its last words:" >&2
    tail -n 20 "$work/kernel" "$work/console" >&2
fi
exit "$code"
