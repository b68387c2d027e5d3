//! The highest rate that keeps the SLO, although single trials can mislead: MLRsearch.
//!
//! Owns the classification of a rate from its trials and the bisection between classified rates.
//! Requiring every trial to pass would let one glitch spoil the answer; the exceed ratio sets which
//! share of the time at a rate may be bad. Several goals share one search and its trials.
//!
//! Source: draft-ietf-bmwg-mlrsearch-15 and its appendix, adapted: "loss above the goal's ratio" is
//! here any measure of badness, and 0 or 1 for a kept or missed SLO. Bisection is geometric; all
//! trials of a search have the final length.
//!
//! [`MaxRate`] is a separate machine and no [`TrialSearch`](super::TrialSearch): the target of
//! `loadline load` runs already, so there is no configuration to ask for and no record to read.
//! [`classify_trials`] decides for both: the searches with prices take their rates through it.

use std::time::Duration;

use super::TrialOutcome;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateGoal {
    /// Trials at least this long count in full.
    pub final_duration: Duration,
    pub duration_sum: Duration,
    pub loss: f64,
    /// Largest share of the time that may be bad, in [0, 1).
    pub exceed_ratio: f64,
}

impl RateGoal {
    /// Decided by `trials` trials of one length, of which half may be bad: with 2 the first good
    /// one of two decides (biased upwards by 1 to 4 %), with 5 it is a majority vote.
    pub fn of_trials(trials: u32, length: Duration) -> Self {
        Self {
            final_duration: length,
            duration_sum: length * trials,
            loss: 0.0,
            exceed_ratio: 0.5,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSample {
    pub duration: Duration,
    /// How bad it was, in [0, 1]; 0 or 1 for an SLO that was kept or broken.
    pub loss: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateBound {
    Lower,
    Upper,
    Undecided,
}

pub fn classify_trials(trials: &[RateSample], goal: &RateGoal) -> RateBound {
    let sum = |is_full: bool, is_high: bool| -> f64 {
        let of_length = |t: &&RateSample| (t.duration >= goal.final_duration) == is_full;
        let asked = trials.iter().filter(of_length);
        let asked = asked.filter(|t| (t.loss > goal.loss) == is_high);
        asked.map(|t| t.duration.as_secs_f64()).sum()
    };
    let ratio = goal.exceed_ratio;
    // Short good trials may balance short bad ones, never full ones.
    let balanced = sum(false, true) - sum(false, false) * ratio / (1.0 - ratio);
    let high = sum(true, true) + balanced.max(0.0);
    let low = sum(true, false);
    let whole = (low + high).max(goal.duration_sum.as_secs_f64());
    let allowed = ratio * whole;
    let at_best = high <= allowed;
    let at_worst = whole - low <= allowed;
    match (at_best, at_worst) {
        (true, true) => RateBound::Lower,
        (false, false) => RateBound::Upper,
        _ => RateBound::Undecided,
    }
}

/// SPECjbb2015-style critical rate: the geometric mean of the rates that keep p99 at 10, 25, 50, 75
/// and 100 ms. `None` unless all are positive.
pub fn critical_rate(rates: &[f64]) -> Option<f64> {
    let are_positive = !rates.is_empty() && rates.iter().all(|rate| *rate > 0.0);
    let logs: f64 = rates.iter().map(|rate| rate.ln()).sum();
    are_positive.then(|| (logs / rates.len() as f64).exp())
}

#[derive(Debug, Clone, PartialEq)]
pub struct RateParameters {
    /// The goals, most important first; one outcome for each is recorded with every trial.
    pub goals: Vec<RateGoal>,
    /// A rate taken to be carried; tried only when nothing above it is.
    pub low: f64,
    /// A rate taken to be too high; tried only when everything below it is carried.
    pub high: f64,
    pub width: f64,
    /// How often a trial that could not be measured is repeated in a row.
    pub retries: u32,
    /// Whether the bound that ends a search needs one bad trial more than deciding it took. Two
    /// disturbed trials at one rate would otherwise end the search far below the answer, which at
    /// one disturbed trial in ten happens in one search of twenty.
    pub confirms: bool,
}

impl RateParameters {
    pub fn new(low: f64, high: f64, length: Duration) -> Self {
        Self {
            goals: vec![RateGoal::of_trials(2, length)],
            low,
            high,
            width: 1.02,
            retries: 2,
            confirms: true,
        }
    }

    /// A majority of five trials a rate: no upward bias, about twice the trials.
    pub fn strict(low: f64, high: f64, length: Duration) -> Self {
        Self {
            goals: vec![RateGoal::of_trials(5, length)],
            confirms: false,
            ..Self::new(low, high, length)
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum RateStep {
    Try { rate: f64, duration: Duration },
    Done(Vec<RateFound>),
    CouldNotMeasure { rate: f64 },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateFound {
    /// The highest rate that is carried; `None` when not even the lowest is.
    pub rate: Option<f64>,
    /// The lowest rate that is too high; `None` when even the highest is carried.
    pub too_high: Option<f64>,
    pub trials: u32,
}

/// The search. The same outcomes lead to the same state.
#[derive(Debug, Clone, PartialEq)]
pub struct MaxRate {
    parameters: RateParameters,
    loads: Vec<RateTrials>,
    trials: u32,
    invalid_in_a_row: u32,
    climbs: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct RateTrials {
    rate: f64,
    trials: Vec<Vec<RateSample>>,
}

impl MaxRate {
    pub fn new(parameters: RateParameters) -> Self {
        Self {
            parameters,
            loads: Vec::new(),
            trials: 0,
            invalid_in_a_row: 0,
            climbs: false,
        }
    }

    /// Searches in another range and keeps everything learnt so far; used when every goal's answer
    /// lies outside the first range. A higher upper end is tried first: the guess may have been far
    /// too low, and a range with a carried end needs no narrowing.
    pub fn widen(&mut self, low: f64, high: f64) {
        self.climbs = high > self.parameters.high;
        self.parameters.low = low;
        self.parameters.high = high;
    }

    pub fn next(&self) -> RateStep {
        for (index, goal) in self.parameters.goals.iter().enumerate() {
            let Some(rate) = self.wanted_rate(index) else {
                continue;
            };
            let duration = goal.final_duration;
            return if self.invalid_in_a_row > self.parameters.retries {
                RateStep::CouldNotMeasure { rate }
            } else {
                RateStep::Try { rate, duration }
            };
        }
        let goals = 0..self.parameters.goals.len();
        RateStep::Done(goals.map(|goal| self.goal_answer(goal)).collect())
    }

    /// Takes the outcomes of the trial at the rate that [`MaxRate::next`] asked for, one for each
    /// goal. Outcomes for goals that are missing count as not measured. A trial in which any is
    /// [`TrialOutcome::Invalid`] does not count.
    pub fn record_outcomes(&mut self, outcomes: &[TrialOutcome]) {
        let RateStep::Try { rate, duration } = self.next() else {
            return;
        };
        if outcomes.contains(&TrialOutcome::Invalid) || outcomes.is_empty() {
            self.invalid_in_a_row += 1;
            return;
        }
        self.invalid_in_a_row = 0;
        self.trials += 1;
        let goals = self.parameters.goals.len();
        let known = self.loads.iter().position(|load| load.rate == rate);
        let index = known.unwrap_or_else(|| {
            let trials = vec![Vec::new(); goals];
            self.loads.push(RateTrials { rate, trials });
            self.loads.len() - 1
        });
        for (trials, outcome) in self.loads[index].trials.iter_mut().zip(outcomes) {
            let loss = f64::from(u8::from(*outcome != TrialOutcome::Pass));
            trials.push(RateSample { duration, loss });
        }
    }

    fn wanted_rate(&self, goal: usize) -> Option<f64> {
        let (carried, too_high) = self.bounds(goal);
        let low = carried.unwrap_or(self.parameters.low);
        let high = too_high.unwrap_or(self.parameters.high);
        let is_open = |rate: f64| self.bound_at(rate, goal) == RateBound::Undecided;
        if self.climbs && too_high.is_none() && is_open(high) {
            return Some(high);
        }
        // The tiny slack ends a search at a ratio of exactly `width`.
        if high / low > self.parameters.width * (1.0 + 1e-12) {
            return Some((low * high).sqrt());
        }
        if carried.is_none() && is_open(self.parameters.low) {
            return Some(self.parameters.low);
        }
        if too_high.is_none() && is_open(self.parameters.high) {
            return Some(self.parameters.high);
        }
        too_high.filter(|rate| self.parameters.confirms && !self.is_confirmed(*rate, goal))
    }

    fn is_confirmed(&self, rate: f64, goal: usize) -> bool {
        let rule = &self.parameters.goals[goal];
        let at_rate = self.loads.iter().filter(|load| load.rate == rate);
        let trials = at_rate.flat_map(|load| &load.trials[goal]);
        let bad = trials.filter(|trial| trial.loss > rule.loss);
        bad.map(|trial| trial.duration).sum::<Duration>() > rule.duration_sum
    }

    fn bound_at(&self, rate: f64, goal: usize) -> RateBound {
        let load = self.loads.iter().find(|load| load.rate == rate);
        let rule = &self.parameters.goals[goal];
        let bound = load.map(|load| classify_trials(&load.trials[goal], rule));
        bound.unwrap_or(RateBound::Undecided)
    }

    /// The relevant bounds: the lowest rate that is too high, and the highest carried below it.
    fn bounds(&self, goal: usize) -> (Option<f64>, Option<f64>) {
        let rule = &self.parameters.goals[goal];
        let of = |bound: RateBound| {
            let loads = self.loads.iter();
            loads.filter_map(move |load| {
                (classify_trials(&load.trials[goal], rule) == bound).then_some(load.rate)
            })
        };
        let too_high = of(RateBound::Upper).reduce(f64::min);
        let below = too_high.unwrap_or(f64::INFINITY);
        let carried = of(RateBound::Lower).filter(|r| *r < below).reduce(f64::max);
        (carried, too_high)
    }

    fn goal_answer(&self, goal: usize) -> RateFound {
        let (rate, too_high) = self.bounds(goal);
        RateFound {
            rate,
            too_high,
            trials: self.trials,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(value: u64) -> Duration {
        Duration::from_secs(value)
    }

    fn goal(final_duration: u64, sum: u64, loss: f64, exceed_ratio: f64) -> RateGoal {
        RateGoal {
            final_duration: seconds(final_duration),
            duration_sum: seconds(sum),
            loss,
            exceed_ratio,
        }
    }

    fn appendix() -> [RateGoal; 4] {
        [
            goal(60, 60, 0.0, 0.0),
            goal(60, 120, 0.0, 0.5),
            goal(1, 120, 0.005, 0.5),
            goal(60, 60, 0.005, 0.2),
        ]
    }

    /// (trials, seconds each, loss) added at each point of the appendix example.
    const POINTS: [(usize, u64, f64); 6] = [
        (59, 1, 0.0),
        (1, 1, 0.01),
        (59, 1, 0.01),
        (1, 1, 0.0),
        (1, 60, 0.001),
        (1, 60, 0.0),
    ];

    fn after(points: usize) -> Vec<RateSample> {
        let point = |(count, length, loss): &(usize, u64, f64)| {
            let trial = RateSample {
                duration: seconds(*length),
                loss: *loss,
            };
            std::iter::repeat_n(trial, *count)
        };
        POINTS[..points].iter().flat_map(point).collect()
    }

    /// All 24 cells of the example in the draft's appendix, by the draft's code. The draft's text
    /// prints a lower bound for the last goal at points 5 and 6, against its own exceed ratios.
    #[test]
    fn the_draft_s_example_is_classified_by_its_code() {
        let row = |points: usize| -> String {
            let trials = after(points);
            let cell = |goal: &RateGoal| match classify_trials(&trials, goal) {
                RateBound::Undecided => 'U',
                RateBound::Upper => '^',
                RateBound::Lower => 'v',
            };
            appendix().iter().map(cell).collect()
        };
        let rows: Vec<String> = (1..=6).map(row).collect();
        assert_eq!(rows, ["UUUU", "^UUU", "^UU^", "^Uv^", "^Uv^", "^vv^"]);
    }

    #[test]
    fn two_trials_decide_by_the_first_good_one() {
        let goal = RateGoal::of_trials(2, seconds(10));
        let of = |losses: &[f64]| {
            let trial = |loss: &f64| RateSample {
                duration: seconds(10),
                loss: *loss,
            };
            classify_trials(&losses.iter().map(trial).collect::<Vec<_>>(), &goal)
        };
        assert_eq!(of(&[0.0]), RateBound::Lower);
        assert_eq!(of(&[1.0]), RateBound::Undecided);
        assert_eq!(of(&[1.0, 0.0]), RateBound::Lower);
        assert_eq!(of(&[1.0, 1.0]), RateBound::Upper);
    }

    #[test]
    fn the_critical_rate_is_a_geometric_mean() {
        let rate = critical_rate(&[1789.0, 2588.0, 2848.0, 3080.0, 3428.0]).unwrap();
        assert!((rate - 2683.7).abs() < 0.05, "{rate}");
        assert_eq!(critical_rate(&[100.0, 0.0]), None);
        assert_eq!(critical_rate(&[]), None);
    }

    fn one_trial(low: f64, high: f64) -> RateParameters {
        RateParameters {
            goals: vec![RateGoal::of_trials(1, seconds(10))],
            confirms: false,
            ..RateParameters::new(low, high, seconds(10))
        }
    }

    /// Runs a search in a world where each goal carries up to its knee.
    fn trace(parameters: RateParameters, knees: &[f64]) -> String {
        let mut search = MaxRate::new(parameters);
        let mut text = String::new();
        loop {
            match search.next() {
                RateStep::Try { rate, .. } => {
                    let outcome = |knee: &f64| {
                        if rate <= *knee {
                            TrialOutcome::Pass
                        } else {
                            TrialOutcome::Fail
                        }
                    };
                    let outcomes: Vec<TrialOutcome> = knees.iter().map(outcome).collect();
                    let marks: String = outcomes
                        .iter()
                        .map(|o| if *o == TrialOutcome::Pass { '+' } else { '-' })
                        .collect();
                    text += &format!("{rate:.1}{marks} ");
                    search.record_outcomes(&outcomes);
                }
                RateStep::Done(answers) => {
                    for answer in answers {
                        text += &format!("= {:.2?} ", answer.rate);
                    }
                    return text;
                }
                RateStep::CouldNotMeasure { rate } => return text + &format!("lost at {rate}"),
            }
        }
    }

    #[test]
    fn a_noiseless_search_takes_the_golden_path() {
        insta::assert_snapshot!(
            trace(one_trial(200.0, 3000.0), &[1000.0]),
            @"774.6+ 1524.4- 1086.6- 917.4+ 998.5+ 1041.6- 1019.8- 1009.1- = Some(998.47)"
        );
    }

    #[test]
    fn goals_share_their_trials() {
        let two = RateParameters {
            goals: vec![RateGoal::of_trials(1, seconds(10)); 2],
            ..one_trial(200.0, 3000.0)
        };
        let alone = |knee| {
            trace(one_trial(200.0, 3000.0), &[knee])
                .matches(['+', '-'])
                .count()
        };
        let both = trace(two, &[1000.0, 900.0]);
        assert!(both.ends_with("= Some(998.47) = Some(898.24) "), "{both}");
        let trials = both.matches('.').count() - 2;
        assert!(trials < alone(1000.0) + alone(900.0), "{both}");
    }

    #[test]
    fn the_ends_of_the_range_are_tried_when_they_matter() {
        let all_bad = trace(one_trial(100.0, 110.0), &[50.0]);
        insta::assert_snapshot!(all_bad, @"104.9- 102.4- 101.2- 100.0- = None");
        let all_good = trace(one_trial(100.0, 110.0), &[500.0]);
        insta::assert_snapshot!(all_good, @"104.9+ 107.4+ 108.7+ 110.0+ = Some(110.00)");
    }

    #[test]
    fn a_wider_range_keeps_what_was_learnt() {
        let mut search = MaxRate::new(one_trial(100.0, 110.0));
        let mut rates = Vec::new();
        for (low, high) in [(100.0, 110.0), (10.0, 110.0)] {
            search.widen(low, high);
            while let RateStep::Try { rate, .. } = search.next() {
                rates.push(rate);
                search.record_outcomes(&[if rate <= 50.0 {
                    TrialOutcome::Pass
                } else {
                    TrialOutcome::Fail
                }]);
            }
        }
        let RateStep::Done(answers) = search.next() else {
            panic!("the search is over");
        };
        let (rate, too_high) = (answers[0].rate.unwrap(), answers[0].too_high.unwrap());
        assert!(rate <= 50.0 && too_high > 50.0 && too_high / rate <= 1.021);
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        assert_eq!(
            rates.len() as u32,
            answers[0].trials,
            "no rate was tried twice"
        );
    }

    #[test]
    fn a_higher_range_is_tried_from_its_end() {
        let mut search = MaxRate::new(one_trial(100.0, 110.0));
        let mut text = String::new();
        for high in [110.0, 220.0, 440.0] {
            search.widen(100.0, high);
            while let RateStep::Try { rate, .. } = search.next() {
                text += &format!("{rate:.1} ");
                search.record_outcomes(&[if rate <= 300.0 {
                    TrialOutcome::Pass
                } else {
                    TrialOutcome::Fail
                }]);
            }
        }
        assert!(
            text.starts_with("104.9 107.4 108.7 110.0 220.0 440.0 311.1 261.6 "),
            "{text}"
        );
        assert!(matches!(search.next(), RateStep::Done(answers) if answers[0].rate.is_some()));
    }

    /// The rates that a search tries; the trials with these numbers, counted from 0, are disturbed.
    fn tried(parameters: RateParameters, knee: f64, disturbed: &[usize]) -> (Vec<f64>, RateFound) {
        let mut search = MaxRate::new(parameters);
        let mut rates = Vec::new();
        while let RateStep::Try { rate, .. } = search.next() {
            let is_good = rate <= knee && !disturbed.contains(&rates.len());
            rates.push(rate);
            search.record_outcomes(&[if is_good {
                TrialOutcome::Pass
            } else {
                TrialOutcome::Fail
            }]);
        }
        let RateStep::Done(answers) = search.next() else {
            panic!("the search is over");
        };
        (rates, answers[0])
    }

    #[test]
    fn the_bound_that_ends_a_search_is_confirmed() {
        let parameters = RateParameters::new(200.0, 3000.0, seconds(10));
        let (rates, answer) = tried(parameters.clone(), 1000.0, &[]);
        let too_high = answer.too_high.unwrap();
        assert_eq!(rates.iter().filter(|r| **r == too_high).count(), 3);
        let unconfirmed = RateParameters {
            confirms: false,
            ..parameters.clone()
        };
        let (fewer, same) = tried(unconfirmed.clone(), 1000.0, &[]);
        assert_eq!((fewer.len() + 1, same.rate), (rates.len(), answer.rate));
        // The first rate is disturbed twice: without confirmation that ends the search.
        let (_, misled) = tried(unconfirmed, 1000.0, &[0, 1]);
        assert!(misled.rate.unwrap() < 780.0, "{misled:?}");
        let (_, right) = tried(parameters, 1000.0, &[0, 1]);
        assert_eq!(right.rate, answer.rate);
    }

    #[test]
    fn a_strict_search_decides_by_three_of_five() {
        let strict = RateParameters::strict(200.0, 3000.0, seconds(10));
        assert!(!strict.confirms);
        let (rates, answer) = tried(strict.clone(), 1000.0, &[]);
        let first = rates.iter().take_while(|rate| **rate == rates[0]);
        assert_eq!(first.count(), 3, "{rates:?}");
        let (more, same) = tried(strict, 1000.0, &[0, 1]);
        assert_eq!((more.len(), same.rate), (rates.len() + 2, answer.rate));
    }

    #[test]
    fn what_cannot_be_measured_does_not_count() {
        let mut search = MaxRate::new(one_trial(100.0, 400.0));
        for _ in 0..2 {
            search.record_outcomes(&[TrialOutcome::Invalid]);
        }
        assert!(matches!(search.next(), RateStep::Try { rate, .. } if rate == 200.0));
        search.record_outcomes(&[TrialOutcome::Invalid]);
        assert_eq!(search.next(), RateStep::CouldNotMeasure { rate: 200.0 });
    }

    /// 1.02 times some rates is an ulp above or below: neither is one more bisection.
    #[test]
    fn bounds_within_the_width_to_the_last_digit_end_a_search() {
        for low in [100.0, 101.3, 107.7, 123.45, 777.7, 998.1] {
            let text = trace(one_trial(low, low * 1.02), &[low * 1.01]);
            assert!(!text.contains(&format!("{:.1}", low * 1.01)), "{text}");
            assert!(text.ends_with(&format!("= Some({low:.2}) ")), "{text}");
        }
        let wider = trace(one_trial(100.0, 102.1), &[200.0]);
        assert!(wider.starts_with("101.0+"), "{wider}");
    }
}
