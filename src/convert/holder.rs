//! The methods that several classes with points share: frames, records, Arrow.

/// The methods that make frames. `siteline.frames` makes them from `_columns`, `_provenance` and the
/// Arrow stream of the object; a class without these names its own function in the place of
/// [`call_frames`](crate::convert::frames::call_frames).
macro_rules! frame_methods {
    ($class:ident) => {
        $crate::convert::holder::frame_methods! {
            $class, $crate::convert::frames::call_frames
        }
    };
    ($class:ident, $call_frames:path) => {
        #[pymethods]
        impl $class {
            /// The points as a long pandas frame. ``ids="category"`` is faster and smaller than
            /// ``"str"``; ``tz="Europe/Berlin"`` shows the timestamps on the clock of a zone, instead
            /// of UTC: a name of the IANA database, or a ``ZoneInfo``.
            ///
            /// ``labels`` adds a last column ``label``, a name for each series: ``True`` for the names and
            /// units of the newest discovery response of the client (:class:`Catalogue`), a catalogue, a
            /// mapping of tag GUIDs or of tuples of the five ids, or a callable that is given such a tuple
            /// (:class:`SeriesIds`). What has no name has its ids, ``S1/L2/M3/D31/…``. Where two series have
            /// one name a :class:`SitelineWarning` shows both; their rows stay apart by their ids.
            ///
            /// ``gaps="explicit"`` adds a row of nulls for each bucket that a series of these points does not
            /// have, of all that begin between start and end of the query, at multiples of ``interval``: of a
            /// store those that were read. A :class:`QueryError` where that is not known: for a page, a part
            /// of a read, changes, without ``interval``, and where points are off that grid.
            #[pyo3(signature = (*, ids="str", tz=None, labels=None, gaps=None))]
            #[pyo3(text_signature = "($self, *, ids='str', tz=None, labels=None, gaps=None)")]
            fn to_pandas<'py>(
                slf: &Bound<'py, Self>,
                ids: &str,
                tz: Option<&Bound<'py, PyAny>>,
                labels: Option<&Bound<'py, PyAny>>,
                gaps: Option<&str>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $call_frames(
                    slf,
                    "to_pandas",
                    Some(ids),
                    $crate::convert::frames::FrameArgs { tz, labels, gaps },
                )
            }

            /// The points as a long polars frame, without pyarrow. ``tz``, ``labels``, ``gaps``: as of
            /// ``to_pandas()``.
            #[pyo3(signature = (*, ids="str", tz=None, labels=None, gaps=None))]
            #[pyo3(text_signature = "($self, *, ids='str', tz=None, labels=None, gaps=None)")]
            fn to_polars<'py>(
                slf: &Bound<'py, Self>,
                ids: &str,
                tz: Option<&Bound<'py, PyAny>>,
                labels: Option<&Bound<'py, PyAny>>,
                gaps: Option<&str>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $call_frames(
                    slf,
                    "to_polars",
                    Some(ids),
                    $crate::convert::frames::FrameArgs { tz, labels, gaps },
                )
            }

            /// The points as a ``pyarrow.Table``; the ids are dictionary-coded. ``tz``, ``labels``, ``gaps``: as of
            /// ``to_pandas()``.
            #[pyo3(signature = (*, tz=None, labels=None, gaps=None))]
            #[pyo3(text_signature = "($self, *, tz=None, labels=None, gaps=None)")]
            fn to_arrow<'py>(
                slf: &Bound<'py, Self>,
                tz: Option<&Bound<'py, PyAny>>,
                labels: Option<&Bound<'py, PyAny>>,
                gaps: Option<&str>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $call_frames(
                    slf,
                    "to_arrow",
                    None,
                    $crate::convert::frames::FrameArgs { tz, labels, gaps },
                )
            }
        }
    };
}

/// Records, Arrow and columns of a class with an `Arc<PointColumns>` in this field.
macro_rules! point_methods {
    ($class:ident, $($points:ident).+) => {
        impl $crate::convert::capsule::OneBatch for $class {
            fn schema(&self) -> ::siteline_core::error::Result<::arrow_schema::SchemaRef> {
                Ok(self.$($points).+.schema())
            }

            fn batch(&self) -> ::siteline_core::error::Result<::arrow_array::RecordBatch> {
                self.$($points).+.batch()
            }
        }

        $crate::convert::capsule::batch_methods! { $class }

        #[pymethods]
        impl $class {
            /// The points one by one, as plain dicts, or as :class:`Record` tuples with
            /// ``named=True``, which have the ten columns alone: ``extra_columns`` are in the dicts.
            #[pyo3(signature = (*, named=false), text_signature = "($self, *, named=False)")]
            fn records(&self, named: bool) -> $crate::convert::rows::RecordIterator {
                let points = ::std::sync::Arc::clone(&self.$($points).+);
                $crate::convert::rows::RecordIterator::over(points, named)
            }

            /// An iterator of ``bytes``, which joined are one Arrow IPC stream.
            fn _ipc(&self) -> PyResult<$crate::convert::ipc::IpcStream> {
                let points = ::std::sync::Arc::clone(&self.$($points).+);
                $crate::bridge::errors::OrRaise::or_raise($crate::convert::ipc::IpcStream::of_points(points))
            }

            /// The series that have points, for :class:`Catalogue`.
            fn _series_ids<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
                $crate::convert::labels::ids_of_points(py, &self.$($points).+)
            }

            /// The columns for ``siteline.frames``.
            fn _columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
                $crate::convert::columns::of_points(py, &self.$($points).+)
            }
        }
    };
}

pub(crate) use {frame_methods, point_methods};
