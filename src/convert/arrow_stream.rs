//! [`ArrowStream`] reads the batches of another library's Arrow stream. It checks each batch before it
//! reads a value.
//!
//! The C data interface does not transmit buffer lengths. They follow from the length and the offsets
//! that the producer claims. The import rejects claims that contradict each other or the format. It
//! cannot detect a claim that exceeds the allocated memory, because only the producer has that size. So
//! `siteline._arrow_check` lets pyarrow compare the two.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchOptions, StructArray};
use arrow_data::{ArrayData, layout};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use siteline_core::error::excerpt;

/// Maximum items of an array. It keeps the size of each buffer within a machine word.
const MOST_ITEMS: usize = 1 << 40;
/// Maximum bytes of a buffer.
const MOST_BYTES: u64 = 1 << 40;

/// The reason why a stream cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BrokenStream(String);

impl BrokenStream {
    pub(crate) fn new(why: &str) -> Self {
        // After "Detail:", pyarrow adds the position in its own code.
        let why = why.split_once(". Detail: ").map_or(why, |(why, _)| why);
        Self(excerpt(why.trim_end_matches('.')))
    }
}

impl From<ArrowError> for BrokenStream {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::InvalidArgumentError(why) | ArrowError::CDataInterface(why) => {
                Self::new(&why)
            }
            other => Self::new(&other.to_string()),
        }
    }
}

/// An Arrow stream of another library, moved out of its capsule.
pub(crate) struct ArrowStream {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
    kind: DataType,
}

impl ArrowStream {
    /// Reads the schema of the stream.
    ///
    /// # Errors
    /// Returns an error if the stream is already released or its schema does not describe a table.
    pub(crate) fn new(mut stream: FFI_ArrowArrayStream) -> Result<Self, BrokenStream> {
        if stream.release().is_none() {
            return Err(broken("it was read before"));
        }
        let schema = exported_schema(&mut stream)?;
        let field = without_panic(|| Ok(Field::try_from(&schema)?))?;
        let DataType::Struct(fields) = field.data_type() else {
            return Err(broken("it has no columns"));
        };
        let schema = Schema::new(fields.clone()).with_metadata(field.metadata().clone());
        Ok(Self { stream, schema: Arc::new(schema), kind: field.data_type().clone() })
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn batch(&self, array: FFI_ArrowArray) -> Result<RecordBatch, BrokenStream> {
        check_claims(&array, &self.kind)?;
        let data = imported(array, self.kind.clone())?;
        data.validate_data()?;
        for (field, column) in self.schema.fields().iter().zip(data.child_data()) {
            let wrong = |error| {
                let BrokenStream(why) = BrokenStream::from(error);
                broken(&format!("the column {:?}: {why}", field.name()))
            };
            column.validate_full().map_err(wrong)?;
        }
        if data.null_count() > 0 {
            return Err(broken("a row of it is null"));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(data.len()));
        let columns = StructArray::from(data).into_parts().1;
        Ok(RecordBatch::try_new_with_options(self.schema(), columns, &options)?)
    }
}

impl Iterator for ArrowStream {
    type Item = Result<RecordBatch, BrokenStream>;

    fn next(&mut self) -> Option<Self::Item> {
        let array = match exported_array(&mut self.stream) {
            Ok(array) if array.is_released() => return None,
            Ok(array) => array,
            Err(error) => return Some(Err(error)),
        };
        Some(without_panic(|| self.batch(array)))
    }
}

/// Turns a panic into an error: the arrow crates assert some rules of the format.
fn without_panic<T>(read: impl FnOnce() -> Result<T, BrokenStream>) -> Result<T, BrokenStream> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(broken("it violates the format")))
}

fn broken(why: &str) -> BrokenStream {
    BrokenStream::new(why)
}

/// Rejects invalid counts, which the import would use to compute addresses.
fn check_claims(array: &FFI_ArrowArray, kind: &DataType) -> Result<(), BrokenStream> {
    // A negative count appears as a large unsigned number.
    let (items, offset) = (array.len(), array.offset());
    if items > MOST_ITEMS || offset > MOST_ITEMS {
        return Err(broken(&format!("the length or the offset of a {kind} array is out of range")));
    }
    if array.null_count_opt().is_some_and(|nulls| nulls > items) {
        return Err(broken(&format!("a {kind} array has more nulls than items")));
    }
    let form = layout(kind);
    let least = form.buffers.len() + usize::from(form.can_contain_null_mask);
    // A view array has one more buffer, with the lengths of its further buffers.
    let least = least + usize::from(form.variadic);
    if array.num_buffers() < least || array.num_buffers() > MOST_ITEMS {
        return Err(broken(&format!("a {kind} array has another number of buffers")));
    }
    check_lengths(array, kind, array.num_buffers() - least)?;
    let children = children(kind);
    if array.num_children() != children.len() {
        return Err(broken(&format!("a {kind} array has another number of children")));
    }
    for (place, child) in children.into_iter().enumerate() {
        check_claims(array.child(place), child)?;
    }
    match (array.dictionary(), kind) {
        (Some(values), DataType::Dictionary(_, kind)) => check_claims(values, kind),
        (None, DataType::Dictionary(..)) | (Some(_), _) => {
            Err(broken(&format!("a {kind} array and its dictionary differ")))
        }
        (None, _) => Ok(()),
    }
}

fn children(kind: &DataType) -> Vec<&DataType> {
    match kind {
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::ListView(child)
        | DataType::LargeListView(child)
        | DataType::FixedSizeList(child, _)
        | DataType::Map(child, _) => vec![child.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        DataType::RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        _ => Vec::new(),
    }
}

/// Rejects buffer lengths beyond [`MOST_BYTES`]. They are the last offset of a text array, and the lengths
/// of the `further` buffers of a view array.
fn check_lengths(
    array: &FFI_ArrowArray,
    kind: &DataType,
    further: usize,
) -> Result<(), BrokenStream> {
    let end = array.len() + array.offset();
    let is_wrong = match kind {
        DataType::Utf8 | DataType::Binary if end > 0 => number::<i32>(array, 1, end) > MOST_BYTES,
        DataType::LargeUtf8 | DataType::LargeBinary if end > 0 => {
            number::<i64>(array, 1, end) > MOST_BYTES
        }
        DataType::Utf8View | DataType::BinaryView => {
            let last = array.num_buffers() - 1;
            (0..further).any(|place| number::<i64>(array, last, place) > MOST_BYTES)
        }
        _ => false,
    };
    if is_wrong {
        return Err(broken(&format!("an offset or a length of a {kind} array is out of range")));
    }
    Ok(())
}

/// Reads a number from a buffer. Returns `u64::MAX` if the number is negative or the buffer is missing.
#[expect(unsafe_code, reason = "the Arrow boundary: buffers have no length before their import")]
fn number<T: Copy + TryInto<u64>>(array: &FFI_ArrowArray, buffer: usize, place: usize) -> u64 {
    let start = array.buffer(buffer).cast::<T>();
    if start.is_null() {
        return u64::MAX;
    }
    // SAFETY: relies on the producer. Its buffer of offsets or lengths contains as many numbers as its
    // array claims, and `place` is less than that count.
    let number = unsafe { start.add(place).read_unaligned() };
    number.try_into().unwrap_or(u64::MAX)
}

#[expect(unsafe_code, reason = "the Arrow boundary: the producer's pointers are taken over")]
fn imported(array: FFI_ArrowArray, kind: DataType) -> Result<ArrayData, BrokenStream> {
    // SAFETY: relies on the producer for two facts that the interface cannot prove. Each pointer is
    // readable for as many bytes as the length and the offsets claim, and it stays so until `release`.
    // `check_claims` has checked the claims. `validate_full` checks the contents before they are used.
    Ok(unsafe { from_ffi_and_data_type(array, kind) }?)
}

#[expect(unsafe_code, reason = "the Arrow boundary: the stream's own functions are called")]
fn exported_schema(stream: &mut FFI_ArrowArrayStream) -> Result<FFI_ArrowSchema, BrokenStream> {
    let mut schema = FFI_ArrowSchema::empty();
    let read = stream.get_schema().ok_or_else(|| broken("it has no schema"))?;
    // SAFETY: the function belongs to this stream, and the stream is not released.
    let code = unsafe { read(&raw mut *stream, &raw mut schema) };
    if code == 0 { Ok(schema) } else { Err(failed(stream, code)) }
}

/// Returns the next array, or a released array at the end of the stream.
#[expect(unsafe_code, reason = "the Arrow boundary: the stream's own functions are called")]
fn exported_array(stream: &mut FFI_ArrowArrayStream) -> Result<FFI_ArrowArray, BrokenStream> {
    let mut array = FFI_ArrowArray::empty();
    let read = stream.get_next().ok_or_else(|| broken("it has no batches"))?;
    // SAFETY: the function belongs to this stream, and the stream is not released.
    let code = unsafe { read(&raw mut *stream, &raw mut array) };
    if code == 0 { Ok(array) } else { Err(failed(stream, code)) }
}

/// Returns the producer's message for the call that has just failed.
#[expect(unsafe_code, reason = "the Arrow boundary: the stream's own functions are called")]
fn failed(stream: &mut FFI_ArrowArrayStream, code: i32) -> BrokenStream {
    let told = stream.get_last_error().and_then(|read| {
        // SAFETY: the last call failed. Its text is valid until the next call and is copied here.
        unsafe {
            let text = read(&raw mut *stream);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    });
    broken(&told.unwrap_or_else(|| format!("its producer failed with code {code}")))
}
