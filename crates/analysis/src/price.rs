//! What a size costs: prices per vCPU-hour and GiB-hour, and the sizes that are really billed.
//!
//! Owns the dated price list, the billable lattices and the cost formulas. A price is data with a
//! source and a date; an old one is used with a warning, never silently. Sources: see the columns
//! `source` and `date` of data/prices.csv and data/fargate-lattice.csv.

use loadline_sizing::{Bytes, Cpus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calendar::parse_day;
use crate::wire;

pub const HOURS_PER_MONTH: f64 = 730.0;

/// What a GiB costs in CPUs where both are billed: about 9 GiB cost as much as 1 CPU (list prices
/// of three providers, METHODOLOGY.md). Only the ratio matters to compare sizes.
pub const GIB_PER_CPU: f64 = 9.0;

/// A size without a price, as an equivalent in GiB.
pub fn size_weight(cpus: f64, memory: Bytes) -> f64 {
    cpus * GIB_PER_CPU + memory.as_gib()
}

pub const STALE_AFTER_DAYS: i64 = 180;
pub const BUILT_IN: &str = include_str!("../data/prices.csv");
pub const FARGATE: &str = include_str!("../data/fargate-lattice.csv");
pub const GKE_AUTOPILOT: &str = include_str!("../data/gke-autopilot-lattice.csv");

/// Sizes worth asking for on nodes of one's own, where any size can be had.
pub const OWN_NODES: &str = include_str!("../data/own-nodes-lattice.csv");

#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    pub provider: String,
    pub region: String,
    pub arch: String,
    /// USD per vCPU and hour.
    pub vcpu_hour: f64,
    /// USD per GiB and hour.
    pub gib_hour: f64,
    /// USD per hour for the cluster, however many replicas run in it.
    pub cluster_hour: f64,
    /// USD per million requests, on top of what the size costs.
    pub million_requests: f64,
    pub source: String,
    pub licence: String,
    pub date: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the {what}: {why}")]
pub struct DataError {
    pub what: &'static str,
    pub line: usize,
    pub why: String,
    pub hint: &'static str,
}

const PRICE_COLUMNS: &str = "columns are provider,region,arch,vcpu_hour_usd,gib_hour_usd,cluster_hour_usd,million_requests_usd,source,licence,date";
const LATTICE_COLUMNS: &str = "columns are vcpu,memory_gib";

impl Price {
    pub fn per_hour(&self, size: InstanceSize) -> f64 {
        size.cpu.as_f64() * self.vcpu_hour + size.memory.as_gib() * self.gib_hour
    }

    /// Days from its date to `today` (both `YYYY-MM-DD`); `None` when one is no date.
    pub fn age_days(&self, today: &str) -> Option<i64> {
        Some(parse_day(today)? - parse_day(&self.date)?)
    }

    pub fn staleness(&self, today: &str) -> Option<String> {
        let name = format!("{} {}", self.provider, self.region);
        match self.age_days(today) {
            None => Some(format!("the price of {name} has no readable date")),
            Some(age) if age > STALE_AFTER_DAYS => Some(format!(
                "the price of {name} is of {}, {age} days old; check it or give your own with --prices",
                self.date
            )),
            Some(_) => None,
        }
    }
}

/// A size that can be bought.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct InstanceSize {
    /// vCPUs.
    #[serde(rename = "cpu_millicpus", with = "wire::cpus")]
    pub cpu: Cpus,
    /// Memory.
    #[serde(rename = "memory_bytes", with = "wire::bytes")]
    pub memory: Bytes,
}

impl std::fmt::Display for InstanceSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{} vCPU, {}", self.cpu, self.memory.to_short()))
    }
}

/// The money of a deployment, with the cluster's fee and what requests cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeploymentCost {
    /// USD per hour.
    pub per_hour: f64,
    /// USD per month of 730 hours.
    pub per_month: f64,
    /// USD per million requests at the rate; `None` for no rate.
    pub per_million_requests: Option<f64>,
}

/// Cost of `replicas` instances of a size that together carry `rate` requests a second.
pub fn deployment_cost(
    price: &Price,
    size: InstanceSize,
    replicas: u32,
    rate: f64,
) -> DeploymentCost {
    let instances = f64::from(replicas) * price.per_hour(size);
    let requests = price.million_requests * 3600.0 * rate / 1e6;
    let per_hour = instances + price.cluster_hour + requests;
    DeploymentCost {
        per_hour,
        per_month: HOURS_PER_MONTH * per_hour,
        per_million_requests: (rate > 0.0).then(|| per_hour / (3600.0 * rate) * 1e6),
    }
}

/// Errors: [`DataError`] when a line is no price, or no line follows the columns.
pub fn parse_prices(text: &str) -> Result<Vec<Price>, DataError> {
    let refuse = |line: usize, why: String| DataError {
        what: "price list",
        line,
        why,
        hint: PRICE_COLUMNS,
    };
    let parse = |(index, line): (usize, &str)| {
        let error = |why: String| refuse(index + 1, why);
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        // As PRICE_COLUMNS names them.
        let Ok(fields) = <[&str; 10]>::try_from(fields.as_slice()) else {
            return Err(error(format!("{} fields instead of 10", fields.len())));
        };
        let text = |column: usize| fields[column].to_owned();
        let money = |column: usize| {
            let value = fields[column].parse::<f64>().ok();
            let value = value.filter(|value| value.is_finite() && *value >= 0.0);
            value.ok_or_else(|| error(format!("`{}` is not a price", fields[column])))
        };
        Ok(Price {
            provider: text(0),
            region: text(1),
            arch: text(2),
            vcpu_hour: money(3)?,
            gib_hour: money(4)?,
            cluster_hour: money(5)?,
            million_requests: money(6)?,
            source: text(7),
            licence: text(8),
            date: text(9),
        })
    };
    let prices: Vec<Price> = csv_rows(text).map(parse).collect::<Result<_, _>>()?;
    if prices.is_empty() {
        return Err(refuse(1, "no price follows the columns".to_owned()));
    }
    Ok(prices)
}

pub fn parse_lattice(text: &str) -> Result<Vec<InstanceSize>, DataError> {
    let parse = |(index, line): (usize, &str)| {
        let size = line.split_once(',').and_then(|(cpu, gib)| {
            let gib: f64 = gib.trim().parse().ok()?;
            let bytes = gib * Bytes::from_gib(1).as_bytes() as f64;
            Some(InstanceSize {
                cpu: cpu.trim().parse().ok()?,
                memory: Bytes::from_bytes(bytes as u64),
            })
        });
        size.ok_or_else(|| DataError {
            what: "lattice",
            line: index + 1,
            why: format!("`{line}` is not a size"),
            hint: LATTICE_COLUMNS,
        })
    };
    csv_rows(text).map(parse).collect()
}

/// Azure Container Apps, consumption plan: quarter vCPUs up to 4, exactly 2 GiB for each vCPU.
pub fn azure_container_apps() -> Vec<InstanceSize> {
    let size = |quarters: u32| InstanceSize {
        cpu: Cpus::from_millis(250 * quarters),
        memory: Bytes::from_mib(512 * u64::from(quarters)),
    };
    (1..=16).map(size).collect()
}

fn csv_rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().skip(1);
    lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fargate() -> Price {
        let prices = parse_prices(BUILT_IN).unwrap();
        let is_wanted = |p: &&Price| p.provider == "aws-fargate" && p.arch == "x86_64";
        prices.iter().find(is_wanted).unwrap().clone()
    }

    fn size(cpu: &str, gib: f64) -> InstanceSize {
        InstanceSize {
            cpu: cpu.parse().unwrap(),
            memory: Bytes::from_bytes((gib * 1024.0 * 1024.0 * 1024.0) as u64),
        }
    }

    #[test]
    fn a_list_without_prices_is_refused() {
        let refused = parse_prices("cpu = \"cheap\"\n").map_err(|error| error.to_string());
        let wanted = "line 1 of the price list: no price follows the columns";
        assert_eq!(refused, Err(wanted.to_owned()));
    }

    /// The layouts of the pods-times-size study, priced.
    #[test]
    fn the_study_s_layouts_cost_what_they_cost() {
        let layouts = [
            ("8", 16.0, 1, 599.0, 0.39496, 288.32, 0.18316),
            ("8", 16.0, 4, 1100.0, 1.57984, 1153.28, 0.39895),
            ("2", 4.0, 16, 2200.0, 1.57984, 1153.28, 0.19947),
            ("0.5", 1.0, 64, 2200.0, 1.57984, 1153.28, 0.19947),
            ("0.5", 1.0, 64, 5000.0, 1.57984, 1153.28, 0.08777),
            ("0.25", 0.5, 128, 3200.0, 1.57984, 1153.28, 0.13714),
        ];
        for (cpu, gib, pods, rate, hour, month, million) in layouts {
            let cost = deployment_cost(&fargate(), size(cpu, gib), pods, rate);
            assert!((cost.per_hour - hour).abs() < 5e-6, "{cost:?}");
            assert!((cost.per_month - month).abs() < 5e-3, "{cost:?}");
            assert!(
                (cost.per_million_requests.unwrap() - million).abs() < 5e-6,
                "{cost:?}"
            );
        }
    }

    #[test]
    fn the_lattices_are_complete() {
        let fargate = parse_lattice(FARGATE).unwrap();
        assert_eq!(fargate.len(), 74);
        assert!(fargate.contains(&size("16", 120.0)) && fargate.contains(&size("0.25", 0.5)));
        let azure = azure_container_apps();
        assert_eq!((azure[0], azure[15]), (size("0.25", 0.5), size("4", 8.0)));
    }

    #[test]
    fn old_prices_warn() {
        let price = fargate();
        assert_eq!(price.age_days("2026-03-11"), Some(1));
        assert_eq!(price.staleness("2026-09-06"), None);
        insta::assert_snapshot!(price.staleness("2026-09-07").unwrap(), @"the price of aws-fargate us-east-1 is of 2026-03-10, 181 days old; check it or give your own with --prices");
    }

    #[test]
    fn bad_data_names_its_line() {
        let text = "header\na,b,c,1,x,0,0,s,l,2026-01-01\n";
        let error = parse_prices(text).unwrap_err();
        insta::assert_snapshot!(format!("{error}\nhint: {}", error.hint), @"
        line 2 of the price list: `x` is not a price
        hint: columns are provider,region,arch,vcpu_hour_usd,gib_hour_usd,cluster_hour_usd,million_requests_usd,source,licence,date
        ");
        assert!(parse_lattice("vcpu,memory_gib\n1;2\n").is_err());
    }
}
