//! Signers in Python run on the thread or event loop of the call that needs the token.

use futures_util::FutureExt as _;
use futures_util::future::ready;
use pyo3::exceptions::PyException;
use pyo3::exceptions::asyncio::CancelledError;
use tokio::time::timeout;

use crate::bridge::event_loop::{LoopClosed, ask};
use crate::bridge::events::Origin;
use crate::bridge::runtime::run_for_caller;
use crate::convert::values::octets;
use crate::prelude::*;
use siteline_core::auth::{AsyncSigner, SignFuture};

/// How long an async signer may take.
const LONGEST: Duration = Duration::from_secs(15);

pub(crate) struct PySigner {
    pub(super) function: Arc<Py<PyAny>>,
    pub(super) is_async: bool,
}

impl AsyncSigner for PySigner {
    fn check(&self) -> Result<()> {
        if self.is_async { Origin::awaited().map(drop).ok_or_else(cannot_await) } else { Ok(()) }
    }

    fn sign(&self, signing_input: Vec<u8>) -> SignFuture {
        let function = Arc::clone(&self.function);
        if !self.is_async {
            return sign_plainly(function, signing_input).boxed();
        }
        let Some(caller) = Origin::awaited() else {
            return ready(Err(cannot_await())).boxed();
        };
        async move {
            match timeout(LONGEST, ask(caller, function, signing_input, signature)).await {
                Ok(Ok(signed)) => signed,
                Ok(Err(LoopClosed)) => {
                    let text = "The signer did not finish, because its event loop was closed.";
                    Err(Error::new(Kind::ClosedError, text))
                }
                Err(_) => {
                    let text = format!("The async signer returned nothing within {LONGEST:?}.");
                    Err(Error::new(Kind::TransportTimeout, text))
                }
            }
        }
        .boxed()
    }
}

/// Ctrl-C in the signer ends only the call that runs it, not the others that wait for the token.
async fn sign_plainly(function: Arc<Py<PyAny>>, signing_input: Vec<u8>) -> Result<Vec<u8>> {
    let origin = Origin::current();
    let signed = run_for_caller(move |py| {
        let arguments = (&*function, PyBytes::new(py, &signing_input));
        let answer = match origin {
            Some(origin) => origin.in_context(py, arguments),
            None => function.bind(py).call1((arguments.1,)),
        };
        match answer {
            Err(raised) if !raised.is_instance_of::<PyException>(py) => Err(raised),
            answer => Ok(signature(py, answer)),
        }
    });
    signed.await?
}

fn cannot_await() -> Error {
    let message = "The signer of this credential is an async function, which this client cannot \
                   await; nothing was sent.";
    let hint = "Use siteline.AsyncClient, or pass a plain function as signer=; it may block.";
    Error::new(Kind::ConfigError, message).with_hint(hint)
}

fn signature(py: Python<'_>, answer: PyResult<Object<'_>>) -> Result<Vec<u8>> {
    let answer = answer.map_err(|raised| signer_raised(py, raised))?;
    match octets(&answer) {
        Ok(Some(signature)) => Ok(signature.to_vec()),
        Ok(None) => Err(signer_returned(&answer)),
        Err(raised) => Err(signer_raised(py, raised)),
    }
}

/// The message does not repeat the exception's text, which may be secret.
fn signer_raised(py: Python<'_>, raised: PyErr) -> Error {
    if raised.is_instance_of::<CancelledError>(py) {
        // The call of this signer raises `CancelledError` itself.
        return Error::new(Kind::ClosedError, "The signer was cancelled.").with_source(raised);
    }
    let name = raised.get_type(py).name().map_or_else(|_| "an exception".into(), |n| n.to_string());
    Error::new(Kind::CredentialError, format!("The signer raised {name}; nothing was sent."))
        .with_hint("The signer's exception is the __cause__ of this error.")
        .with_source(raised)
}

fn signer_returned(answer: &Object<'_>) -> Error {
    let found = described(answer);
    let hint = if answer.hasattr("__await__").unwrap_or_default() {
        "It is a plain function that returns an awaitable. Pass the async function itself, or one that \
         awaits it (async def sign(data): return await ...)."
    } else {
        "It must return the bytes of the signature: no base64 text, no other object."
    };
    let message = format!("The signer returned {found} where bytes were expected.");
    Error::new(Kind::CredentialError, message).with_hint(hint)
}
