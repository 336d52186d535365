//! Pickled frames: an Arrow IPC stream of the rows, and JSON for the rest. Cursors, bodies and names are not
//! pickled.

use std::io::Cursor;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema};
use serde::{Deserialize, Serialize};

use super::facts::Facts;
use super::rows::Rows;
use super::stored::Stored;
use super::verbs::wide_of;
use super::{Data, Frame, Origin, PageSource, Synced, identities};
use crate::convert::capsule::{broken, fitted};
use crate::prelude::*;
use siteline_core::client::table::{Provenance, Table};
use siteline_core::data::report::PageReport;
use siteline_core::data::reshape::{Every, Measure, Wide};
use siteline_core::data::{Identity, Ids, MergeReport, Merged, Page};
use siteline_core::store::{Store, StoreOptions};
use siteline_core::sync::{PinnedRead, PinnedState};

#[derive(Serialize, Deserialize)]
enum Kept {
    /// Without rows.
    Stored {
        path: PathBuf,
        read_only: bool,
        read: Box<PinnedState>,
    },
    Rows {
        kind: String,
        every: Option<Every>,
        form: Form,
        source: Source,
    },
}

#[derive(Serialize, Deserialize)]
enum Form {
    /// `with_gaps`: the stream lacks the null rows.
    Rows {
        is_points: bool,
        time: String,
        own: usize,
        with_gaps: bool,
    },
    Wide {
        measure: Measure,
        series: Vec<Ids>,
    },
}

#[derive(Serialize, Deserialize)]
enum Source {
    /// `is_partial`, and the position for `resume(onto=)`.
    Read(Box<(Provenance, MergeReport)>, bool, Option<[u8; 32]>),
    Page(Box<(Provenance, PageReport)>, u64, bool, Option<Synced>),
    Made(Box<Facts>),
}

const KINDS: [&str; 7] =
    ["points", "changes", "resampled", "pivoted", "completeness", "gaps", "series"];

impl Frame {
    fn form(&self, py: Python<'_>) -> PyResult<(Form, RecordBatch)> {
        if let Data::Wide(wide) = &self.data {
            let ids = |one: &Identity| one.0.each_ref().map(|id| id.as_deref().map(str::to_owned));
            let series = wide.series.iter().map(ids).collect();
            return Ok((Form::Wide { measure: wide.measure, series }, plain(wide).or_raise()?));
        }
        let (batch, is_points, time, own) = self.rows_there(py)?.to_batch().or_raise()?;
        let (time, with_gaps) = (time.to_owned(), self.there.is_some());
        Ok((Form::Rows { is_points, time, own, with_gaps }, batch))
    }

    fn kept_source(&self, py: Python<'_>) -> PyResult<Source> {
        Ok(match &self.origin {
            Origin::Read(table) => {
                let known = (table.provenance.clone(), table.merged.report.clone());
                Source::Read(Box::new(known), table.is_partial, table.stopped_at)
            }
            Origin::Page(of) => {
                let known = (of.provenance.clone(), of.page.report.clone());
                let (sequence, is_last) = (of.page.sequence, of.page.is_last);
                Source::Page(Box::new(known), sequence, is_last, of.synced.clone())
            }
            _ => Source::Made(Box::new(self.whole_facts(py)?)),
        })
    }

    fn kept(&self, py: Python<'_>) -> PyResult<(Kept, Vec<u8>)> {
        if let Data::Stream(stored) = &self.data {
            let Stored { store, read } = &**stored;
            let (path, read_only) = (store.path().to_path_buf(), store.options().read_only);
            let read = Box::new(read.state.clone());
            return Ok((Kept::Stored { path, read_only, read }, Vec::new()));
        }
        let (form, batch) = self.form(py)?;
        let rows = detached(py, || written(&batch))?.or_raise()?;
        let (kind, every, source) = (self.kind.to_owned(), self.every, self.kept_source(py)?);
        Ok((Kept::Rows { kind, every, form, source }, rows))
    }
}

#[pymethods]
impl Frame {
    fn state<'py>(&self, py: Python<'py>) -> PyResult<(String, Bound<'py, PyBytes>)> {
        let (kept, rows) = self.kept(py)?;
        // As text, a report would contain one member twice.
        let kept = serde_json::to_value(&kept);
        let kept = kept.map_err(|error| PyTypeError::new_err(error.to_string()))?;
        Ok((kept.to_string(), PyBytes::new(py, &rows)))
    }

    #[staticmethod]
    fn restore(py: Python<'_>, kept: &str, rows: &[u8]) -> PyResult<Self> {
        let kept = serde_json::from_str(kept).map_err(|error| foreign(&error.to_string()));
        match kept.or_raise()? {
            Kept::Stored { path, read_only, read } => {
                let open = || -> Result<Stored> {
                    let options = StoreOptions { read_only, share: None };
                    let store = Arc::new(Store::open_with(&path, options)?);
                    Ok(Stored { read: PinnedRead::restore(&store, *read)?, store })
                };
                Ok(Self::of_store(step(py, open)?.or_raise()?))
            }
            Kept::Rows { kind, every, form, source } => {
                let made = detached(py, || restored(&kind, form, source, &read_batch(rows)?))?;
                Ok(Self { every, ..made.or_raise()? })
            }
        }
    }
}

fn restored(kind: &str, form: Form, source: Source, batch: &RecordBatch) -> Result<Frame> {
    let kind = KINDS.into_iter().find(|known| *known == kind);
    let kind = kind.ok_or_else(|| foreign("its kind is unknown"))?;
    let (is_whole, data) = match form {
        Form::Rows { is_points, time, own, with_gaps } => {
            (!with_gaps, Data::Rows(Rows::of_batch(batch, is_points, &time, own)?))
        }
        Form::Wide { measure, series } => {
            let series: Vec<Identity> = identities(series).collect();
            let (times, columns) = (batch.column(0).as_primitive(), batch.columns()[1..].to_vec());
            (true, Data::Wide(Arc::new(wide_of(measure, times.clone(), series, columns))))
        }
    };
    let points = || match &data {
        Data::Rows(rows) => Ok(Arc::clone(&rows.points)),
        _ => Err(foreign("it has no points")),
    };
    let origin = match source {
        Source::Read(known, is_partial, stopped_at) => {
            let merged = Merged { points: points()?, report: known.1 };
            let table = Table::whole(merged, known.0);
            Origin::Read(Arc::new(Table { is_partial, stopped_at, ..table }))
        }
        Source::Page(known, sequence, is_last, synced) => {
            let (provenance, report) = *known;
            let (points, raw, bookmark) = (points()?, None, None);
            let page = Page { points, report, sequence, raw, bookmark, is_last };
            Origin::Page(Arc::new(PageSource { page, provenance, synced }))
        }
        Source::Made(facts) => Origin::Made(Arc::from(facts)),
    };
    let made = Frame::new(kind, data, origin);
    match &made.data {
        Data::Rows(rows) if !is_whole => {
            let filled = rows.with_gaps(&made.coverage().expected()?)?;
            Ok(Frame { there: Some(rows.clone()), data: Data::Rows(filled), ..made })
        }
        _ => Ok(made),
    }
}

/// Numbers are the column names, because labels may repeat.
fn plain(wide: &Wide) -> Result<RecordBatch> {
    let times: ArrayRef = Arc::new(wide.timestamps.clone());
    let columns: Vec<ArrayRef> = [times].into_iter().chain(wide.columns.iter().cloned()).collect();
    let fields = columns.iter().enumerate();
    let fields = fields.map(|(n, one)| Field::new(n.to_string(), one.data_type().clone(), n > 0));
    fitted(Schema::new(fields.collect::<Vec<_>>()), columns)
}

fn written(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut stream = Vec::with_capacity(batch.get_array_memory_size());
    let write = |stream: &mut Vec<u8>| -> Result<(), ArrowError> {
        let mut writer = StreamWriter::try_new(stream, &batch.schema())?;
        writer.write(batch)?;
        writer.finish()
    };
    write(&mut stream).map_err(|error| broken(&error))?;
    Ok(stream)
}

/// The checksum of the pickle has verified the bytes.
fn read_batch(stream: &[u8]) -> Result<RecordBatch> {
    let batch = StreamReader::try_new(Cursor::new(stream), None)
        .and_then(|mut reader| reader.next().transpose())
        .map_err(|error| foreign(&error.to_string()))?;
    batch.ok_or_else(|| foreign("it has no batch"))
}

fn foreign(why: &str) -> Error {
    Error::new(Kind::QueryError, format!("this is no pickled table of this siteline: {why}"))
        .with_hint("Read it again.")
}
