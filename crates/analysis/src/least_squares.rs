//! Least squares with three parameters that cannot be negative: Levenberg-Marquardt.
//!
//! Owns the one fitter that [`crate::usl`] and [`crate::heap`] share. Derivatives are taken by
//! central differences: the models are smooth and the points are few. Source: Marquardt, "An
//! algorithm for least-squares estimation of nonlinear parameters", 1963; negative steps are cut
//! off at zero.

/// Minimises the sum of squared residuals from this start; the parameters and the sum.
/// `residuals` gives one value for each point and may give infinities, which are never chosen.
pub(crate) fn minimise_squares(
    start: [f64; 3],
    residuals: impl Fn(&[f64; 3]) -> Vec<f64>,
) -> Option<([f64; 3], f64)> {
    const STEPS: usize = 500;
    let sum = |p: &[f64; 3]| residuals(p).iter().map(|r| r * r).sum::<f64>();
    let mut best = start;
    let mut best_sum = sum(&best);
    if !best_sum.is_finite() {
        return None;
    }
    let mut damping = 1e-3;
    for _ in 0..STEPS {
        let (normal, gradient) = normal_equations(&best, &residuals);
        let step = solve(normal, gradient, damping)?;
        let mut next = best;
        for (value, step) in next.iter_mut().zip(step) {
            *value = (*value - step).max(0.0);
        }
        let next_sum = sum(&next);
        if next_sum < best_sum {
            let gain = best_sum - next_sum;
            (best, best_sum) = (next, next_sum);
            damping = (damping / 10.0).max(1e-15);
            if gain <= 1e-15 * best_sum {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > 1e15 {
                break;
            }
        }
    }
    Some((best, best_sum))
}

type Matrix = [[f64; 3]; 3];

fn normal_equations(
    at: &[f64; 3],
    residuals: &impl Fn(&[f64; 3]) -> Vec<f64>,
) -> (Matrix, [f64; 3]) {
    let here = residuals(at);
    let slopes: Vec<Vec<f64>> = (0..3).map(|i| slope(at, i, residuals)).collect();
    let mut normal = [[0.0; 3]; 3];
    let mut gradient = [0.0; 3];
    for i in 0..3 {
        for j in 0..3 {
            normal[i][j] = slopes[i].iter().zip(&slopes[j]).map(|(a, b)| a * b).sum();
        }
        gradient[i] = slopes[i].iter().zip(&here).map(|(a, b)| a * b).sum();
    }
    (normal, gradient)
}

fn slope(at: &[f64; 3], index: usize, residuals: &impl Fn(&[f64; 3]) -> Vec<f64>) -> Vec<f64> {
    let step = (at[index].abs() * 1e-6).max(1e-9);
    let moved = |by: f64| {
        let mut parameters = *at;
        parameters[index] += by;
        residuals(&parameters)
    };
    let both = moved(step).into_iter().zip(moved(-step));
    both.map(|(u, d)| (u - d) / (2.0 * step)).collect()
}

/// Solves (A + damping · diag A) x = b by elimination; `None` when it has no finite solution.
fn solve(mut a: Matrix, mut b: [f64; 3], damping: f64) -> Option<[f64; 3]> {
    for (i, row) in a.iter_mut().enumerate() {
        // A parameter without influence gets a diagonal, or nothing could be solved.
        row[i] += damping * row[i].max(1e-30);
    }
    for i in 0..3 {
        let pivot = (i..3).max_by(|x, y| a[*x][i].abs().total_cmp(&a[*y][i].abs()))?;
        a.swap(i, pivot);
        b.swap(i, pivot);
        let pivot_row = a[i];
        for row in i + 1..3 {
            let factor = a[row][i] / pivot_row[i];
            for (value, above) in a[row].iter_mut().zip(pivot_row) {
                *value -= factor * above;
            }
            b[row] -= factor * b[i];
        }
    }
    let mut x = [0.0; 3];
    for i in (0..3).rev() {
        let known: f64 = (i + 1..3).map(|j| a[i][j] * x[j]).sum();
        x[i] = (b[i] - known) / a[i][i];
    }
    x.iter().all(|value| value.is_finite()).then_some(x)
}
