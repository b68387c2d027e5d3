//! The live page: what runs now, all results, and services over their releases, for a browser.
//!
//! Owns the HTTP server, who may read and who may stop a run ([`access`]), and what runs at this
//! moment ([`feed`]), from the store and the event logs of running trials. Never measures, and
//! changes nothing in the store: to stop a run it asks that loadline, as Ctrl-C does. The pages are
//! [`loadline_report::live`]'s. Costs nothing without viewers.
//!
//! Facts: HTML Living Standard, "Server-sent events"; CSP Level 3; a page of another site can make
//! a browser send requests here (CSRF), or let its own name mean 127.0.0.1 (DNS rebinding).

pub mod access;
mod feed;
mod http;
mod routes;
mod server;
mod trial;

use loadline_report::ResultView;
use loadline_runner::store::{ResultRow, Store};

pub use server::{ServeError, StateServer};

#[derive(Debug, Clone, Copy)]
pub struct ResultReading {
    /// The result as reports read it, without secrets; else why it cannot be read.
    pub view: fn(&Store, &ResultRow) -> Result<ResultView, String>,
    pub answer: fn(&ResultRow) -> String,
    /// How long it takes yet, in a sentence; `None` where that is not known.
    pub left: fn(&Store, &ResultRow) -> Option<String>,
}
