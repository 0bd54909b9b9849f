//! Certificates of a test, and where a process finds them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

/// An authority that signs certificates.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(super) pem: String,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// Signs a certificate for a host, or for a client, of this name.
    pub(super) fn sign(&self, name: &str) -> Pair {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    pub(super) fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap())
            .unwrap();
        Arc::new(roots)
    }
}

impl Pair {
    pub(super) fn parts(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        (vec![certificate], key)
    }

    /// A server with this certificate, which asks its clients for one of an authority.
    pub(super) fn server(&self, clients: Option<&Authority>) -> Arc<ServerConfig> {
        let (chain, key) = self.parts();
        let builder = match clients {
            Some(clients) => {
                let verifier = WebPkiClientVerifier::builder(clients.roots());
                ServerConfig::builder().with_client_cert_verifier(verifier.build().unwrap())
            }
            None => ServerConfig::builder().with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }
}

/// The files that a process of everturn is told of.
pub(super) struct Files {
    pub(super) authority: PathBuf,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl Files {
    pub(super) fn in_directory(directory: &Path) -> Self {
        let file = |name: &str| directory.join(name);
        Self {
            authority: file("ca.crt"),
            certificate: file("tls.crt"),
            key: file("tls.key"),
        }
    }

    /// Writes them, or replaces them as what rotates certificates does: each at once.
    pub(super) fn write(&self, authority: &Authority, client: &Pair) {
        for (path, text) in [
            (&self.authority, &authority.pem),
            (&self.certificate, &client.certificate),
            (&self.key, &client.key),
        ] {
            let new = path.with_extension("new");
            fs::write(&new, text).unwrap();
            fs::rename(&new, path).unwrap();
        }
    }
}
