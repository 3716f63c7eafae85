//! Runs simulations by seed: `--seed N` for one, `--seeds A..B` for many.

use clap::Parser;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;
use tandem_testkit::sim::run_many;

#[derive(Parser)]
struct Arguments {
    /// One seed.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// A range of seeds, the end excluded.
    #[arg(long, value_parser = range, default_value = "0..1000")]
    seeds: Range<u64>,
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("expected A..B")?;
    let number = |text: &str| text.parse::<u64>().map_err(|e| e.to_string());
    Ok(number(from)?..number(to)?)
}

#[expect(clippy::print_stdout, reason = "prints its results")]
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seeds = arguments
        .seed
        .map_or(arguments.seeds, |seed| seed..seed + 1);
    let started = Instant::now();
    let summary = run_many(seeds);
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} seeds in {seconds:.1} s: {:?}",
        summary.seeds, summary.stats
    );
    for failure in &summary.failures {
        println!("{failure}");
    }
    if summary.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
