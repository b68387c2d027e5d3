//! The head of OpenJ9's log: `<attribute name="gcPolicy" value="-Xgcpolicy:gencon" />`.

use loadline_sizing::openj9::GcPolicy;

use super::super::event::{GcLogEvent, HeaderFact};
use super::super::header::GarbageCollector;
use super::tag::{XmlTag, parse_whole};

pub(super) fn emit_attribute(tag: &XmlTag<'_>, emit: &mut impl FnMut(GcLogEvent<'_>)) {
    let (Some(name), Some(value)) = (tag.attribute_text(b"name"), tag.attribute_text(b"value"))
    else {
        return;
    };
    let number = || parse_whole(value);
    let fact = match name {
        b"gcPolicy" => policy(value).map(HeaderFact::Collector),
        b"maxHeapSize" => number().map(HeaderFact::HeapMax),
        b"initialHeapSize" => number().map(HeaderFact::HeapInitial),
        b"regionSize" => number().map(HeaderFact::RegionSize),
        b"gcthreads" => number().map(HeaderFact::ParallelWorkers),
        b"gcthreads Concurrent Mark" => number().map(HeaderFact::ConcurrentWorkers),
        b"physicalMemory" => number().map(HeaderFact::Memory),
        b"numCPUs" => number().map(HeaderFact::MachineCpus),
        b"numCPUs active" => number().map(HeaderFact::AvailableCpus),
        _ => None,
    };
    if let Some(fact) = fact {
        emit(GcLogEvent::Fact(fact));
    }
}

fn policy(text: &[u8]) -> Option<GarbageCollector> {
    let name = text.strip_prefix(b"-Xgcpolicy:")?;
    let mut all = GcPolicy::ALL.into_iter();
    all.find(|policy| policy.policy_name().as_bytes() == name)
        .map(GarbageCollector::OpenJ9)
}
