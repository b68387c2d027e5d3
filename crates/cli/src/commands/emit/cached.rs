//! The start-up cache of emitted files: which one, and the refusals.
//!
//! Crate `report` owns the stage that makes it.

use loadline_analysis::record::StartCache;
use loadline_report::ResultView;
use loadline_report::emit::{CACHE_REQUESTS, ProductionApplication};
use loadline_sizing::cache::CacheKind;

use crate::error::Error;

/// The requested start-up cache, else the measured one, trained the same way.
pub(super) fn asked_for(asked: Option<CacheKind>, view: &ResultView) -> Option<StartCache> {
    let recommendation = view.recommendation.as_ref();
    let measured = recommendation.and_then(|r| r.configuration.cache);
    let Some(kind) = asked else {
        return measured;
    };
    let same = measured.filter(|cache| cache.kind == kind);
    Some(same.unwrap_or(StartCache {
        kind,
        requests: CACHE_REQUESTS,
    }))
}

/// A variable of a manifest replaces the image's, so the image must have the cache before it is
/// measured: then its option is known as one of the image's.
pub(super) fn refuse_cache_of_image(application: &ProductionApplication) -> Result<(), Error> {
    let has_cache = application.measured_image.is_some() && application.cache.is_some();
    if !has_cache {
        return Ok(());
    }
    let image = &application.image;
    Err(Error::usage(format!("the start-up cache is not in {image}, and a manifest cannot put it there"),
    )
    .with_hint(format!("loadline cache --image {image} writes the cache and a Dockerfile that adds it to the image; build that, then size the new image: loadline size --image")))
}

pub(super) fn refuse_cache_of_another_jvm(
    asked: Option<CacheKind>,
    jdk: u32,
    is_openj9: bool,
) -> Result<(), Error> {
    let can = match asked {
        None => true,
        Some(CacheKind::Scc) => is_openj9,
        Some(CacheKind::Aot) => !is_openj9 && jdk >= 25,
        Some(CacheKind::AppCds) => !is_openj9 && jdk >= 13,
    };
    if can {
        return Ok(());
    }
    let name = if is_openj9 { "OpenJ9" } else { "JDK" };
    let refusal = format!("--cache: the image's {name} {jdk} has no such cache");
    Err(Error::usage(refusal).with_hint("appcds needs JDK 13, aot JDK 25, scc OpenJ9"))
}
