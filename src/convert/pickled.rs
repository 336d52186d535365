//! A table as `pickle` keeps it: its points as an Arrow IPC stream, and where they are from. What only the
//! process has that read it stays behind: the pages of a read that failed, and the names of discovery.

use std::io::Cursor;
use std::panic::catch_unwind;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::root_as_message;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use siteline_core::client::table::{Provenance, StoreShare, Table};
use siteline_core::data::{
    COLUMN_NAMES, MergeReport, Merged, PointColumns, Query, QueryInput, schema,
};
use siteline_core::error::{Error, Kind, Result};

/// Everything of a table but its points.
#[derive(Serialize, Deserialize)]
pub(crate) struct TableState {
    query: QueryInput,
    further: Vec<QueryInput>,
    host: String,
    read_at: Timestamp,
    pages: u64,
    resumed_after_pages: u64,
    not_listed: Vec<String>,
    #[serde(default)]
    through: Vec<StoreShare>,
    is_partial: bool,
    report: MergeReport,
}

impl From<&Table> for TableState {
    fn from(table: &Table) -> Self {
        let Provenance { query, further, host, read_at, pages, resumed_after_pages, .. } =
            &table.provenance;
        Self {
            query: query.input().clone(),
            further: further.iter().map(|query| query.input().clone()).collect(),
            host: host.clone(),
            read_at: *read_at,
            pages: *pages,
            resumed_after_pages: *resumed_after_pages,
            not_listed: table.provenance.not_listed.clone(),
            through: table.provenance.through.clone(),
            is_partial: table.is_partial,
            report: table.merged.report.clone(),
        }
    }
}

impl TableState {
    /// The table, with its points.
    ///
    /// # Errors
    /// `QueryError` for a query that is none.
    pub(crate) fn table(self, points: PointColumns) -> Result<Table> {
        let query = Query::new(self.query)?;
        let further = self.further.into_iter().map(Query::new).collect::<Result<_>>()?;
        let provenance = Provenance {
            query,
            further,
            host: self.host,
            read_at: self.read_at,
            pages: self.pages,
            resumed_after_pages: self.resumed_after_pages,
            not_listed: self.not_listed,
            listed: Arc::default(),
            through: self.through,
        };
        let merged = Merged { points: Arc::new(points), report: self.report };
        Ok(Table::restored(merged, provenance, self.is_partial))
    }
}

/// Points as an Arrow IPC stream of one batch.
///
/// # Errors
/// As [`PointColumns::batch`].
pub(crate) fn write_points(points: &PointColumns) -> Result<Vec<u8>> {
    let batch = points.batch()?;
    let mut stream = Vec::with_capacity(batch.get_array_memory_size());
    let mut writer = StreamWriter::try_new(&mut stream, &batch.schema()).map_err(broken)?;
    writer.write(&batch).map_err(broken)?;
    writer.finish().map_err(broken)?;
    drop(writer);
    Ok(stream)
}

/// Points from what [`write_points`] wrote.
///
/// # Errors
/// `QueryError` for anything else.
pub(crate) fn read_points(stream: &[u8]) -> Result<PointColumns> {
    check_places(stream).ok_or_else(|| foreign("it is damaged"))?;
    let read = || -> Result<Option<RecordBatch>, ArrowError> {
        StreamReader::try_new(Cursor::new(stream), None)?.next().transpose()
    };
    // It asserts that the length of a buffer fits its type.
    let batch = catch_unwind(read).map_err(|_| foreign("it is damaged"))?;
    let batch = batch.map_err(|error| foreign(&error.to_string()))?;
    let batch = batch.ok_or_else(|| foreign("it has no batch"))?;
    let names = batch.schema_ref().fields().iter().skip(COLUMN_NAMES.len());
    let extra: Vec<String> = names.map(|field| field.name().clone()).collect();
    if *batch.schema_ref() != schema(&extra) {
        return Err(foreign("it has other columns"));
    }
    Ok(PointColumns::from_batch(&batch))
}

/// Whether the buffers of each message are within its body: the reader panics at others. `None` if not.
fn check_places(mut stream: &[u8]) -> Option<()> {
    /// Buffers begin at multiples of it.
    const ALIGNMENT: usize = 8;
    loop {
        let (begin, after) = stream.split_first_chunk()?;
        let (length, after) = match i32::from_le_bytes(*begin) {
            -1 => after
                .split_first_chunk()
                .map(|(length, after)| (i32::from_le_bytes(*length), after))?,
            length => (length, after),
        };
        if length == 0 {
            return Some(());
        }
        let (head, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
        let message = root_as_message(head).ok()?;
        let (body, after) = after.split_at_checked(usize::try_from(message.bodyLength()).ok()?)?;
        let batch = message.header_as_record_batch().or_else(|| {
            message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data())
        });
        for buffer in batch.and_then(|batch| batch.buffers()).into_iter().flatten() {
            let start = usize::try_from(buffer.offset()).ok()?;
            let end = start.checked_add(usize::try_from(buffer.length()).ok()?)?;
            if !start.is_multiple_of(ALIGNMENT) || end > body.len() {
                return None;
            }
        }
        stream = after;
    }
}

fn foreign(why: &str) -> Error {
    Error::new(Kind::QueryError, format!("this is no pickled table: {why}"))
}

#[expect(clippy::needless_pass_by_value, reason = "fits map_err")]
fn broken(error: ArrowError) -> Error {
    Error::new(Kind::InternalError, format!("Arrow refused its own data: {error}"))
}
