//! How throughput grows with instances: Gunther's Universal Scalability Law.
//!
//! Owns the model X(N) = λN / (1 + σ(N−1) + κN(N−1)), its fit and the derived figures. σ is
//! contention, κ the cost of keeping instances coherent; with κ > 0 throughput has a peak. Source:
//! Gunther, "Guerrilla Capacity Planning", 2007. Fits use log residuals: errors of throughput are
//! relative. Needs at least six points; state the leave-one-out error with every prediction.

use crate::least_squares;

pub const FEWEST_POINTS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalingPoint {
    /// Instances, at least 1.
    pub n: f64,
    pub throughput: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residuals {
    /// ln(measured) − ln(model): relative errors. The default.
    Log,
    /// measured − model, as older tools do it.
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalingModel {
    pub sigma: f64,
    /// Coherency κ ≥ 0.
    pub kappa: f64,
    pub lambda: f64,
}

impl ScalingModel {
    pub fn fit_model(points: &[ScalingPoint], residuals: Residuals) -> Option<Self> {
        if points.len() < FEWEST_POINTS {
            return None;
        }
        Self::fit_any(points, residuals)
    }

    fn fit_any(points: &[ScalingPoint], residuals: Residuals) -> Option<Self> {
        let is_valid = |p: &ScalingPoint| p.n >= 1.0 && p.throughput > 0.0;
        if points.is_empty() || !points.iter().all(is_valid) {
            return None;
        }
        let each = points.iter().map(|p| p.throughput / p.n);
        let lambda = each.fold(0.0, f64::max);
        // λ is fitted in units of its start, so that the three parameters have like sizes.
        let model = |p: &[f64; 3]| Self {
            sigma: p[0],
            kappa: p[1],
            lambda: p[2] * lambda,
        };
        let (best, _) = least_squares::minimise_squares([0.1, 0.01, 1.0], |p| {
            let model = model(p);
            let residual = |point: &ScalingPoint| match residuals {
                Residuals::Log => (point.throughput / model.throughput(point.n)).ln(),
                Residuals::Plain => (point.throughput - model.throughput(point.n)) / lambda,
            };
            points.iter().map(residual).collect()
        })?;
        Some(model(&best))
    }

    pub fn throughput(&self, n: f64) -> f64 {
        self.lambda * n / self.overhead(n)
    }

    /// Instances at the peak; `None` when throughput grows without end.
    pub fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0 && self.sigma < 1.0).then(|| ((1.0 - self.sigma) / self.kappa).sqrt())
    }

    fn overhead(&self, n: f64) -> f64 {
        1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0)
    }
}

/// Relative error of predicting each point from all others; `None` where that fit fails.
pub fn leave_one_out(points: &[ScalingPoint], residuals: Residuals) -> Vec<Option<f64>> {
    let without = |index: usize| -> Vec<ScalingPoint> {
        let others = points.iter().enumerate().filter(|(i, _)| *i != index);
        others.map(|(_, point)| *point).collect()
    };
    let error = |(index, point): (usize, &ScalingPoint)| {
        let model = ScalingModel::fit_any(&without(index), residuals)?;
        Some(model.throughput(point.n) / point.throughput - 1.0)
    };
    points.iter().enumerate().map(error).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn liberty() -> Vec<ScalingPoint> {
        let text = include_str!("../tests/data/usl-liberty.csv");
        let point = |line: &str| {
            let fields: Vec<f64> = line.split(',').map(|f| f.parse().unwrap()).collect();
            ScalingPoint {
                n: fields[0],
                throughput: fields[3],
            }
        };
        text.lines().skip(1).map(point).collect()
    }

    fn near(got: f64, wanted: f64, relative: f64) {
        assert!(
            (got / wanted - 1.0).abs() <= relative,
            "{got} is not {wanted}"
        );
    }

    #[test]
    fn the_liberty_study_has_its_peak_at_six() {
        let points = liberty();
        let model = ScalingModel::fit_model(&points, Residuals::Log).unwrap();
        near(model.sigma, 0.05692, 2e-4);
        near(model.kappa, 0.023199, 1e-4);
        near(model.lambda, 167_940.0, 1e-4);
        near(model.peak().unwrap(), 6.376, 2e-4);
        near(model.throughput(model.peak().unwrap()), 509_610.0, 1e-4);
        let plain = ScalingModel::fit_model(&points, Residuals::Plain).unwrap();
        near(plain.sigma, 0.08084, 2e-4);
        near(plain.kappa, 0.022362, 1e-4);
        near(plain.lambda, 173_965.0, 1e-4);
        near(plain.peak().unwrap(), 6.411, 2e-4);
        near(plain.throughput(plain.peak().unwrap()), 503_937.0, 1e-4);
    }

    #[test]
    fn the_liberty_study_is_predicted_from_the_other_points() {
        let errors: Vec<f64> = leave_one_out(&liberty(), Residuals::Log)
            .into_iter()
            .map(|error| (error.unwrap() * 1000.0).round() / 10.0)
            .collect();
        assert_eq!(errors, [9.7, -4.1, 0.3, -2.8, 6.1, -16.0]);
    }

    /// Measured throughput of 1 to 32 clients: the example of usl4j, after Cisco.
    const CISCO: [f64; 32] = [
        955.16, 1878.91, 2688.01, 3548.68, 4315.54, 5130.43, 5931.37, 6531.08, 7219.8, 7867.61,
        8278.71, 8646.7, 9047.84, 9426.55, 9645.37, 9897.24, 10097.6, 10240.5, 10532.39, 10798.52,
        11151.43, 11518.63, 11806.0, 12089.37, 12075.41, 12177.29, 12211.41, 12158.93, 12155.27,
        12118.04, 12140.4, 12074.39,
    ];

    #[test]
    fn the_cisco_data_give_the_published_parameters() {
        let points: Vec<ScalingPoint> = CISCO
            .iter()
            .zip(1..)
            .map(|(throughput, n)| ScalingPoint {
                n: f64::from(n),
                throughput: *throughput,
            })
            .collect();
        let model = ScalingModel::fit_model(&points, Residuals::Plain).unwrap();
        near(model.sigma, 0.02671591, 2e-4);
        near(model.kappa, 7.690945e-4, 2e-4);
        near(model.lambda, 995.6486, 2e-4);
        assert_eq!(model.peak().unwrap().floor(), 35.0);
        near(model.throughput(35.0), 12_341.0, 2e-4);
        near(model.throughput(20.0), 11_063.633, 2e-4);
    }

    #[test]
    fn linear_growth_has_no_peak_and_few_points_no_fit() {
        let points: Vec<ScalingPoint> = (1..=6)
            .map(|n| ScalingPoint {
                n: f64::from(n),
                throughput: 100.0 * f64::from(n),
            })
            .collect();
        let model = ScalingModel::fit_model(&points, Residuals::Log).unwrap();
        near(model.throughput(10.0), 1000.0, 0.01);
        assert_eq!(ScalingModel::fit_model(&points[..5], Residuals::Log), None);
        let zero = ScalingPoint {
            n: 1.0,
            throughput: 0.0,
        };
        assert_eq!(ScalingModel::fit_model(&[zero; 6], Residuals::Log), None);
    }
}
