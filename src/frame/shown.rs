//! The zone, the labels and the metadata of a table that is shown.

use std::collections::HashMap;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray as _;
use arrow_array::types::TimestampMicrosecondType;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use crate::convert::capsule::fitted;
use crate::prelude::*;
use siteline_core::data::{Codes, Identity, Ids, PointColumns};

/// The index of the times. The label is inserted before them.
const TIME: usize = 5;
pub(crate) const LABEL: &str = "label";

#[derive(Clone, Default)]
pub(crate) struct Shown {
    zone: Option<String>,
    labels: Option<Arc<HashMap<Identity, String>>>,
    metadata: Option<String>,
}

impl<'py> FromPyObject<'_, 'py> for Shown {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        type Labels = HashMap<Ids, String>;
        let (zone, labels, metadata): (_, Option<Labels>, _) = given.extract()?;
        let labels = labels.map(|labels| {
            Arc::new(labels.into_iter().map(|(ids, label)| (identity(ids), label)).collect())
        });
        Ok(Self { zone, labels, metadata })
    }
}

impl Shown {
    pub(crate) fn zone(&self) -> &str {
        self.zone.as_deref().unwrap_or("UTC")
    }

    pub(crate) fn has_labels(&self) -> bool {
        self.labels.is_some()
    }

    /// The label of a series, or its ids.
    pub(crate) fn label(&self, series: &Identity) -> String {
        let label = self.labels.as_ref().and_then(|labels| labels.get(series));
        label.cloned().unwrap_or_else(|| joined(series))
    }

    pub(crate) fn codes<'a>(&self, points: &'a PointColumns) -> Codes<'a> {
        points.codes(|series| Some(self.label(series).into()))
    }

    /// The schema of a batch that begins with the five ids and the time.
    pub(crate) fn schema(&self, plain: &Schema) -> SchemaRef {
        let mut fields: Vec<FieldRef> =
            plain.fields().iter().map(|field| self.zoned_field(field)).collect();
        if self.labels.is_some() {
            let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            fields.insert(TIME, Arc::new(Field::new(LABEL, text, false)));
        }
        Arc::new(self.with_metadata(Schema::new(fields)))
    }

    pub(crate) fn with_metadata(&self, schema: Schema) -> Schema {
        match &self.metadata {
            Some(text) => schema.with_metadata([("siteline".to_owned(), text.clone())]),
            None => schema,
        }
    }

    fn zoned_field(&self, field: &FieldRef) -> FieldRef {
        match field.data_type() {
            DataType::Timestamp(unit, _) => {
                let zoned = DataType::Timestamp(*unit, Some(self.zone().into()));
                Arc::new(field.as_ref().clone().with_data_type(zoned))
            }
            _ => Arc::clone(field),
        }
    }

    /// `points` are the same rows, for their labels.
    pub(crate) fn batch(
        &self,
        plain: &RecordBatch,
        points: impl FnOnce() -> Arc<PointColumns>,
    ) -> Result<RecordBatch> {
        let zoned = |column: &ArrayRef| -> ArrayRef {
            match column.as_primitive_opt::<TimestampMicrosecondType>() {
                Some(times) => Arc::new(times.clone().with_timezone(self.zone())),
                None => Arc::clone(column),
            }
        };
        let mut columns: Vec<ArrayRef> = plain.columns().iter().map(zoned).collect();
        if self.labels.is_some() {
            let points = points();
            columns.insert(TIME, points.dictionary(self.codes(&points))?);
        }
        fitted(self.schema(plain.schema_ref()), columns)
    }
}

pub(crate) fn identity(ids: Ids) -> Identity {
    Identity::from(ids.map(|id| id.map(Arc::from)))
}

fn joined(series: &Identity) -> String {
    series.0.each_ref().map(|id| id.as_deref().unwrap_or_default()).join(" / ")
}
