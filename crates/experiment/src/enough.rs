//! The length of the judged part that gives the SLO's percentiles enough requests.
//!
//! Owns the default length of a trial and the warning about a shorter one;
//! [`loadline_analysis::pooled`] owns how many requests are enough. A length set by the user always
//! stays.

use std::time::Duration;

use loadline_analysis::pooled::{ENOUGH, SloPercentile};
use loadline_analysis::slo::Slo;
use loadline_analysis::text;
use loadline_load::spec::DURATION;
use loadline_load::spec::text::PositiveTime;
use loadline_load::{LoadModel, LoadSpec};
use loadline_protocol::RunRefusal;

use super::checked::Checked;
use super::error::ExperimentSource;
use super::load::{ExperimentLoad, load_refusal};
use super::wire::ExperimentFile;
use super::{Experiment, ExperimentFactor};

/// Longest judged part chosen by default: a search has some 35 trials. A percentile that needs more
/// is judged over all starts of the proof together.
const LONGEST: Duration = Duration::from_secs(60);

/// The load with the length that the SLO needs, where nothing says how long it is.
pub(super) fn lengthen_load(
    load: ExperimentLoad,
    slo: &Slo,
    file: &ExperimentFile,
    factors: &[ExperimentFactor],
    source: &ExperimentSource<'_>,
) -> Checked<ExperimentLoad> {
    let spec = &load.spec;
    let is_said =
        spec.duration.is_some() || spec.requests.is_some() || spec.replayed_profile().is_some();
    // With prices each size has a different rate, which is not known yet.
    let is_priced = file.search.prices.is_some() || file.search.price_list.is_some();
    let levels = factors.iter().flat_map(|f| &f.levels);
    let levels = levels.filter_map(|level| level.change.rate);
    let rates = levels.chain(file.configuration.iter().filter_map(|c| c.rate));
    let rate = rates.reduce(f64::min).or(load.model.mean_rate());
    let Some(rate) = rate.filter(|_| !is_said && !is_priced) else {
        return Ok(load);
    };
    let percentiles = SloPercentile::all_of_slo(slo).into_iter();
    let lengths = percentiles.map(|p| needed_length(&p, rate * request_share(spec, &p)));
    let length = lengths.max().unwrap_or(DURATION).min(LONGEST);
    if length <= DURATION {
        return Ok(load);
    }
    let spec = LoadSpec {
        duration: Some(PositiveTime(length)),
        ..load.spec
    };
    ExperimentLoad::new(spec).map_err(|error| load_refusal(&error, source))
}

/// The time at this rate until enough requests lie beyond a percentile, in whole seconds.
fn needed_length(percentile: &SloPercentile, rate: f64) -> Duration {
    // The tiny step down undoes quotients such as 20.000000000000004.
    let seconds = (percentile.requests_needed() / rate * (1.0 - 1e-9)).ceil();
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Share of the requests that a percentile is about, in (0, 1].
fn request_share(spec: &LoadSpec, percentile: &SloPercentile) -> f64 {
    let Some(name) = &percentile.request else {
        return 1.0;
    };
    spec.request_share(name)
}

#[derive(Debug, Clone, PartialEq)]
pub struct ThinPercentile {
    percentile: SloPercentile,
    /// Rate of the requests that it covers.
    rate: f64,
    requests: f64,
    length: Duration,
    is_replayed: bool,
}

impl Experiment {
    /// Fresh starts of a proof: by default as many as the SLO's percentiles need together, up to
    /// the counted number.
    pub(super) fn enough_starts(&self) -> u32 {
        let search = &self.search;
        if search.is_counted {
            return search.prove;
        }
        let mut starts = search.prove..=search.counted_starts();
        starts
            .find(|starts| self.thin_percentiles(*starts).is_empty())
            .unwrap_or(search.prove)
    }

    /// The SLO's percentiles with fewer than [`ENOUGH`] requests beyond them in this many trials
    /// together. Empty for a closed load, because its number of requests is unknown.
    pub fn thin_percentiles(&self, trials: u32) -> Vec<ThinPercentile> {
        let ExperimentLoad { spec, model } = &self.load;
        let Some(length) = model
            .scheduled_duration()
            .filter(|_| self.search.pricing.is_none())
        else {
            return Vec::new();
        };
        let LoadModel::Open { .. } = model else {
            return Vec::new();
        };
        let configurations = self.configurations();
        let rates = configurations.iter().filter_map(|c| c.rate);
        let Some(rate) = rates.reduce(f64::min).or(model.mean_rate()) else {
            return Vec::new();
        };
        let percentiles = SloPercentile::all_of_slo(&self.slo).into_iter();
        let thin = percentiles.map(|percentile| {
            let rate = rate * request_share(spec, &percentile);
            ThinPercentile {
                percentile,
                rate,
                requests: rate * length.as_secs_f64(),
                length,
                is_replayed: spec.replayed_profile().is_some(),
            }
        });
        thin.filter(|t| t.beyond() * f64::from(trials) < ENOUGH)
            .collect()
    }
}

impl ThinPercentile {
    fn beyond(&self) -> f64 {
        self.percentile.beyond(self.requests)
    }

    fn needed_time(&self) -> String {
        text::short_duration(needed_length(&self.percentile, self.rate))
    }

    /// `p99 rests on 2 of 200 requests in a trial; at 50/s it needs 20s`.
    pub fn warning_sentence(&self) -> String {
        format!(
            "{} rests on {} of {} requests in a trial; at {} it needs {}",
            self.percentile,
            text::three_digits(self.beyond()),
            text::three_digits(self.requests),
            text::short_rate(self.rate),
            self.needed_time(),
        )
    }

    pub fn refusal_for_trials(&self, trials: u32) -> RunRefusal {
        let percentile = &self.percentile;
        let lower = "or bound a lower percentile (p95), which needs fewer";
        let proofs = (ENOUGH / self.beyond()).ceil();
        let more = if proofs <= 100.0 {
            format!(", or judge it over at least {proofs} starts together (--prove {proofs})")
        } else {
            String::new()
        };
        RunRefusal::new(
            format!(
                "{percentile} at {} needs {} of measuring",
                text::short_rate(self.rate),
                self.needed_time()
            ),
            format!(
                "{ENOUGH} requests must lie beyond it, and in {} there are {}, {} in all {trials} starts of the proof",
                text::short_duration(self.length),
                text::three_digits(self.beyond()),
                text::three_digits(self.beyond() * f64::from(trials)),
            ),
            format!("{}{more}, {lower}", self.lengthening_hint()),
        )
    }

    fn lengthening_hint(&self) -> String {
        if self.is_replayed {
            "play more of the profile (--speed, --duration)".to_owned()
        } else {
            format!("measure for longer: --duration {}", self.needed_time())
        }
    }
}
