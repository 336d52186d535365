//! Keywords of a call as a record of the core, by serde: each error names its keyword.

use pyo3::exceptions::{PyException, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::{Depythonizer, PythonizeError};
use serde::de::value::MapDeserializer;
use serde::de::{self, DeserializeOwned, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::convert::values::{octets, refuse};
use siteline_core::error::{Kind, excerpt};

/// At least this similar, a known keyword is offered for an unknown one.
const SIMILAR: f64 = 0.7;

/// A keyword of a call and its value.
pub(crate) struct Keyword<'py> {
    pub(crate) name: String,
    pub(crate) value: Bound<'py, PyAny>,
}

/// The keywords that a call collects.
pub(crate) fn keywords<'py>(given: Option<&Bound<'py, PyDict>>) -> PyResult<Vec<Keyword<'py>>> {
    let given = given.into_iter().flatten();
    given.map(|(name, value)| Ok(Keyword { name: name.extract()?, value })).collect()
}

/// The record of these keywords.
///
/// # Errors
/// `TypeError` for an unknown keyword and a value of another type, `ConfigError` for other values.
pub(crate) fn record<T: DeserializeOwned>(py: Python<'_>, keywords: &[Keyword<'_>]) -> PyResult<T> {
    let mut current = None;
    let members = keywords.iter().map(|keyword| {
        current = Some(keyword);
        (keyword.name.as_str(), Value(&keyword.value))
    });
    let record = T::deserialize(MapDeserializer::new(members));
    record.map_err(|error: KeywordError| match current {
        Some(keyword) => error.of(keyword).into_python(py),
        None => error.into_python(py),
    })
}

impl Keyword<'_> {
    /// Its value.
    pub(crate) fn deserialize<T: DeserializeOwned>(&self) -> PyResult<T> {
        let value = T::deserialize(Value(&self.value));
        value.map_err(|error| error.of(self).into_python(self.value.py()))
    }
}

/// Python's own error for a keyword that a method does not have.
pub(crate) fn unexpected(name: &str, known: &[&str]) -> PyErr {
    let similarity = |known: &str| strsim::normalized_damerau_levenshtein(name, known);
    let near = known.iter().max_by(|one, other| similarity(one).total_cmp(&similarity(other)));
    let hint = match near.filter(|near| similarity(near) >= SIMILAR) {
        Some(near) => format!(". Did you mean '{near}'?"),
        None => String::new(),
    };
    PyTypeError::new_err(format!("got an unexpected keyword argument '{name}'{hint}"))
}

#[derive(Debug, thiserror::Error)]
enum KeywordError {
    #[error(transparent)]
    Python(#[from] PyErr),
    /// What follows the keyword's name in a `ConfigError`.
    #[error("{0}")]
    Refused(String),
    /// An unknown keyword.
    #[error(transparent)]
    Unexpected(PyErr),
}

impl KeywordError {
    fn of(self, keyword: &Keyword<'_>) -> Self {
        let Keyword { name, value } = keyword;
        let py = value.py();
        match self {
            Self::Refused(text) => Self::Refused(format!("{name}{text}")),
            Self::Python(error) if error.is_instance_of::<PyOverflowError>(py) => {
                let shown =
                    value.repr().map_or_else(|_| "this".to_owned(), |repr| repr.to_string());
                Self::Refused(format!("{name}={} is out of range.", excerpt(&shown)))
            }
            Self::Python(error) if error.is_instance_of::<PyTypeError>(py) => {
                // As pyo3 does for arguments that are listed in a signature.
                let note = format!("while processing '{name}'");
                let _ = error.value(py).call_method1("add_note", (note,));
                Self::Python(error)
            }
            error => error,
        }
    }

    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Python(error) | Self::Unexpected(error) => error,
            Self::Refused(text) => refuse(py, Kind::ConfigError, text),
        }
    }
}

impl de::Error for KeywordError {
    fn custom<T: std::fmt::Display>(text: T) -> Self {
        Self::Python(PyTypeError::new_err(text.to_string()))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::Unexpected(unexpected(name, known))
    }

    fn unknown_variant(text: &str, known: &'static [&'static str]) -> Self {
        let known: Vec<_> = known.iter().map(|known| format!("{known:?}")).collect();
        Self::Refused(format!("={text:?} is none of {}.", known.join(", ")))
    }
}

impl From<PythonizeError> for KeywordError {
    fn from(error: PythonizeError) -> Self {
        let error = PyErr::from(error);
        // What serde says of a type comes as a bare `Exception`.
        Python::attach(|py| {
            let is_bare = error.get_type(py).is(py.get_type::<PyException>());
            if is_bare { Self::custom(error.value(py)) } else { Self::Python(error) }
        })
    }
}

macro_rules! extracted {
    ($($method:ident $visit:ident),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, KeywordError> {
            visitor.$visit(self.0.extract()?)
        }
    )*}
}

/// The value of a keyword. Stricter than pythonize: only a bool is a switch, and text is no list.
/// Bytes may be a `bytearray` or a `memoryview`.
#[derive(Clone, Copy)]
struct Value<'a, 'py>(&'a Bound<'py, PyAny>);

impl IntoDeserializer<'_, KeywordError> for Value<'_, '_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> de::Deserializer<'de> for Value<'_, '_> {
    type Error = KeywordError;

    extracted! {
        deserialize_bool visit_bool, deserialize_u16 visit_u16, deserialize_u32 visit_u32,
        deserialize_u64 visit_u64, deserialize_f64 visit_f64, deserialize_string visit_string
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, KeywordError> {
        match octets(self.0)? {
            Some(bytes) => visitor.visit_bytes(&bytes),
            None => Ok(Depythonizer::from_object(self.0).deserialize_any(visitor)?),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, KeywordError> {
        if self.0.is_none() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, KeywordError> {
        self.0.extract::<Vec<Bound<'_, PyAny>>>()?;
        Ok(Depythonizer::from_object(self.0).deserialize_seq(visitor)?)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, KeywordError> {
        Ok(Depythonizer::from_object(self.0).deserialize_map(visitor)?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, KeywordError> {
        visitor.visit_enum(self.0.extract::<String>()?.into_deserializer())
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 f32 char str bytes byte_buf unit unit_struct newtype_struct tuple
        tuple_struct struct identifier ignored_any
    }
}
