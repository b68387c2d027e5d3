# Written by loadline 0.1.0 from result 01a1f97f-614b-771a-89eb-7c3252a7eaf1.
# Tested under GET /owners?lastName=Da, open model, 100/s for 4 s, 20 connections, warm-up 2 s: it kept p99<250ms and errors<1% in 20 of 20 fresh starts, judged for 4 s after 2 s of warm-up. Not soaked.
# live_heap: largest heap in use after a collection, of 21 trials
# -XX:TieredStopAtLevel=1: the user: as given
# loadline profile: measured, see `loadline-launch --explain`
jdk = 17.0.15
collector = Serial
compiler = c1
live_heap = 29Mi
option = -XX:TieredStopAtLevel=1
