# Written by loadline 0.1.0 from result 01a229ed-5c3c-7159-a595-20a57b6b7367.
# Tested under GET /owners?lastName=Da, open model, 100/s for 4 s, 20 connections, warm-up 2 s: it kept p99<250ms and errors<1% in 4 of 4 fresh starts, judged for 4 s after 2 s of warm-up. Not soaked.
# In the first second after start, which is not judged, p50 was 371ms and p99 609ms.
# live_heap: largest heap in use after a collection, of 4 trials
# -XX:TieredStopAtLevel=1: the user: as given
# -Xms56m: measured: trials 1-6
# -Xmx56m: measured: trials 1-6
# -XX:+AlwaysPreTouch: measured: trials 1-6
# loadline profile: measured, see `loadline-launch --explain`
jdk = 17.0.15
collector = Serial
compiler = c1
rest = 191043464
live_heap = 31Mi
option = -XX:TieredStopAtLevel=1
option = -Xms56m
option = -Xmx56m
option = -XX:+AlwaysPreTouch
