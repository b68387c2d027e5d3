//! Memory of a run: its bound, and its usual size.
//!
//! Owns the sum of the generator's own bounds; the comments here name the place that enforces each.
//! A server under load is not trusted: whatever it sends, exceeding this sum means that a bound is
//! missing. Well-behaved servers cause far less, and only that is reserved if memory is scarce
//! ([`LoadPlan::usual_memory`]). Measured with the kernel's part (cgroup peak): 8 MiB for 20
//! connections, 51 for 10,000, 53 for 2,000 with TLS, 68 for 1,000 of HTTP/2 with 100 streams each,
//! 97 with TLS, 67 for 100 with 1,000 streams, 315 for a mix of 2,000 requests.

use super::{LoadPlan, RequestSpec};

/// The program, its libraries' tables, the order and its parsed form: some 20 MiB, with reserve.
const PROGRAM: u64 = 96 << 20;
/// A thread: stack, receive buffer, events.
const THREAD: u64 = 8 << 20;
/// A histogram of 1 ns to 1 h with 3 digits that is full ([`crate::histogram::new`]), and its text.
const HISTOGRAM: u64 = 512 << 10;
/// Histograms per thread: three each for the warm-up and the measured part, in the second under way
/// and in two in transit, and as many again in the sums.
const HISTOGRAMS: u64 = 24;
/// Seconds of which outcomes are kept one by one, at most (`shard`).
const SECONDS: u64 = 3600;
/// A connection: a head of 64 KiB that is not whole (`response`) with the 64 KiB received after it, in
/// vectors that double, and the kernel's socket.
const CONNECTION: u64 = 320 << 10;
/// With TLS: keys, records of 16 KiB in both directions, a handshake of 64 KiB (rustls).
const TLS: u64 = 256 << 10;
/// With HTTP/2: 256 KiB gathered to be sent, header blocks of 64 KiB, frames, tables (`http2`).
const HTTP2: u64 = 1 << 20;
/// Room for one request of HTTP/2, its place in the queues, and what it searches the answer for.
const STREAM: u64 = 1 << 10;
/// The cookies of a user: 50 with 8 KiB in all (`user`), once more in the result.
const USER: u64 = 32 << 10;

/// Measured: the program, and per connection, per TLS connection, per stream, and per request of a
/// mix (two histograms in two sums).
const USUAL: (u64, u64, u64, u64, u64) = (8 << 20, 5 << 10, 30 << 10, 640, 160 << 10);

impl LoadPlan {
    /// Bytes that a run of this plan takes where the server behaves, as measured above; with bodies as
    /// large as the plan's own.
    pub fn usual_memory(&self) -> u64 {
        if !self.sends_requests() {
            return 0;
        }
        let (program, connection, tls, stream, request) = USUAL;
        let streams = self.http2.map_or(0, |http2| u64::from(http2.streams));
        let each = connection + self.tls.as_ref().map_or(0, |_| tls) + streams * stream;
        let connections = u64::from(self.connections).saturating_mul(each);
        let mix = self.mix.len() as u64 * request;
        [program, connections, mix, 4 * self.all_request_octets()]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Bytes that a run of this plan takes at most, whatever the server sends.
    pub fn max_memory(&self) -> u64 {
        let (connections, threads) = (u64::from(self.connections), u64::from(self.shard_count()));
        let mut each = CONNECTION + 2 * self.longest_request();
        each += self.tls.as_ref().map_or(0, |_| TLS);
        each += self.users.as_ref().map_or(0, |_| USER);
        if let Some(http2) = self.http2 {
            let text = self.expect.body_contains.as_ref().map_or(0, String::len) as u64;
            let stream = STREAM + 2 * text + 2 * self.longest_request();
            each += HTTP2 + u64::from(http2.streams) * stream;
        }
        let seconds = if self.by_second {
            self.measured_seconds().min(SECONDS)
        } else {
            0
        };
        // Of each request one for the warm-up and one after it; sums are another thread's worth.
        let histograms = HISTOGRAMS + 2 * self.mix.len() as u64 + seconds;
        let present = self.users.as_ref().map_or(0, |users| users.present.len()) as u64 * USER;
        [
            PROGRAM,
            present,
            4 * self.all_request_octets(),
            connections.saturating_mul(each),
            threads * THREAD,
            (threads + 1) * histograms * HISTOGRAM,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    fn measured_seconds(&self) -> u64 {
        let length = self.model.scheduled_duration();
        length.map_or(SECONDS, |length| length.as_secs() + 1)
    }

    fn longest_request(&self) -> u64 {
        let lengths = self.weighted_requests().into_iter();
        let lengths = lengths.map(|(_, r)| request_length(r));
        lengths.max().unwrap_or(0)
    }

    fn all_request_octets(&self) -> u64 {
        self.weighted_requests()
            .into_iter()
            .map(|(_, r)| request_length(r))
            .sum()
    }
}

fn request_length(request: &RequestSpec) -> u64 {
    let field = |(name, value): &(String, String)| name.len() + value.len() + 4;
    let headers: usize = request.headers.iter().map(field).sum();
    (request.method.len() + request.path.len() + headers + request.body.len()) as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::plan::{Http2Options, LoadModel, LoadPlan, RequestSpec, TlsSpec, WeightedRequest};

    const MIB: u64 = 1 << 20;

    fn plan(connections: u32) -> LoadPlan {
        let model = LoadModel::at_constant_rate(100.0, Duration::from_secs(10));
        LoadPlan {
            connections,
            ..LoadPlan::new(
                vec![([127, 0, 0, 1], 80).into()],
                RequestSpec::for_get("/"),
                model,
            )
        }
    }

    /// The figures of the module's head.
    #[test]
    fn what_is_usual_is_what_was_measured() {
        let tls = Some(TlsSpec {
            server_name: "localhost".to_owned(),
            insecure: true,
            roots: None,
        });
        let http2 = |connections, streams| LoadPlan {
            http2: Some(Http2Options { streams }),
            ..plan(connections)
        };
        let with_tls = |of: LoadPlan| LoadPlan {
            tls: tls.clone(),
            ..of
        };
        let mix = |count: u32| LoadPlan {
            mix: (0..count).map(weighted).collect(),
            ..plan(20)
        };
        let measured = [
            (8, plan(20)),
            (51, plan(10_000)),
            (53, with_tls(plan(2_000))),
            (68, http2(1_000, 100)),
            (97, with_tls(http2(1_000, 100))),
            (67, http2(100, 1_000)),
            (315, mix(2_000)),
        ];
        for (mib, plan) in measured {
            let usual = plan.usual_memory() / MIB;
            assert!((mib..=mib + mib / 2).contains(&usual), "{usual} of {mib}");
            assert!(plan.usual_memory() < plan.max_memory());
        }
    }

    fn weighted(n: u32) -> WeightedRequest {
        WeightedRequest {
            name: n.to_string(),
            weight: 1.0,
            is_first: false,
            request: RequestSpec::for_get("/"),
        }
    }

    #[test]
    fn an_ordinary_plan_takes_little_and_each_of_its_parts_counts() {
        let plain = plan(20);
        assert!(
            (100..160).contains(&(plain.max_memory() / MIB)),
            "{}",
            plain.max_memory() / MIB
        );
        let more = |change: fn(&mut LoadPlan)| {
            let mut plan = plan(20);
            change(&mut plan);
            plan.max_memory().saturating_sub(plain.max_memory())
        };
        assert_eq!(more(|p| p.connections = 40), 20 * ((320 << 10) + 2 * 4));
        assert!(more(|p| p.cpus = vec![0, 1]) > 8 * MIB);
        assert!(more(|p| p.by_second = true) >= 2 * 11 * (512 << 10));
        assert!(more(|p| p.request.body = vec![0; 1 << 20]) >= 2 * 20 * MIB);
        assert_eq!(
            more(|p| p.http2 = Some(Http2Options { streams: 0 })),
            20 * MIB
        );
        assert!(more(|p| p.http2 = Some(Http2Options { streams: 100 })) >= 20 * MIB + 2000 * 1024);
        let tls = |p: &mut LoadPlan| {
            p.tls = Some(TlsSpec {
                server_name: "localhost".to_owned(),
                insecure: true,
                roots: None,
            });
        };
        assert_eq!(more(tls), 20 * (256 << 10));
        let mix = |p: &mut LoadPlan| {
            p.mix = (0..100).map(weighted).collect();
        };
        assert!(more(mix) >= 2 * 200 * (512 << 10));
        assert!(plan(10_000).max_memory() > 3 << 30);
    }
}
