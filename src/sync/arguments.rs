use jiff::tz::TimeZone;

use crate::convert::asked_time::instant_before;
use crate::prelude::*;
use siteline_core::client::Client;
use siteline_core::data::Shape;
use siteline_core::sync::{Feed, SyncSettings};

/// Default of `concurrency`.
const CONCURRENCY: u64 = 4;

/// The checked arguments, except the target.
pub(crate) struct RunArgs {
    pub(crate) feeds: Vec<Feed>,
    pub(crate) settings: SyncSettings,
    /// For feeds that another run locks.
    pub(crate) wait: Option<Duration>,
    /// As in [`siteline_core::sync::Batches`].
    pub(crate) batch: Option<usize>,
}

impl RunArgs {
    pub(crate) fn new<'py>(
        client: &Client,
        shape: Shape,
        given: &Object<'py>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<Self> {
        let option = |name: &str| option(options, name);
        let counted = |name: &str| {
            option(name)?.map(|given| count(&given, name, Kind::QueryError)).transpose()
        };
        let concurrency = counted("concurrency")?.unwrap_or(CONCURRENCY);
        let wait = optional(option("wait")?.as_ref(), "wait", duration)?;
        if client.is_closed() {
            return Err(Error::new(Kind::ClosedError, "the client is closed").into_py_err());
        }
        let settings = SyncSettings {
            shape,
            deadline: optional(option("deadline")?.as_ref(), "deadline", duration)?,
            max_pages: counted("max_pages")?,
            concurrency: concurrency.try_into().unwrap_or(usize::MAX),
            ..plan_settings(client, options)?
        };
        // A wrong range makes no store.
        settings.reread_ranges().or_raise()?;
        let batch = option("batch")?.map(|given| batch(&given)).transpose()?;
        Ok(Self { feeds: restore(given)?, settings, wait, batch })
    }
}

fn option<'py>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<Object<'py>>> {
    Ok(options.get_item(name)?.filter(|value| !value.is_none()))
}

/// The number of pages that are stored as one.
fn batch(given: &Object<'_>) -> PyResult<usize> {
    if given.extract::<&str>().is_ok_and(|word| word == "chain") {
        return Ok(usize::MAX);
    }
    if given.is_instance_of::<PyString>() {
        let message = "batch= is a number of pages, or \"chain\".";
        return Err(refuse(given.py(), Kind::QueryError, message));
    }
    Ok(count(given, "batch", Kind::QueryError)?.try_into().unwrap_or(usize::MAX))
}

/// `until` and `reread`.
pub(crate) fn plan_settings(
    client: &Client,
    options: &Bound<'_, PyDict>,
) -> PyResult<SyncSettings> {
    let ranges = option(options, "reread")?.map(|ranges| reread(client, &ranges)).transpose()?;
    Ok(SyncSettings {
        until: optional(option(options, "until")?.as_ref(), "until", service_instant(client))?,
        reread: ranges.unwrap_or_default(),
        ..SyncSettings::default()
    })
}

type Pair<'py> = (Object<'py>, Object<'py>);

/// A relative time counts from the service's. Without an offset it is in UTC.
fn service_instant(client: &Client) -> impl Fn(&Object<'_>, &str) -> PyResult<Timestamp> {
    move |given, name| instant_before(given, name, &TimeZone::UTC, || Ok(client.now()))
}

fn reread(client: &Client, ranges: &Object<'_>) -> PyResult<Vec<(Timestamp, Timestamp)>> {
    let refused = |what: &str| refuse(ranges.py(), Kind::QueryError, format!("reread= {what}"));
    let no_ranges = |_| refused("is a range (start, end), or a list of such ranges.");
    let at = service_instant(client);
    let range =
        |(start, end): Pair<'_>| Ok::<_, PyErr>((at(&start, "reread")?, at(&end, "reread")?));
    match ranges.extract::<Pair<'_>>() {
        Ok(pair) if !pair.0.is_instance_of::<PyTuple>() => Ok(vec![range(pair)?]),
        Err(error) if ranges.is_instance_of::<PyString>() => Err(no_ranges(error)),
        _ => {
            let ranges = ranges.try_iter().map_err(no_ranges)?;
            ranges.map(|one| range(one?.extract().map_err(no_ranges)?)).collect()
        }
    }
}
