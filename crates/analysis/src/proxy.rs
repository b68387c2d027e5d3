//! Whether loadline's own proxy, which also answers for stubs, was the bottleneck. Then latencies
//! are its own, and the trial does not count.
//!
//! Owns the rule and its sentence, like those for the load generator's lateness: the proxy's own
//! delay must stay small compared with the SLO.

use std::time::Duration;

use crate::record::ProxyEvidence;
use crate::text;

/// Share of one CPU from which on its one thread is saturated, in [0, 1].
const SATURATED: f64 = 0.9;

/// Why a trial behind this proxy does not count, where it was later than allowed or had no more CPU.
pub fn proxy_bottleneck(proxy: &ProxyEvidence, allowed: Duration) -> Option<String> {
    let share = busy_share(proxy);
    if let Some(share) = share.filter(|share| *share >= SATURATED) {
        let share = text::short_percent(share.min(1.0));
        return Some(format!(
            "the proxy was the bottleneck: its one thread used {share} of a CPU"
        ));
    }
    (proxy.lag_p99 > allowed).then(|| {
        let lag = text::duration_beside(proxy.lag_p99, allowed);
        let allowed = text::exact_duration(allowed);
        format!("the proxy was late: it did 1 % of what was due {lag} late or more, at most {allowed} for this SLO")
    })
}

pub fn busy_share(proxy: &ProxyEvidence) -> Option<f64> {
    let window = proxy.window?.as_secs_f64();
    (window > 0.0).then(|| proxy.cpu.as_secs_f64() / window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_counts_while_it_is_in_time_and_has_room() {
        let ms = Duration::from_millis;
        let said = |cpu, lag_p99| {
            let proxy = ProxyEvidence {
                window: Some(ms(10_000)),
                cpu: ms(cpu),
                lag_p99: Duration::from_micros(lag_p99),
                ..ProxyEvidence::default()
            };
            proxy_bottleneck(&proxy, ms(5)).unwrap_or_else(|| "it counts".to_owned())
        };
        let all = [
            said(900, 200),
            said(9_300, 200),
            said(900, 5_400),
            said(900, 5_000),
        ];
        insta::assert_snapshot!(all.join("\n"), @"
        it counts
        the proxy was the bottleneck: its one thread used 93 % of a CPU
        the proxy was late: it did 1 % of what was due 5.40ms late or more, at most 5ms for this SLO
        it counts
        ");
    }
}
