//! Lets a test replace a method of an object, as `mock.patch.object` does. Other attributes cannot be
//! set, because Python would store a misspelled option and nobody would notice.

use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

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

/// The dictionary that Python keeps for an object of a class with `dict`.
pub(crate) fn dict_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    Ok(object.getattr(intern!(object.py(), "__dict__"))?.cast_into::<PyDict>()?)
}

/// Makes the methods of a class replaceable: see [`replace_method`]. The class has `dict`.
macro_rules! methods_can_be_replaced {
    ($class:ident) => {
        impl $class {
            fn own_dict<'py>(
                slf: &pyo3::Bound<'py, Self>,
            ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyDict>> {
                $crate::convert::patching::dict_of(slf.as_any())
            }
        }

        $crate::convert::patching::methods_can_be_replaced!(set $class);
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
