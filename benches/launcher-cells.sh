#!/bin/sh
# Prints the cells of the table "plain java beside loadline-launch" for launcher-spring.sh:
#
#   benches/launcher-cells.sh ROUNDS JAVA... | benches/launcher-spring.sh LAUNCHER JAR CSV 140
#
# 13 sizes from 150 MiB and half a CPU to 2 GiB and two, with every JAVA, both ways in turn.
rounds=$1
shift
round=1
while [ "$round" -le "$rounds" ]; do
    for size in 150:100 200:100 256:50 256:200 320:100 384:100 512:50 512:100 768:200 1024:100 1024:200 2048:100 2048:200; do
        for java in "$@"; do
            # The order changes from round to round, so that neither way always comes first.
            ways="plain launch"
            [ $((round % 2)) -eq 0 ] && ways="launch plain"
            for how in $ways; do
                echo "$java ${size%:*} ${size#*:} $round $how"
            done
        done
    done
    round=$((round + 1))
done
