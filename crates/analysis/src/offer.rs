//! What can be bought where: an offer's price together with the sizes it bills.
//!
//! Owns the names people use for offers (`fargate`, `gke-autopilot`, ...), which lattice goes with
//! which price, and what a provider takes for itself. A price is taken as the list says; a user
//! gives another list, or other sizes, where the built-in ones do not fit. Sources: data/README.md.

use std::time::Duration;

use loadline_sizing::{Bytes, Cpus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::price::{
    self, BUILT_IN, DataError, FARGATE, GKE_AUTOPILOT, InstanceSize, OWN_NODES, Price,
    parse_lattice, parse_prices,
};
use crate::wire;

/// What Fargate on EKS adds to a pod's memory for its own agents.
pub const EKS_OVERHEAD: Bytes = Bytes::from_mib(256);
const AUTOPILOT_GIB_PER_CPU: f64 = 6.5;

/// GKE Autopilot bills CPUs in steps of this many thousandths.
const AUTOPILOT_STEP: u32 = 250;

/// The provider of a list with runner classes: each is a size, and its jobs are billed by started
/// minutes (docs.github.com, "About billing for GitHub Actions").
const RUNNERS: &str = "github-actions";
const MINUTE: Duration = Duration::from_secs(60);

/// What one run costs in a size that holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunPrice {
    /// Name of the offer.
    pub offer: String,
    /// Region of the price.
    pub region: String,
    /// The size that is billed.
    pub billed: InstanceSize,
    /// The time that is billed.
    #[serde(rename = "billed_time_ns", with = "wire::nanos")]
    pub billed_time: Duration,
    /// USD of one run.
    pub usd: f64,
    /// Date of the price.
    pub price_date: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    pub name: String,
    pub price: Price,
    pub billables: Vec<BillableSize>,
    pub bills_any_memory: bool,
    sizes: BilledSizes,
    listed: Vec<BillableSize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillableSize {
    pub limits: InstanceSize,
    pub billed: InstanceSize,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    #[error("there is no offer `{name}`")]
    Unknown { name: String, known: String },
    #[error("the price list has no `{name}` in `{region}`")]
    NoRegion {
        name: String,
        region: String,
        known: String,
    },
    #[error("`{name}` bills whole runners, and no class of them is named")]
    NoClasses { name: String },
    #[error("`{name}` sells nothing that holds {size}")]
    NotSold {
        name: String,
        size: InstanceSize,
        largest: InstanceSize,
    },
    #[error(transparent)]
    Data(#[from] DataError),
}

impl OfferError {
    pub fn offer_hint(&self) -> String {
        match self {
            Self::Unknown { known, .. } => format!("{known}; or the path of a price list (CSV)"),
            Self::NoRegion { known, .. } => format!(
                "it has {known}; for another region give a price list of yours: --prices FILE.csv"
            ),
            Self::NoClasses { .. } => "name their CPUs and memory: --sizes 2/8Gi,4/16Gi".to_owned(),
            Self::NotSold { largest, .. } => format!("its largest size is {largest}"),
            Self::Data(error) => error.hint.to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BilledSizes {
    Fargate,
    FargateOnEks,
    GkeAutopilot,
    AzureContainerApps,
    OwnNodes,
    Runners,
}

use BilledSizes::{AzureContainerApps, Fargate, FargateOnEks, GkeAutopilot, OwnNodes, Runners};

const SPOT: &str = "gke-autopilot-spot";
const X86: &str = "x86_64";

/// Name, provider in the price list, architecture.
const NAMES: [(&str, &str, &str, BilledSizes); 8] = [
    ("fargate", "aws-fargate", X86, Fargate),
    ("fargate-arm", "aws-fargate", "arm64", Fargate),
    ("fargate-eks", "aws-fargate", X86, FargateOnEks),
    ("gke-autopilot", "gke-autopilot", X86, GkeAutopilot),
    (SPOT, SPOT, X86, GkeAutopilot),
    (
        "azure-container-apps",
        "azure-container-apps-active",
        X86,
        AzureContainerApps,
    ),
    ("own-nodes", "opencost-default", X86, OwnNodes),
    ("own-nodes-spot", "opencost-default-spot", X86, OwnNodes),
];

impl Offer {
    pub fn built_in(name: &str, region: Option<&str>) -> Result<Self, OfferError> {
        let known = NAMES.iter().find(|(own, ..)| *own == name);
        let (name, provider, arch, sizes) = known.ok_or_else(|| OfferError::Unknown {
            name: name.to_owned(),
            known: offer_names(),
        })?;
        let prices = parse_prices(BUILT_IN)?;
        let is_offered = |p: &Price| p.provider == *provider && p.arch == *arch;
        let offered = prices.into_iter().filter(is_offered).collect();
        let price = in_region(name, offered, region)?;
        Self::new(name, price, *sizes)
    }

    /// An offer of the user's own price list (the same columns as the built-in one): its only row,
    /// or the one of this region. It bills any size unless [`Offer::with_sizes`] says which.
    /// Errors: [`OfferError`] with the line or the region.
    pub fn of_list(name: &str, text: &str, region: Option<&str>) -> Result<Self, OfferError> {
        let price = in_region(name, parse_prices(text)?, region)?;
        // A list of a known provider keeps the sizes that the provider bills.
        let mut names = NAMES.iter();
        let sizes = match names.find(|(_, provider, ..)| *provider == price.provider) {
            Some((.., sizes)) => *sizes,
            None if price.provider == RUNNERS => Runners,
            None => OwnNodes,
        };
        Self::new(name, price, sizes)
    }

    fn new(name: &str, price: Price, sizes: BilledSizes) -> Result<Self, OfferError> {
        let listed = sizes.billables()?;
        Ok(Self {
            name: name.to_owned(),
            price,
            billables: listed.clone(),
            bills_any_memory: sizes == OwnNodes,
            sizes,
            listed,
        })
    }

    /// The same offer with other limits to choose from; no `sizes` keeps its own. Each is billed as the
    /// provider bills it.
    /// Errors: [`OfferError::NotSold`] for a size that no listed one holds, [`OfferError::NoClasses`].
    pub fn with_sizes(self, sizes: &[InstanceSize]) -> Result<Self, OfferError> {
        if sizes.is_empty() {
            return match self.sizes {
                Runners => Err(OfferError::NoClasses { name: self.name }),
                _ => Ok(self),
            };
        }
        let largest = self.listed.iter().map(|b| b.limits).max();
        let billable = |limits: &InstanceSize| {
            let limits = *limits;
            let billed = self.sold_for(limits).ok_or_else(|| OfferError::NotSold {
                name: self.name.clone(),
                size: limits,
                largest: largest.unwrap_or(limits),
            })?;
            Ok(BillableSize { limits, billed })
        };
        let billables = sizes.iter().map(billable);
        let billables = billables.collect::<Result<_, OfferError>>()?;
        Ok(Self { billables, ..self })
    }

    /// USD of one replica for an hour, by the container's limits.
    pub fn per_hour(&self, limits: InstanceSize) -> f64 {
        self.price.per_hour(self.billed_size(limits))
    }

    /// One run within these limits, in each of the sizes to choose from that hold it, the cheapest first;
    /// without such a choice in the size that is billed for them. A cluster's fee is no run's.
    pub fn run_prices(&self, limits: InstanceSize, time: Duration) -> Vec<RunPrice> {
        let billed_time = self.billed_time(time);
        let hours = billed_time.as_secs_f64() / 3600.0;
        let sizes: Vec<InstanceSize> = if self.billables == self.listed {
            vec![self.billed_size(limits)]
        } else {
            holding(&self.billables, limits).collect()
        };
        let price = |billed: InstanceSize| RunPrice {
            offer: self.name.clone(),
            region: self.price.region.clone(),
            billed,
            billed_time,
            usd: self.price.per_hour(billed) * hours,
            price_date: self.price.date.clone(),
        };
        let mut prices: Vec<RunPrice> = sizes.into_iter().map(price).collect();
        prices.sort_by(|a, b| a.usd.total_cmp(&b.usd));
        prices
    }

    /// Started seconds, or minutes. Fargate bills at least one minute (data/README.md).
    fn billed_time(&self, time: Duration) -> Duration {
        let started = |unit: Duration| {
            let units = time.as_nanos().div_ceil(unit.as_nanos()).max(1);
            unit.saturating_mul(u32::try_from(units).unwrap_or(u32::MAX))
        };
        match self.sizes {
            Runners => started(MINUTE),
            Fargate | FargateOnEks => started(Duration::from_secs(1)).max(MINUTE),
            GkeAutopilot | AzureContainerApps | OwnNodes => started(Duration::from_secs(1)),
        }
    }

    /// The billed size for these limits: the cheapest sold size that holds them; the limits
    /// themselves if any size is billed as it is or no sold size holds them.
    pub fn billed_size(&self, limits: InstanceSize) -> InstanceSize {
        self.sold_for(limits).unwrap_or(limits)
    }

    fn sold_for(&self, limits: InstanceSize) -> Option<InstanceSize> {
        match self.sizes {
            OwnNodes | Runners => return Some(limits),
            GkeAutopilot => return Some(autopilot(limits)),
            Fargate | FargateOnEks | AzureContainerApps => {}
        }
        let price = |size: &InstanceSize| self.price.per_hour(*size);
        // Where nothing costs anything, the smallest.
        holding(&self.listed, limits).min_by(|a, b| price(a).total_cmp(&price(b)).then(a.cmp(b)))
    }
}

/// What is billed for the sizes that hold these limits.
fn holding(
    sizes: &[BillableSize],
    limits: InstanceSize,
) -> impl Iterator<Item = InstanceSize> + '_ {
    let holds =
        move |b: &&BillableSize| b.limits.cpu >= limits.cpu && b.limits.memory >= limits.memory;
    sizes.iter().filter(holds).map(|b| b.billed)
}

/// What GKE Autopilot makes of a request (general purpose): CPUs in steps of a quarter, and 1 to
/// 6.5 GiB for each; what lies outside is raised. Source: data/README.md.
fn autopilot(limits: InstanceSize) -> InstanceSize {
    let for_memory = (limits.memory.as_gib() / AUTOPILOT_GIB_PER_CPU * 1000.0).ceil() as u32;
    let millis = limits.cpu.as_millis().max(for_memory).max(1);
    let cpu = Cpus::from_millis(millis.div_ceil(AUTOPILOT_STEP) * AUTOPILOT_STEP);
    let least = Bytes::from_gib(1).mul_ratio(u64::from(cpu.as_millis()), 1000);
    let memory = limits.memory.max(least);
    InstanceSize { cpu, memory }
}

pub fn offer_names() -> String {
    let names: Vec<&str> = NAMES.iter().map(|(name, ..)| *name).collect();
    names.join(", ")
}

fn in_region(name: &str, offered: Vec<Price>, region: Option<&str>) -> Result<Price, OfferError> {
    let known: Vec<&str> = offered.iter().map(|p| p.region.as_str()).collect();
    let error = OfferError::NoRegion {
        name: name.to_owned(),
        region: region.unwrap_or("any region").to_owned(),
        known: known.join(", "),
    };
    let is_wanted = |p: &Price| region.is_none_or(|region| p.region == region);
    offered.into_iter().find(is_wanted).ok_or(error)
}

impl BilledSizes {
    fn billables(self) -> Result<Vec<BillableSize>, DataError> {
        let billed = match self {
            Self::Fargate | Self::FargateOnEks => parse_lattice(FARGATE)?,
            Self::GkeAutopilot => parse_lattice(GKE_AUTOPILOT)?,
            Self::OwnNodes | Self::Runners => parse_lattice(OWN_NODES)?,
            Self::AzureContainerApps => price::azure_container_apps(),
        };
        let overhead = match self {
            Self::FargateOnEks => EKS_OVERHEAD,
            _ => Bytes::from_bytes(0),
        };
        let billable = |billed: InstanceSize| BillableSize {
            limits: InstanceSize {
                memory: billed.memory.saturating_sub(overhead),
                ..billed
            },
            billed,
        };
        Ok(billed.into_iter().map(billable).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(cpu: &str, mib: u64) -> InstanceSize {
        InstanceSize {
            cpu: cpu.parse().expect("a number of CPUs"),
            memory: Bytes::from_mib(mib),
        }
    }

    fn told(error: &OfferError) -> String {
        format!("{error}\nhint: {}", error.offer_hint())
    }

    #[test]
    fn every_name_has_a_price_and_sizes() {
        for (name, ..) in NAMES {
            let offer = Offer::built_in(name, None).expect(name);
            assert!(!offer.billables.is_empty(), "{name}");
            assert!(
                offer
                    .billables
                    .iter()
                    .all(|b| offer.per_hour(b.limits) > 0.0)
            );
            assert!(!offer.price.licence.is_empty() && !offer.price.source.is_empty());
        }
    }

    /// The container gets 256 MiB less than the billed size.
    #[test]
    fn eks_takes_memory_for_itself() {
        let offer = Offer::built_in("fargate-eks", None).expect("built in");
        let half = offer.billables[0];
        assert_eq!(half.limits.memory, Bytes::from_mib(256));
        assert_eq!(half.billed.memory, Bytes::from_mib(512));
        // A pod of 1 vCPU and 8 GiB is billed as 2 vCPU and 9 GiB.
        let whole = size("1", 8 * 1024);
        assert!(!offer.billables.iter().any(|b| b.limits == whole));
        let billed = size("2", 9 * 1024);
        assert_eq!(offer.billed_size(whole), billed);
        let named = offer.clone().with_sizes(&[whole]).expect("it is sold");
        assert_eq!(named.per_hour(whole), offer.price.per_hour(billed));
        // A listed limit costs no less for being named.
        let listed = size("1", 7936);
        let named = offer.clone().with_sizes(&[listed]).expect("it is sold");
        assert_eq!(named.billed_size(listed), size("1", 8 * 1024));
        let error = offer.with_sizes(&[size("16", 120 * 1024)]);
        insta::assert_snapshot!(
            told(&error.expect_err("too large")),
            @"
        `fargate-eks` sells nothing that holds 16 vCPU, 120Gi
        hint: its largest size is 16 vCPU, 122624Mi
        "
        );
    }

    #[test]
    fn sizes_of_one_s_own_are_billed_as_the_provider_bills() {
        let odd = size("300m", 700);
        let fargate = Offer::built_in("fargate", None).expect("built in");
        let named = fargate.with_sizes(&[odd]).expect("it is sold");
        assert_eq!(named.billed_size(odd), size("500m", 1024));
        assert!(!named.bills_any_memory, "less memory costs the same");
        let gke = Offer::built_in("gke-autopilot", None).expect("built in");
        assert_eq!(gke.billed_size(odd), size("500m", 700), "in steps of 250m");
        assert_eq!(gke.billed_size(size("1", 512)), size("1", 1024));
        assert_eq!(
            gke.billed_size(size("1", 8 * 1024)),
            size("1250m", 8 * 1024)
        );
        for listed in &gke.billables {
            assert_eq!(gke.billed_size(listed.limits), listed.billed);
        }
        let own = Offer::built_in("own-nodes", None).expect("built in");
        assert_eq!(own.billed_size(odd), odd);
        let named = own.with_sizes(&[odd]).expect("any size is sold");
        assert_eq!(
            (named.billed_size(odd), named.bills_any_memory),
            (odd, true)
        );
    }

    #[test]
    fn the_region_decides_and_is_checked() {
        let west = Offer::built_in("azure-container-apps", Some("westus2")).expect("built in");
        assert_eq!(west.price.vcpu_hour, 0.1224);
        let error = Offer::built_in("azure-container-apps", Some("mars")).expect_err("no such");
        insta::assert_snapshot!(told(&error), @"
        the price list has no `azure-container-apps` in `mars`
        hint: it has centralus, japaneast, westus2; for another region give a price list of yours: --prices FILE.csv
        ");
        let error = Offer::built_in("farget", None).expect_err("no such");
        insta::assert_snapshot!(told(&error), @"
        there is no offer `farget`
        hint: fargate, fargate-arm, fargate-eks, gke-autopilot, gke-autopilot-spot, azure-container-apps, own-nodes, own-nodes-spot; or the path of a price list (CSV)
        ");
    }

    #[test]
    fn a_list_of_one_s_own_keeps_the_provider_s_sizes() {
        let text = "provider,region,arch,vcpu_hour_usd,gib_hour_usd,cluster_hour_usd,million_requests_usd,source,licence,date\n\
                    aws-fargate,eu-north-1,x86_64,0.05,0.005,0,0,my invoice,own,2026-11-01\n";
        let offer = Offer::of_list("mine.csv", text, None).expect("readable");
        assert_eq!((offer.billables.len(), offer.price.vcpu_hour), (74, 0.05));
        let sizes = [offer.billables[0].limits];
        let one = offer.with_sizes(&sizes).expect("they are sold");
        assert_eq!((one.billables.len(), one.bills_any_memory), (1, false));
        let other = text.replace("aws-fargate", "my-cluster");
        let own = Offer::of_list("mine.csv", &other, None).expect("readable");
        assert!(own.bills_any_memory, "how it bills is not known");
    }

    #[test]
    fn a_run_is_billed_in_the_units_of_its_offer() {
        let (limits, time) = (size("1", 192), Duration::from_millis(61_200));
        let fargate = Offer::built_in("fargate", None).expect("built in");
        let one = |time| fargate.run_prices(limits, time).remove(0);
        // 62 s of 1 vCPU and 2 GiB, and never less than a minute.
        let usd = 62.0 / 3600.0 * (0.04048 + 2.0 * 0.004445);
        assert!((one(time).usd - usd).abs() < 1e-12, "{:?}", one(time));
        assert_eq!(one(Duration::from_secs(3)).billed_time, MINUTE);
        let text = "provider,region,arch,vcpu_hour_usd,gib_hour_usd,cluster_hour_usd,million_requests_usd,source,licence,date\n\
                    github-actions,linux,x86_64,0.24,0,0,0,my invoice,own,2026-11-01\n";
        let unknown =
            Offer::of_list("mine.csv", text, None).and_then(|offer| offer.with_sizes(&[]));
        let refused = unknown.expect_err("a runner is sold whole").to_string();
        assert!(refused.contains("no class of them is named"), "{refused}");
        let classes = [size("4", 16 * 1024), size("2", 8 * 1024), size("2", 128)];
        let runners = Offer::of_list("mine.csv", text, None).expect("readable");
        let runners = runners.with_sizes(&classes).expect("any size is sold");
        let told = |price: &RunPrice| (price.billed, price.billed_time.as_secs(), price.usd);
        let prices: Vec<_> = runners.run_prices(limits, time).iter().map(told).collect();
        let two_minutes = 2.0 / 60.0 * 0.24;
        assert_eq!(
            prices,
            [
                (classes[1], 120, 2.0 * two_minutes),
                (classes[0], 120, 4.0 * two_minutes)
            ]
        );
    }
}
