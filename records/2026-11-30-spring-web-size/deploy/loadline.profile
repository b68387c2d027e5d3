# Written by loadline 0.1.0 from result 01a22bec-3b06-74ca-9ee4-d98ed0f2cac6.
# Tested under GET /owners?lastName=Da, open model, 100/s for 4 s, 20 connections, warm-up 2 s: it kept p99<250ms and errors<1% in 3 of 3 fresh starts, judged for 4 s after 2 s of warm-up. Not soaked.
# In the first second after start, which is not judged, p50 was 578ms and p99 869ms.
# live_heap: largest heap in use after a collection, of 3 trials
# -XX:TieredStopAtLevel=1: the user: as given
# -Xms60m: measured: trials 1-5
# -Xmx60m: measured: trials 1-5
# -XX:+AlwaysPreTouch: measured: trials 1-5
# loadline profile: measured, see `loadline-launch --explain`
jdk = 17.0.15
collector = Serial
compiler = c1
rest = 192245025
live_heap = 30Mi
option = -XX:TieredStopAtLevel=1
option = -Xms60m
option = -Xmx60m
option = -XX:+AlwaysPreTouch
