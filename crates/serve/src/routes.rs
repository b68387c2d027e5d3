//! From an address to a page.
//!
//! Owns the addresses. Each request opens the store to read: results come, go and change meanwhile.

use std::path::Path;

use loadline_report::live::{self, LivePage, ResultListing};
use loadline_runner::store::{ResultKind, ResultRow, ResultStatus, Store, StoreError};

use crate::ResultReading;

const RELEASES: usize = 60;
const LONGEST_ID: usize = 36;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route<'a> {
    Overview,
    Events,
    Metrics,
    Running(&'a str),
    Report(&'a str),
    Trend(&'a str),
    Stop(&'a str),
}

impl<'a> Route<'a> {
    pub fn from_path(path: &'a str) -> Option<Self> {
        let mut parts = path.strip_prefix('/')?.split('/');
        let found = match (parts.next()?, parts.next(), parts.next()) {
            ("", None, None) => Self::Overview,
            ("events", None, None) => Self::Events,
            ("metrics", None, None) => Self::Metrics,
            ("results", Some(id), None) => Self::Running(id_of(id)?),
            ("results", Some(id), Some("report")) => Self::Report(id_of(id)?),
            ("results", Some(id), Some("trend")) => Self::Trend(id_of(id)?),
            ("results", Some(id), Some("stop")) => Self::Stop(id_of(id)?),
            _ => return None,
        };
        parts.next().is_none().then_some(found)
    }
}

fn id_of(text: &str) -> Option<&str> {
    let is_plain = text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    (!text.is_empty() && text.len() <= LONGEST_ID && is_plain).then_some(text)
}

#[derive(Debug)]
pub enum RouteAnswer {
    Page(LivePage),
    Report(String),
    Metrics(String),
    Elsewhere(String),
    Unknown(String),
    Failed(String),
}

impl From<StoreError> for RouteAnswer {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unknown { .. } | StoreError::Ambiguous { .. } => {
                Self::Unknown(error.to_string())
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// The answer to a request that reads. `secret` goes into pages that can change something.
pub fn try_answer(
    route: &Route<'_>,
    directory: &Path,
    reading: &ResultReading,
    secret: &str,
) -> Result<RouteAnswer, StoreError> {
    let store = Store::open_to_read(directory)?;
    Ok(match route {
        Route::Overview | Route::Events => {
            let rows = store.all_results()?;
            let listings: Vec<ResultListing> =
                rows.iter().map(|row| row_listing(row, reading)).collect();
            RouteAnswer::Page(live::overview(&listings))
        }
        // What cannot be read is not there; its own page says why.
        Route::Metrics => {
            let running = store.running_results()?;
            let views = running
                .iter()
                .filter_map(|row| (reading.view)(&store, row).ok());
            let views: Vec<_> = views.collect();
            RouteAnswer::Metrics(loadline_report::render_openmetrics(&views))
        }
        Route::Running(id) | Route::Stop(id) => {
            let row = store.result_by_prefix(id)?;
            if row.status != ResultStatus::Running {
                return Ok(RouteAnswer::Elsewhere(format!(
                    "/results/{}/report",
                    row.id
                )));
            }
            match (reading.view)(&store, &row) {
                Ok(view) => RouteAnswer::Page(live::running_page(
                    &row_listing(&row, reading),
                    &view,
                    secret,
                )),
                Err(why) => RouteAnswer::Failed(why),
            }
        }
        Route::Report(id) => match (reading.view)(&store, &store.result_by_prefix(id)?) {
            Ok(view) => RouteAnswer::Report(loadline_report::render_html(&view)),
            Err(why) => RouteAnswer::Failed(why),
        },
        Route::Trend(id) => {
            let title = store.result_by_prefix(id)?.title;
            RouteAnswer::Page(live::releases(&title, &releases(&store, &title, reading)?))
        }
    })
}

/// What the results of a service say, oldest first. A result that cannot be read says nothing here;
/// its own page says why.
fn releases(
    store: &Store,
    title: &str,
    reading: &ResultReading,
) -> Result<Vec<live::ServiceRelease>, StoreError> {
    let says = |row: &ResultRow| {
        row.title == title && matches!(row.kind, ResultKind::Size | ResultKind::Verify)
    };
    let mut rows = store.all_results()?;
    rows.retain(says);
    let release = |row: &ResultRow| {
        let view = (reading.view)(store, row).ok()?;
        live::ServiceRelease::from_view(&view, row.created_unix_ms)
    };
    let mut found: Vec<_> = rows.iter().take(RELEASES).filter_map(release).collect();
    found.reverse();
    Ok(found)
}

pub fn row_listing(row: &ResultRow, reading: &ResultReading) -> ResultListing {
    ResultListing {
        id: row.id.clone(),
        kind: row.kind.command_name().to_owned(),
        title: row.title.clone(),
        status: row.status.status_word().to_owned(),
        is_running: row.status == ResultStatus::Running,
        begun_unix_ms: row.created_unix_ms,
        trials: row.trials,
        answer: (reading.answer)(row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_to_one_page_or_nowhere() {
        for (path, route) in [
            ("/", Some(Route::Overview)),
            ("/events", Some(Route::Events)),
            ("/metrics", Some(Route::Metrics)),
            ("/results/0190d1c2", Some(Route::Running("0190d1c2"))),
            ("/results/0190-d1/report", Some(Route::Report("0190-d1"))),
            ("/results/0190/trend", Some(Route::Trend("0190"))),
            ("/results/0190/stop", Some(Route::Stop("0190"))),
            ("/results/0190/stop/now", None),
            ("/results/../etc", None),
            ("/results/%2e%2e", None),
            ("/results/last", None),
            ("/results/", None),
            ("/results", None),
            ("results", None),
            ("", None),
        ] {
            assert_eq!(Route::from_path(path), route, "{path}");
        }
    }
}
