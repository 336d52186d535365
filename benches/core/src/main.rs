//! Rust loops over the same pages, for comparison with siteline. Each command prints a line of JSON.
//!
//! - `alone FOLDER`: siteline's decoder and sonic-rs, on one core, with the pages of a folder
//! - `bare BASE_URL SET`: a download loop without siteline

mod alone;
mod bare;
mod page;

use std::error::Error;
use std::io::{self, Write as _};
use std::path::Path;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A checksum of the values in their order: readers that agree on it are compared.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    points: usize,
    sum: f64,
    nulls: usize,
}

impl Extend<Option<f64>> for Tally {
    fn extend<I: IntoIterator<Item = Option<f64>>>(&mut self, values: I) {
        for value in values {
            self.points += 1;
            self.nulls += usize::from(value.is_none());
            self.sum += value.unwrap_or_default();
        }
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let line = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["alone", folder] => alone::run(Path::new(folder))?,
        ["bare", base, set] => bare::run(base, set)?,
        _ => return Err("alone FOLDER, or bare BASE_URL SET".into()),
    };
    Ok(writeln!(io::stdout(), "{line}")?)
}
