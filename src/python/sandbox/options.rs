//! The keywords of `Sandbox(...)`.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::{named, unexpected, whole_seconds};
use super::refused;
use crate::clock::Clock;
use crate::python::conversions::instant;
use crate::sandbox::{ErrorBody, Options, PageCounts, PointOrder, TimestampForm};

/// The options, and the clock: a standing one where `now=` is given.
pub(super) fn read(settings: Option<&Bound<'_, PyDict>>) -> PyResult<(Options, Clock)> {
    let mut options = Options::default();
    let (mut clock, mut page_size) = (None, None);
    for (name, value) in settings.into_iter().flatten() {
        let name = name.extract::<String>()?;
        let heard = match name.as_str() {
            "now" if value.is_none() => Ok(()),
            "now" => instant(&value, "now").map(|now| clock = Some(Clock::frozen_at(now))),
            "page_size" => {
                positive(&value, &name).map(|size| page_size = Some((size, value.clone())))
            }
            _ => option(&mut options, &name, &value),
        };
        heard.map_err(|error| named(error, &name, &value))?;
    }
    let most = options.maximum_page_size;
    options.default_page_size = match page_size {
        Some((size, value)) if size > most => {
            return Err(refused(value.py(), format!("page_size={size} is more than {most}.")));
        }
        Some((size, _)) => size,
        None => options.default_page_size.min(most),
    };
    Ok((options, clock.unwrap_or_else(Clock::running)))
}

/// One option.
fn option(options: &mut Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "seed" => options.seed = value.extract()?,
        "daily_allowance" => options.daily_allowance = value.extract()?,
        "token_rate" => options.token_requests_per_minute = value.extract()?,
        "approved" => options.approved = value.extract()?,
        "late" => options.lateness = value.extract()?,
        "record_wire" => options.record_wire = value.extract()?,
        "max_page_size" => options.maximum_page_size = positive(value, name)?,
        "interval" => options.default_interval_seconds = whole_seconds(value, name)?,
        "max_interval" => options.maximum_interval_seconds = whole_seconds(value, name)?,
        "max_range" => {
            options.maximum_range = Duration::from_secs(whole_seconds(value, name)?.into());
        }
        _ => shape(options, name, value)?,
    }
    Ok(())
}

/// One switch of the shape.
fn shape(options: &mut Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let shape = &mut options.shape;
    match name {
        "array" => {
            shape.array = value.extract()?;
            if ["", "nextCursor", "generatedBy"].contains(&shape.array.as_str()) {
                let text = format!("array={:?} is no name for the array.", shape.array);
                return Err(refused(value.py(), text));
            }
        }
        "timestamps" => {
            shape.timestamps = one_of(
                value,
                name,
                &[
                    ("iso", TimestampForm::IsoZ),
                    ("iso_offset", TimestampForm::IsoOffset),
                    ("iso_fraction", TimestampForm::IsoFraction),
                    ("epoch_s", TimestampForm::EpochSeconds),
                    ("epoch_ms", TimestampForm::EpochMilliseconds),
                ],
            )?;
        }
        "order" => {
            let orders =
                [("series", PointOrder::SeriesThenTime), ("time", PointOrder::TimeThenSeries)];
            shape.order = one_of(value, name, &orders)?;
        }
        "page_counts" => {
            let counts = [("points", PageCounts::Points), ("envelopes", PageCounts::Envelopes)];
            shape.page_counts = one_of(value, name, &counts)?;
        }
        "envelope_points" => shape.envelope_points = positive(value, name)?,
        "end_inclusive" => shape.to_inclusive = value.extract()?,
        "invalid_client_status" => shape.invalid_client_status = error_status(value, name)?,
        "unavailable_status" => shape.unavailable_status = error_status(value, name)?,
        "error_body" => {
            let bodies = [("oauth", ErrorBody::OAuth), ("problem", ErrorBody::Problem)];
            shape.error_body = one_of(value, name, &bodies)?;
        }
        "extra_members" => shape.extra_members = value.extract()?,
        "integer_ids" => shape.integer_ids = value.extract()?,
        "omit_nulls" => shape.omit_nulls = value.extract()?,
        "omit_last_cursor" => shape.omit_last_cursor = value.extract()?,
        "spaced" => shape.spaced = value.extract()?,
        _ => return Err(unexpected(name)),
    }
    Ok(())
}

fn one_of<T: Copy>(value: &Bound<'_, PyAny>, name: &str, known: &[(&str, T)]) -> PyResult<T> {
    let text: String = value.extract()?;
    let found = known.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| {
        let words: Vec<_> = known.iter().map(|(word, _)| format!("{word:?}")).collect();
        refused(value.py(), format!("{name}={text:?} is none of {}.", words.join(", ")))
    })
}

fn positive(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u32> {
    match value.extract()? {
        0 => Err(refused(value.py(), format!("{name}= is at least 1."))),
        number => Ok(number),
    }
}

fn error_status(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u16> {
    let status = value.extract()?;
    if (400..600).contains(&status) {
        return Ok(status);
    }
    Err(refused(value.py(), format!("{name}={status} is no error status.")))
}
