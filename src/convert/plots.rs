//! Calls into `siteline.plots`, which draws in Python.

use pyo3::prelude::*;

use crate::bridge::process::guarded;
use crate::convert::zone::zone;

/// The arguments of `plot()`.
pub(crate) struct PlotArgs<'a, 'py> {
    pub(crate) value: &'a str,
    pub(crate) tz: Option<&'a Bound<'py, PyAny>>,
    pub(crate) labels: Option<&'a Bound<'py, PyAny>>,
    pub(crate) title: Option<&'a Bound<'py, PyAny>>,
    pub(crate) width: Option<&'a Bound<'py, PyAny>>,
    pub(crate) panels: Option<&'a Bound<'py, PyAny>>,
}

/// What is known of the points: the range that was asked for, and the width of a bucket, in microseconds;
/// and the zone that they are in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlotGrid<'a> {
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) interval: Option<i64>,
    pub(crate) zone: Option<&'a str>,
}

/// Draws a holder of points: `siteline.plots._points(holder, …)`.
///
/// # Errors
/// `QueryError` for a zone that is none; what the call raises.
pub(crate) fn call_plot<'py>(
    holder: &Bound<'py, PyAny>,
    grid: PlotGrid<'_>,
    args: &PlotArgs<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = holder.py();
    guarded(|| {
        let asked = args.tz.map(zone).transpose()?.map(|(name, _)| name);
        let name = asked.as_deref().or(grid.zone).unwrap_or("UTC");
        let (bounds, interval) = ((grid.start, grid.end), grid.interval);
        let PlotArgs { value, labels, title, width, panels, .. } = args;
        let given = (holder, bounds, interval, value, name, labels, title, width, panels);
        py.import("siteline.plots")?.getattr("_points")?.call1(given)
    })
}

/// The method `plot()` of a class with points; `$draw` takes the object and the [`PlotArgs`].
macro_rules! plot_method {
    ($class:ident, $draw:path) => {
        #[pymethods]
        impl $class {
            /// The points as a picture: a panel for each series, with the band from minimum to maximum: a
            /// :class:`Plot`, which notebooks show and ``save("day.svg")`` writes.
            ///
            /// - ``value``: what is drawn: ``"value"``, ``"minimum"``, ``"maximum"`` or ``"sample_count"``; the band
            ///   is that of ``"value"``
            /// - ``tz``: the zone of the time axis, as of ``to_pandas()``
            /// - ``labels``: names of series, as of ``to_pandas()``; those of a mapping or a callable may be a text,
            ///   or a text and a unit; ``None`` for the ids
            /// - ``width``: in pixels, 400 to 4,000; ``panels``: at most so many series, the first ones: the
            ///   picture says how many more there are
            ///
            /// A bucket that is missing, or has no such value, is a gap, and no line goes over it; a point
            /// between two gaps is a dot. Where the ``interval`` is not known, gaps are told by the smallest step
            /// between two points, and the text alternative says so. Where there are more points than pixels, each
            /// column of two pixels shows its lowest and highest. Nothing is read again from the service.
            ///
            /// Raises :class:`QueryError` for an argument that is none of these.
            #[pyo3(signature = (value="value", *, tz=None, labels=None, title=None, width=None, panels=None))]
            #[pyo3(text_signature =
                "($self, value='value', *, tz=None, labels=None, title=None, width=900, panels=12)")]
            fn plot<'py>(
                slf: &Bound<'py, Self>,
                value: &str,
                tz: Option<&Bound<'py, PyAny>>,
                labels: Option<&Bound<'py, PyAny>>,
                title: Option<&Bound<'py, PyAny>>,
                width: Option<&Bound<'py, PyAny>>,
                panels: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let args =
                    $crate::convert::plots::PlotArgs { value, tz, labels, title, width, panels };
                $draw(slf, &args)
            }
        }
    };
}

pub(crate) use plot_method;
