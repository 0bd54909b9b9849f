//! TLS in front of a server of a test, as proxies have it.

use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;

/// Takes TLS off, and passes on.
pub(super) struct Front {
    pub(super) port: u16,
    config: watch::Sender<Arc<ServerConfig>>,
    served: Arc<Mutex<usize>>,
}

impl Front {
    /// Starts a front before a port of this machine.
    pub(super) async fn of(port: u16, config: Arc<ServerConfig>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let front = Self {
            port: listener.local_addr().unwrap().port(),
            config: watch::Sender::new(config),
            served: Arc::default(),
        };
        let (configs, served) = (front.config.subscribe(), Arc::clone(&front.served));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, port, configs.clone(), Arc::clone(&served)));
            }
        });
        front
    }

    /// Restarts it with another certificate: connections end, and new ones get this one.
    pub(super) fn restart_with(&self, config: Arc<ServerConfig>) {
        *self.served.lock().unwrap() = 0;
        self.config.send_replace(config);
    }

    /// How many connections were let through since the last start.
    pub(super) fn served(&self) -> usize {
        *self.served.lock().unwrap()
    }
}

async fn pass(
    client: TcpStream,
    port: u16,
    mut configs: watch::Receiver<Arc<ServerConfig>>,
    served: Arc<Mutex<usize>>,
) {
    let config = Arc::clone(&configs.borrow_and_update());
    let Ok(mut client) = TlsAcceptor::from(config).accept(client).await else {
        return;
    };
    *served.lock().unwrap() += 1;
    let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    tokio::select! {
        _ended = copy_bidirectional(&mut client, &mut server) => {}
        _restarted = configs.changed() => {}
    }
}
