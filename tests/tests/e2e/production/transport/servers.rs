//! The servers of a stack, with TLS: each asks its clients for a certificate and speaks to nobody without.

use std::{fs, path::Path, sync::Arc};

use everturn_tests::{redis::Redis, stack::Stack, temporal::free_port};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::{
    certificates::{Authority, Files, Pair},
    front::Front,
};

/// The name that the servers' certificates have.
pub(super) const HOST: &str = "localhost";

/// The servers of a stack, as its processes reach them.
pub(super) struct Servers {
    pub(super) temporal: Front,
    /// The port of Redis with TLS; `None` when Temporal alone speaks TLS.
    pub(super) redis_port: Option<u16>,
}

/// Sets a certificate, and who may connect to the database of the stack: whoever has a certificate.
const POSTGRES: &str = r#"
umask 077
printf '%s' "$CERTIFICATE" > "$PGDATA/everturn.crt"
printf '%s' "$KEY" > "$PGDATA/everturn.key"
printf '%s' "$CLIENTS" > "$PGDATA/clients.crt"
cat > "$PGDATA/pg_hba.conf" <<END
host postgres all 127.0.0.1/32 trust
hostssl all all 127.0.0.1/32 trust clientcert=verify-ca
END
psql -qc "ALTER SYSTEM SET ssl = on" -c "ALTER SYSTEM SET ssl_cert_file = 'everturn.crt'" \
  -c "ALTER SYSTEM SET ssl_key_file = 'everturn.key'" -c "ALTER SYSTEM SET ssl_ca_file = 'clients.crt'"
"#;

impl Servers {
    /// Has the servers of a stack that no other test uses speak TLS, with certificates of an authority.
    pub(super) async fn of(stack: &Stack, authority: &Authority) -> Self {
        let mut servers = Self::only_temporal(stack, authority).await;
        servers.redis_port = Some(free_port());
        servers.secure(stack, authority).await;
        servers
    }

    /// Has Temporal alone speak TLS. Other tests may use the stack.
    pub(super) async fn only_temporal(stack: &Stack, authority: &Authority) -> Self {
        let port = stack.temporal.address().rsplit(':').next().unwrap().parse();
        let config = authority.sign(HOST).server(Some(authority));
        Self {
            temporal: Front::of(port.unwrap(), config).await,
            redis_port: None,
        }
    }

    /// Restarts the servers with certificates of this authority, which know no other one any more.
    pub(super) async fn restart_with(&self, stack: &Stack, authority: &Authority) {
        let config = authority.sign(HOST).server(Some(authority));
        self.temporal.restart_with(config);
        self.secure(stack, authority).await;
    }

    async fn secure(&self, stack: &Stack, authority: &Authority) {
        let redis_port = self.redis_port.expect("Redis speaks TLS");
        let own = authority.sign(HOST);
        let environment = [
            ("CERTIFICATE", own.certificate.as_str()),
            ("KEY", own.key.as_str()),
            ("CLIENTS", authority.pem.as_str()),
        ];
        stack.postgres().administer(POSTGRES, &environment).await;
        stack.postgres().restart_fast().await;
        secure_redis(stack.redis(), redis_port, authority).await;
    }

    /// What the processes of a stack are told of the servers, as names and values.
    pub(super) fn environment(&self, stack: &Stack, files: &Files) -> Vec<(&'static str, String)> {
        let path = |path: &Path| path.display().to_string();
        let query = format!(
            "sslrootcert={}&sslcert={}&sslkey={}",
            path(&files.authority),
            path(&files.certificate),
            path(&files.key)
        );
        let mut environment = vec![
            ("TEMPORAL_ADDRESS", format!("{HOST}:{}", self.temporal.port)),
            ("TEMPORAL_TLS_SERVER_CA_CERT_PATH", path(&files.authority)),
            ("TEMPORAL_TLS_CLIENT_CERT_PATH", path(&files.certificate)),
            ("TEMPORAL_TLS_CLIENT_KEY_PATH", path(&files.key)),
        ];
        if let (Some(database), Some(port)) = (stack.backends().database(), self.redis_port) {
            let database = database.replace("127.0.0.1", HOST);
            let database = format!("{database}?sslmode=verify-full&{query}");
            environment.push(("EVERTURN_DATABASE", database));
            environment.push(("EVERTURN_REDIS", format!("rediss://{HOST}:{port}?{query}")));
        }
        environment
    }
}

async fn secure_redis(redis: &Redis, port: u16, authority: &Authority) {
    let own = authority.sign(HOST);
    // It reads a file that has another name than the one before.
    let number = uuid::Uuid::new_v4().simple().to_string();
    let file = |name: &str, text: &str| {
        let path = redis.directory().join(format!("{number}-{name}"));
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (certificate, key) = (file("own.crt", &own.certificate), file("own.key", &own.key));
    let clients = file("clients.crt", &authority.pem);
    let set = format!(
        "CONFIG SET tls-cert-file {certificate} tls-key-file {key} tls-ca-cert-file {clients} \
         tls-auth-clients yes tls-port {port}"
    );
    redis.command(&set).await.unwrap();
    // As a restart does.
    for kind in ["normal", "pubsub"] {
        let kill = format!("CLIENT KILL TYPE {kind} SKIPME yes");
        redis.command(&kill).await.unwrap();
    }
}

/// True when a server with TLS on this port ends the connection of this client.
pub(super) async fn refuses(port: u16, authority: &Authority, client: &Pair) -> bool {
    let (chain, key) = client.parts();
    let config = ClientConfig::builder()
        .with_root_certificates(authority.roots())
        .with_client_auth_cert(chain, key);
    let connector = TlsConnector::from(Arc::new(config.unwrap()));
    let tcp = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let name = ServerName::try_from(HOST).unwrap();
    let Ok(mut server) = connector.connect(name, tcp).await else {
        return true;
    };
    // What the server thinks of the client's certificate is told after the client has spoken.
    let said = server.write_all(b"PING\r\n").await;
    said.is_err() || !matches!(server.read(&mut [0; 16]).await, Ok(1..))
}
