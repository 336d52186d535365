//! Lets a test replace a method of an object, as `mock.patch.object` does. Other attributes cannot be
//! set, because Python would store a misspelled option and nobody would notice.

use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

/// Replaces a method of one object in its dictionary `own`, or removes the replacement if `with` is `None`.
///
/// # Errors
/// Returns `AttributeError` if `name` is not a method of the class, is a special method such as
/// `__enter__`, or if there is no replacement to remove.
pub(crate) fn replace_method(
    object: &Bound<'_, PyAny>,
    own: &Bound<'_, PyDict>,
    name: &str,
    with: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let class = object.get_type();
    let class_name = class.name()?;
    let known = class.getattr_opt(name)?;
    match &known {
        None => {
            let text = format!("'{class_name}' object has no attribute '{name}'");
            return Err(PyAttributeError::new_err(text));
        }
        // Python looks up special methods such as __enter__ only in the class.
        Some(known) if !known.is_callable() || name.starts_with("__") => {
            let text = format!("attribute '{name}' of '{class_name}' objects is read-only");
            return Err(PyAttributeError::new_err(text));
        }
        Some(_) => {}
    }
    match with {
        Some(value) => own.set_item(name, value),
        None => own.del_item(name).map_err(|_| {
            PyAttributeError::new_err(format!(
                "'{class_name}' object attribute '{name}' was not set"
            ))
        }),
    }
}

/// The replaced methods of an object that the garbage collector visits. Such a class must not have `dict`:
/// Python allocates that dictionary before `PyO3` writes the fields, and a collection at that moment would
/// visit fields without content. The collector does not visit the replacements, which exist only in tests.
pub(crate) struct Replaced(PyOnceLock<Py<PyDict>>);

impl Replaced {
    pub(crate) fn nothing() -> Self {
        Self(PyOnceLock::new())
    }

    pub(crate) fn dict<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        self.0.get_or_init(py, || PyDict::new(py).unbind()).bind(py).clone()
    }

    /// Returns an attribute of an object: the replacement, or else the attribute itself.
    pub(crate) fn attribute<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static USUAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = object.py();
        let replaced = self.0.get(py).map(|own| own.bind(py).get_item(name)).transpose()?.flatten();
        if let Some(replaced) = replaced {
            return Ok(replaced);
        }
        let usual = USUAL.get_or_try_init(py, || {
            py.get_type::<PyAny>().getattr(intern!(py, "__getattribute__")).map(Bound::unbind)
        })?;
        usual.bind(py).call1((object, name))
    }
}

/// Makes the methods of a class replaceable: see [`replace_method`]. The class has `dict`, or the field
/// `replaced` if it has `__traverse__`: see [`Replaced`].
macro_rules! methods_can_be_replaced {
    ($class:ident, replaced) => {
        impl $class {
            fn own_dict<'py>(
                slf: &pyo3::Bound<'py, Self>,
            ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyDict>> {
                Ok(slf.get().replaced.dict(slf.py()))
            }
        }

        $crate::convert::patching::methods_can_be_replaced!(set $class);

        #[pymethods]
        impl $class {
            fn __getattribute__<'py>(
                slf: &pyo3::Bound<'py, Self>,
                name: &pyo3::Bound<'py, pyo3::types::PyString>,
            ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::PyAny>> {
                slf.get().replaced.attribute(slf.as_any(), name)
            }
        }
    };
    (set $class:ident) => {
        #[pymethods]
        impl $class {
            fn __setattr__(
                slf: &Bound<'_, Self>,
                name: &str,
                value: &Bound<'_, PyAny>,
            ) -> PyResult<()> {
                let own = Self::own_dict(slf)?;
                let object = slf.as_any();
                $crate::convert::patching::replace_method(object, &own, name, Some(value))
            }

            fn __delattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<()> {
                let own = Self::own_dict(slf)?;
                $crate::convert::patching::replace_method(slf.as_any(), &own, name, None)
            }
        }
    };
}

pub(crate) use methods_can_be_replaced;
