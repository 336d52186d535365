//! Decoding alone, a generated page per layout: `cargo bench --manifest-path benches/core/Cargo.toml`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use siteline_core::data::DecodeSettings;
use siteline_core::data::decode;
use siteline_bench::columns::Columns;
use siteline_bench::pages::{self, Layout};
use siteline_bench::seeds;
use siteline_bench::typed::Page;

const ROWS: usize = 10_000;

fn decode(criterion: &mut Criterion) {
    for (layout, name) in [(Layout::A, "decode/a"), (Layout::B, "decode/b")] {
        let body = pages::generate(layout);
        let settings = DecodeSettings::default();
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function("siteline", |bencher| {
            bencher.iter(|| decode(black_box(&body), &settings).expect("a page"));
        });
        group.bench_function("sonic typed", |bencher| {
            bencher.iter(|| {
                let page: Page<'_> = sonic_rs::from_slice(black_box(&body)).expect("a page");
                page.series.len()
            });
        });
        group.bench_function("sonic columns", |bencher| {
            bencher.iter(|| {
                let mut columns = Columns::new(ROWS);
                seeds::read(black_box(&body), &mut columns).expect("a page");
                columns.finish().expect("a batch")
            });
        });
        group.finish();
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
