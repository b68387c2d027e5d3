//! What of a trial is made in the cluster, and that nothing is made once the trial is over.
//!
//! Owns the rule: a request that makes something either is carried out before the trial ends, and then
//! is known, or is never sent. A request that is cut off in the middle may still be carried out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::lock::Mutex;
use kube::Error;

use crate::cluster::{RequestRetries, within_deadline};

#[derive(Debug, Clone, Default)]
pub(crate) struct RequestGate {
    jobs: Arc<Mutex<Vec<String>>>,
    is_closed: Arc<AtomicBool>,
}

impl RequestGate {
    /// Sends a request that belongs to a Job; `None` where the trial is over.
    pub(crate) async fn pass_request<T>(
        &self,
        job: &str,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Option<Result<T, Error>> {
        let mut jobs = self.jobs.lock().await;
        if self.is_closed() {
            return None;
        }
        if !jobs.iter().any(|known| known == job) {
            jobs.push(job.to_owned());
        }
        Some(within_deadline(request).await)
    }

    /// The same, repeated while the failure may pass; not for longer than an API server may be
    /// away.
    pub(crate) async fn pass_with_retries<T, F>(
        &self,
        job: &str,
        request: impl Fn() -> F,
    ) -> Option<Result<T, Error>>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let tries = RequestRetries::from_now();
        loop {
            let answer = self.pass_request(job, request()).await?;
            if !tries.wait_to_retry(&answer).await {
                return Some(answer);
            }
        }
    }

    /// Blocks all further requests; returns every Job that may exist.
    pub(crate) async fn close_gate(&self) -> Vec<String> {
        self.is_closed.store(true, Ordering::Relaxed);
        std::mem::take(&mut *self.jobs.lock().await)
    }

    pub(crate) async fn forget(&self, job: &str) {
        self.jobs.lock().await.retain(|known| known != job);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn run<T>(of: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build();
        runtime.expect("a runtime").block_on(of)
    }

    #[test]
    fn what_was_sent_is_known_and_nothing_is_sent_afterwards() {
        run(async {
            let gate = RequestGate::default();
            let pass = |job: &'static str| {
                let gate = gate.clone();
                async move { gate.pass_request(job, async { Ok(()) }).await.is_some() }
            };
            assert!(pass("look").await && pass("trial").await && pass("trial").await);
            gate.forget("look").await;
            assert_eq!(gate.close_gate().await, ["trial"]);
            assert!(!pass("late").await, "it is over");
            assert_eq!(gate.close_gate().await, [""; 0]);
        });
    }

    #[test]
    fn a_request_under_way_is_waited_for() {
        run(async {
            let gate = RequestGate::default();
            let is_sent = Cell::new(false);
            let under_way = gate.pass_request("trial", async {
                tokio::task::yield_now().await;
                is_sent.set(true);
                Ok(())
            });
            let closing = async {
                let jobs = gate.close_gate().await;
                assert!(is_sent.get(), "it was cut off");
                jobs
            };
            let (sent, jobs) = futures_util::future::join(under_way, closing).await;
            assert!(sent.is_some());
            assert_eq!(jobs, ["trial"]);
        });
    }
}
