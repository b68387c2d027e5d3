# Written by loadline 0.1.0 from result 01a222a0-67aa-70b9-a4f7-3d66fdb0d2ad.
# Tested under GET /owners?lastName=Da, open model, 100/s for 4 s, 20 connections, warm-up 2 s: it kept p99<250ms and errors<1% in 3 of 3 fresh starts, judged for 4 s after 2 s of warm-up. Not soaked.
# In the first second after start, which is not judged, p50 was 219ms and p99 564ms.
# live_heap: largest heap in use after a collection, of 3 trials
# -XX:TieredStopAtLevel=1: the user: as given
# -Xms56m: measured: trials 2-6
# -Xmx56m: measured: trials 2-6
# -XX:+AlwaysPreTouch: measured: trials 2-6
# loadline profile: measured, see `loadline-launch --explain`
jdk = 17.0.15
collector = Serial
compiler = c1
rest = 188138786
live_heap = 31Mi
option = -XX:TieredStopAtLevel=1
option = -Xms56m
option = -Xmx56m
option = -XX:+AlwaysPreTouch
