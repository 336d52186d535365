use serde::de::value::Error as NoSuchName;
use serde::de::{DeserializeOwned, IntoDeserializer as _};

use crate::error::{Error, Kind, Result, excerpt};

/// An option with a few named values.
pub trait Choice: DeserializeOwned {
    const OPTION: &'static str;
    /// A list for an error message.
    const CHOICES: &'static str;

    fn parse(name: &str) -> Result<Self> {
        Self::deserialize(name.into_deserializer()).map_err(|_: NoSuchName| {
            let (option, name) = (Self::OPTION, excerpt(name));
            let message = format!("{option}={name:?} is not one of {}.", Self::CHOICES);
            Error::new(Kind::QueryError, message)
        })
    }
}
