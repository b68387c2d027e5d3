# Written by loadline 0.1.0 from result 01a22eaf-f707-7488-b817-504e3f838da6.
# Tested under GET /owners?lastName=Da, open model, 100/s for 4 s, 20 connections, warm-up 2 s: it kept p99<250ms and errors<1% in 3 of 3 fresh starts, judged for 4 s after 2 s of warm-up. Not soaked.
# In the first second after start, which is not judged, p50 was 436ms and p99 678ms.
# live_heap: largest heap in use after a collection, of 3 trials
# -XX:TieredStopAtLevel=1: the user: as given
# -Xms52m: measured: trials 1-5
# -Xmx52m: measured: trials 1-5
# -XX:+AlwaysPreTouch: measured: trials 1-5
# loadline profile: measured, see `loadline-launch --explain`
jdk = 17.0.15
collector = Serial
compiler = c1
rest = 193732855
live_heap = 32Mi
option = -XX:TieredStopAtLevel=1
option = -Xms52m
option = -Xmx52m
option = -XX:+AlwaysPreTouch
