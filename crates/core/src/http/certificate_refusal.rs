//! Refusals of the client certificate. Services report them in different ways: by a TLS alert, by a
//! page of the terminator before the service, or by a JSON error. The interface documents none.

use rustls::AlertDescription;

use super::client_certificate::Presenter;
use super::problem::page_text;
use crate::error::{Error, Kind};

const NONE_PRESENTED: &str =
    "it is a platform-managed service: use credential=siteline.MutualTls(\"plant.pem\")";
const REFUSED: &str = "ask the operator of the service whether the certificate is registered \
                       for your integration, and which CAs it accepts";

/// Whether an alert of the service is about the client certificate. Some alerts are sent for other
/// reasons too; they count only if the service requested a certificate.
pub(super) fn is_refusal(alert: AlertDescription, presenter: &Presenter) -> bool {
    alert == AlertDescription::CertificateRequired
        || (presenter.was_asked() && may_be_refusal(alert))
}

/// Whether a service sends this alert if it refuses a client certificate.
pub(crate) fn may_be_refusal(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::HandshakeFailure
            | Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::DecryptError
    )
}

/// The error for such an alert. The handshake failed, so the service received no request.
pub(super) fn from_alert(alert: AlertDescription, address: &str, presenter: &Presenter) -> Error {
    use AlertDescription as Alert;
    let is_presented = presenter.certificate.is_some();
    let why = match alert {
        Alert::CertificateExpired => ": it has expired",
        Alert::CertificateRevoked => ": it was revoked",
        Alert::UnknownCA => ": the service does not know its CA",
        Alert::UnsupportedCertificate => ": the service does not accept this kind",
        Alert::AccessDenied => ": it is not registered",
        _ => "",
    };
    let message = if is_presented {
        format!("{address} refused the client certificate{why}")
    } else {
        format!("{address} requires a client certificate, and there is none")
    };
    marked(Error::new(Kind::AuthenticationError, message), is_presented)
        .with(|context| context.unsent = true)
}

/// Whether a reply is an HTML page about certificates. A terminator such as nginx answers before
/// the service sees the request.
pub(super) fn is_page(status: u16, body: &[u8]) -> bool {
    let body = body.trim_ascii_start();
    if matches!(body.first(), Some(b'{' | b'[' | b'"')) {
        return false;
    }
    match status {
        495 | 496 => true,
        400 | 403 => page_text(body).contains("certificate"),
        _ => false,
    }
}

/// Marks an error that neither a new token nor a retry can resolve.
pub(super) fn marked(error: Error, is_presented: bool) -> Error {
    error
        .with_hint(if is_presented { REFUSED } else { NONE_PRESENTED })
        .with(|context| context.certificate_refused = true)
}

#[cfg(test)]
mod tests {
    use rustls::client::ResolvesClientCert as _;

    use super::*;
    use crate::http::client_certificate::tests::certificate;

    const ABOUT_CERTIFICATES: [AlertDescription; 10] = [
        AlertDescription::HandshakeFailure,
        AlertDescription::NoCertificate,
        AlertDescription::BadCertificate,
        AlertDescription::UnsupportedCertificate,
        AlertDescription::CertificateRevoked,
        AlertDescription::CertificateExpired,
        AlertDescription::CertificateUnknown,
        AlertDescription::UnknownCA,
        AlertDescription::AccessDenied,
        AlertDescription::DecryptError,
    ];

    #[test]
    fn m1_m2_an_alert_is_a_refusal_only_after_a_request() {
        let (silent, asked) = (Presenter::new(None), Presenter::new(None));
        asked.resolve(&[], &[]);
        for alert in ABOUT_CERTIFICATES {
            assert!(is_refusal(alert, &asked), "{alert:?}");
            assert!(!is_refusal(alert, &silent), "{alert:?}");
        }
        for presenter in [silent, asked] {
            assert!(is_refusal(AlertDescription::CertificateRequired, &presenter));
            for other in [AlertDescription::ProtocolVersion, AlertDescription::InternalError] {
                assert!(!is_refusal(other, &presenter), "{other:?}");
            }
        }
    }

    #[test]
    fn m2_an_alert_shows_the_fault_of_the_certificate() {
        use AlertDescription as Alert;
        let (none, some) = (Presenter::new(None), Presenter::new(Some(certificate("plant-7"))));
        for (alert, why) in [
            (Alert::CertificateExpired, ": it has expired"),
            (Alert::CertificateRevoked, ": it was revoked"),
            (Alert::UnknownCA, ": the service does not know its CA"),
            (Alert::UnsupportedCertificate, ": the service does not accept this kind"),
            (Alert::AccessDenied, ": it is not registered"),
            (Alert::BadCertificate, ""),
        ] {
            let error = from_alert(alert, "plant.example:443", &some);
            let message = format!("plant.example:443 refused the client certificate{why}");
            assert_eq!(error.context().message, message);
            assert!(error.to_string().contains("registered for your integration"), "{error}");
            let error = from_alert(alert, "plant.example:443", &none);
            let message = "plant.example:443 requires a client certificate, and there is none";
            assert_eq!(error.context().message, message);
            assert!(error.to_string().contains("siteline.MutualTls"), "{error}");
            assert_eq!((error.kind(), error.context().unsent), (Kind::AuthenticationError, true));
            assert!(error.context().certificate_refused);
        }
    }

    #[test]
    fn m1_m2_pages_that_speak_of_a_certificate_are_recognised() {
        let nginx = "<html>\r\n<head><title>400 The SSL certificate error</title></head>\r\n";
        for (status, body, expected) in [
            (400, nginx, true),
            (403, "SSL client certificate is required", true),
            (496, "", true),
            (495, "<p>no</p>", true),
            (400, "<title>400 Bad Request</title>", false),
            (500, nginx, false),
            (404, nginx, false),
            (400, " {\"error\": \"invalid_request\", \"detail\": \"certificate\"}", false),
            (403, "[\"certificate\"]", false),
        ] {
            assert_eq!(is_page(status, body.as_bytes()), expected, "{status} {body}");
        }
    }
}
