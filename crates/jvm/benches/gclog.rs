//! Speed of the GC log parser, full parse, in bytes a second of text: real logs of each grammar
//! repeated to 8 MiB. `cargo bench -p loadline-jvm`.

use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use loadline_jvm::gclog;

/// Enough text that the start does not count.
const BYTES: usize = 8 << 20;

/// A G1 log of JDK 8 in small; the project has no JDK 8 to write one.
const CLASSIC: &str = "\
2016-04-14T22:30:09.108+0200: 1.053: [GC (Allocation Failure) 1.053: [ParNew: 218496K->25704K(245760K), 0.0145305 secs] 218496K->25704K(791936K), 0.0146984 secs] [Times: user=0.13 sys=0.00, real=0.01 secs] 
2016-04-14T22:30:09.208+0200: 1.153: Total time for which application threads were stopped: 0.0148 seconds, Stopping threads took: 0.0000300 seconds
2016-04-14T22:30:10.108+0200: 2.053: [GC pause (G1 Evacuation Pause) (young), 0.0039925 secs]
   [Parallel Time: 3.3 ms, GC Workers: 8]
      [GC Worker Start (ms): Min: 2053.4, Avg: 2053.5, Max: 2053.6, Diff: 0.1]
      [Ext Root Scanning (ms): Min: 0.2, Avg: 0.3, Max: 0.9, Diff: 0.7, Sum: 2.4]
      [Object Copy (ms): Min: 2.1, Avg: 2.2, Max: 2.3, Diff: 0.2, Sum: 17.6]
   [Eden: 512.0M(512.0M)->0.0B(448.0M) Survivors: 0.0B->64.0M Heap: 740.9M(10.0G)->408.0M(10.0G)]
 [Times: user=0.02 sys=0.00, real=0.01 secs] 
";

fn log(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/gclog")
        .join(name);
    let bytes = std::fs::read(&path).expect("test data");
    if !name.ends_with(".gz") {
        return bytes;
    }
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_end(&mut text)
        .expect("test data");
    text
}

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gclog");
    for (name, text) in [
        ("unified G1", log("17-G1.log")),
        ("unified Parallel", log("25-Parallel.log")),
        ("unified generational ZGC", log("25-Z.log.gz")),
        (
            "unified generational Shenandoah",
            log("25-ShenandoahGen-full.log.gz"),
        ),
        ("classic ParNew and G1", CLASSIC.as_bytes().to_vec()),
    ] {
        let text: Vec<u8> = text.iter().copied().cycle().take(BYTES).collect();
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.sample_size(20);
        group.bench_function(name, |bencher| {
            bencher.iter(|| gclog::read(black_box(&text[..]), 0));
        });
    }
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
