#!/bin/sh
# Makes an image of a jar where no registry can be reached: a JDK of this machine (JAVA_HOME, else that
# of javac) cut down by jlink, or whole where it has none, the libraries that it needs, and the jar;
# nothing else is in it.
#
#   tests/images/jar.sh JAR DIRECTORY NAME [ENGINE...]
#
# DIRECTORY keeps the files of the image (DIRECTORY/root, its runtime in opt/jre) and the archive of
# them; a second call makes the runtime no second time. ENGINE is podman where nothing is said.
set -eu
jar=$1 name=$3
mkdir -p "$2"
# What ldd prints begins with the path of a file: a relative one would look like a library of the machine.
out=$(cd "$2" && pwd)
shift 3
# jlink prints its errors where it prints everything else.
quietly() { "$@" >"$out/log" 2>&1 || { cat "$out/log" >&2; return 1; }; }
[ $# -gt 0 ] || set -- podman
root=$out/root
if [ ! -e "$root/opt/jre/bin/java" ]; then
    home=${JAVA_HOME:-$(dirname "$(dirname "$(realpath "$(command -v javac)")")")}
    mkdir -p "$root/opt" "$root/app" "$root/etc" "$root/tmp"
    if [ -x "$home/bin/jlink" ]; then
        quietly "$home/bin/jlink" --add-modules ALL-MODULE-PATH --output "$root/opt/jre"
        quietly "$root/opt/jre/bin/java" -Xshare:dump
    else
        cp -RL "$home" "$root/opt/jre"
    fi
    # A JVM whose user has no name keeps no counters.
    cp /etc/passwd /etc/group "$root/etc/"
    # Every library that the runtime's own files name, under the name by which they are sought, and the
    # one that no file names: a thread that ends opens it.
    {
        find "$root/opt/jre" \( -name '*.so' -o -path '*/bin/java' \) -exec ldd {} + 2>/dev/null \
            | grep -o '/[^ ]*\.so[^ ]*' | grep -v "^$root"
        find /lib/*-linux-gnu -name libgcc_s.so.1
    } | sort -u | while read -r library; do
            [ -e "$library" ] || continue
            mkdir -p "$root$(dirname "$library")"
            cp -L "$library" "$root$library"
        done
fi
cp "$jar" "$root/app/app.jar"
tar -C "$root" --owner=0 --group=0 -cf "$out/root.tar" .
for engine in "$@"; do
    "$engine" import --change 'CMD ["/opt/jre/bin/java","-jar","/app/app.jar"]' "$out/root.tar" "$name" >/dev/null
done
