//! Certificates in files, for connections to Temporal. Each new connection reads the files again. Therefore a rotation
//! of certificates (every few hours in some clusters) needs no restart. Open connections stay open.

use std::{
    fmt,
    fs::File,
    io::Read,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, bail, ensure};
use rustls::{
    DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        ResolvesClientCert, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    sign::CertifiedKey,
};
use temporalio_client::{ConnectionOptions, envconfig::DataSource};
use temporalio_common::envconfig::ClientConfigTLS;

/// The largest file: some hundred certificates.
const MAX_BYTES: u64 = 1024 * 1024;

/// Changes the options: every new connection reads the files in `written`.
pub(crate) fn read_anew(
    options: &mut ConnectionOptions,
    written: Option<&ClientConfigTLS>,
) -> anyhow::Result<()> {
    let (Some(tls), Some(written)) = (&mut options.tls_options, written) else {
        return Ok(());
    };
    if let Some(authority @ DataSource::Path(_)) = &written.server_ca_cert {
        tls.server_root_ca_cert = None;
        tls.server_cert_verifier = Some(Arc::new(Authority::open(authority.clone())?));
    }
    let (Some(certificate), Some(key)) = (&written.client_cert, &written.client_key) else {
        return Ok(());
    };
    if !matches!(certificate, DataSource::Path(_)) && !matches!(key, DataSource::Path(_)) {
        return Ok(());
    }
    tls.client_tls_options = None;
    tls.client_cert_resolver = Some(Arc::new(Identity::open(certificate.clone(), key.clone())?));
    // With a resolver of certificates, the SDK uses a TLS connector of its own. The connector does not work with DNS
    // load balancing, and needs an `http://` address, because `https://` would add TLS twice; the `origin` keeps
    // `https` for the requests (docs/libraries.md, Temporal SDK: a resolver of certificates).
    let host = options.target.host_str().unwrap_or_default();
    let authority = match (&tls.domain, options.target.port()) {
        (Some(domain), _) => domain.clone(),
        (None, Some(port)) => format!("{host}:{port}"),
        (None, None) => host.to_owned(),
    };
    options.override_origin = Some(format!("https://{authority}").parse()?);
    options.dns_load_balancing = None;
    let port = options.target.port_or_known_default();
    let is_plain = options.target.set_scheme("http").is_ok();
    ensure!(
        is_plain && options.target.set_port(port).is_ok(),
        "TEMPORAL_ADDRESS is host:port, without a scheme"
    );
    Ok(())
}

/// A value that is read from files, and read again when it is used.
struct Files<T> {
    what: &'static str,
    sources: Vec<DataSource>,
    parse: fn(&[Vec<u8>]) -> anyhow::Result<Arc<T>>,
    kept: Mutex<Kept<T>>,
}

struct Kept<T> {
    contents: Vec<Vec<u8>>,
    value: Arc<T>,
}

impl<T> Files<T> {
    fn open(
        what: &'static str,
        sources: Vec<DataSource>,
        parse: fn(&[Vec<u8>]) -> anyhow::Result<Arc<T>>,
    ) -> anyhow::Result<Self> {
        let contents = read(&sources)?;
        let value = parse(&contents).with_context(|| unusable(what, &sources))?;
        Ok(Self {
            what,
            sources,
            parse,
            kept: Mutex::new(Kept { contents, value }),
        })
    }

    /// Returns the value of the files. While the files are unusable, for example during a rotation, returns the
    /// previous value.
    fn current(&self) -> Arc<T> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let what = self.what;
        match read(&self.sources) {
            Ok(contents) if contents == kept.contents => {}
            Ok(contents) => match (self.parse)(&contents) {
                Ok(value) => {
                    tracing::info!("{what} was replaced, and new connections use the new version");
                    *kept = Kept { contents, value };
                }
                Err(error) => {
                    let file = unusable(what, &self.sources);
                    tracing::warn!("{file}: {error:#}; the previous version stays in use");
                }
            },
            Err(error) => tracing::warn!("{error:#}; the previous version stays in use: {what}"),
        }
        Arc::clone(&kept.value)
    }
}

impl<T> fmt::Debug for Files<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

fn unusable(what: &str, sources: &[DataSource]) -> String {
    let paths = sources.iter().filter_map(|source| match source {
        DataSource::Path(path) => Some(path.as_str()),
        _ => None,
    });
    let paths: Vec<_> = paths.collect();
    format!("{what} in {} cannot be used", paths.join(", "))
}

fn read(sources: &[DataSource]) -> anyhow::Result<Vec<Vec<u8>>> {
    let contents = sources.iter().map(|source| match source {
        DataSource::Path(path) => {
            let mut content = Vec::new();
            let file = File::open(path).with_context(|| format!("cannot read {path}"))?;
            let mut limited = file.take(MAX_BYTES);
            let read = limited.read_to_end(&mut content);
            read.with_context(|| format!("cannot read {path}"))?;
            Ok(content)
        }
        DataSource::Data(content) => Ok(content.clone()),
        _ => bail!("a certificate is a file or a text"),
    });
    contents.collect()
}

fn certificates(pem: &[u8]) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>()?;
    ensure!(!found.is_empty(), "the file has no certificate");
    Ok(found)
}

fn provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default().map_or_else(|| Arc::new(ring::default_provider()), Arc::clone)
}

/// The authority that signed the server's certificate. Name, dates and signatures are checked in the usual way.
#[derive(Debug)]
struct Authority {
    files: Files<WebPkiServerVerifier>,
}

impl Authority {
    fn open(source: DataSource) -> anyhow::Result<Self> {
        let what = "the authority of Temporal's certificate";
        Files::open(what, vec![source], verifier).map(|files| Self { files })
    }
}

fn verifier(contents: &[Vec<u8>]) -> anyhow::Result<Arc<WebPkiServerVerifier>> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&contents.concat())? {
        roots.add(certificate)?;
    }
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
    Ok(builder.build()?)
}

impl ServerCertVerifier for Authority {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verifier = self.files.current();
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = provider().signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// The client's own certificate and its key.
#[derive(Debug)]
struct Identity {
    files: Files<CertifiedKey>,
}

impl Identity {
    fn open(certificate: DataSource, key: DataSource) -> anyhow::Result<Self> {
        let what = "the certificate for Temporal";
        Files::open(what, vec![certificate, key], certified).map(|files| Self { files })
    }
}

fn certified(contents: &[Vec<u8>]) -> anyhow::Result<Arc<CertifiedKey>> {
    let [certificate, key] = contents else {
        bail!("it is a certificate and a key");
    };
    let key = PrivateKeyDer::from_pem_slice(key)?;
    let chain = certificates(certificate)?;
    let certified = CertifiedKey::from_der(chain, key, &provider())?;
    Ok(Arc::new(certified))
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.files.current())
    }

    fn has_certs(&self) -> bool {
        true
    }
}
