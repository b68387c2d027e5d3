//! The head of OpenJ9's log: `<attribute name="gcPolicy" value="-Xgcpolicy:gencon" />`.

use super::super::event::{Event, Fact};
use super::super::header::Collector;
use super::tag::{Tag, whole};

/// Reads one attribute.
pub(super) fn attribute(tag: &Tag<'_>, emit: &mut impl FnMut(Event<'_>)) {
    let (Some(name), Some(value)) = (tag.text(b"name"), tag.text(b"value")) else {
        return;
    };
    let number = || whole(value);
    let fact = match name {
        b"gcPolicy" => policy(value).map(Fact::Collector),
        b"maxHeapSize" => number().map(Fact::HeapMax),
        b"initialHeapSize" => number().map(Fact::HeapInitial),
        b"regionSize" => number().map(Fact::RegionSize),
        b"gcthreads" => number().map(Fact::ParallelWorkers),
        b"gcthreads Concurrent Mark" => number().map(Fact::ConcurrentWorkers),
        b"physicalMemory" => number().map(Fact::Memory),
        b"numCPUs" => number().map(Fact::MachineCpus),
        b"numCPUs active" => number().map(Fact::AvailableCpus),
        _ => None,
    };
    if let Some(fact) = fact {
        emit(Event::Fact(fact));
    }
}

/// `-Xgcpolicy:gencon`.
fn policy(text: &[u8]) -> Option<Collector> {
    let name = text.strip_prefix(b"-Xgcpolicy:")?;
    let all = [
        Collector::Gencon,
        Collector::Balanced,
        Collector::OptThruput,
        Collector::OptAvgPause,
        Collector::Metronome,
        Collector::NoGc,
    ];
    all.into_iter().find(|c| c.name().as_bytes() == name)
}
