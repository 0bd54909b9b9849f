//! Any store that speaks S3. The library signs addresses, and the requests are ours.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, header::CONTENT_TYPE};
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use url::Url;

use super::{ObjectStore, PUT_LIMIT};
use crate::{api::Result, error::StoreError};

/// The time to connect, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A signature is good for so long. Clocks may differ by a part of it.
const SIGNED_FOR: Duration = Duration::from_secs(300);

/// Where the bucket is, and who writes to it.
#[derive(Clone)]
pub struct S3Config {
    /// The address of the service, like `https://s3.eu-central-1.amazonaws.com`.
    pub endpoint: Url,
    /// The region that signatures name.
    pub region: String,
    /// The bucket, which must be there.
    pub bucket: String,
    /// The beginning of all keys.
    pub prefix: String,
    /// True: the bucket is part of the path; false: of the host.
    pub is_path_style: bool,
    /// The id of the key.
    pub key_id: String,
    /// Its secret.
    pub secret: String,
    /// The token of keys that hold for a while.
    pub token: Option<String>,
}

/// A bucket of a store that speaks S3.
pub struct S3Store {
    http: Client,
    bucket: Bucket,
    credentials: Credentials,
    prefix: String,
}

impl S3Store {
    /// Makes the client. It connects to nothing yet.
    pub fn new(config: S3Config) -> Result<Self> {
        let style = if config.is_path_style {
            UrlStyle::Path
        } else {
            UrlStyle::VirtualHost
        };
        let bucket = Bucket::new(config.endpoint, style, config.bucket, config.region);
        let http = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(PUT_LIMIT)
            .redirect(reqwest::redirect::Policy::none())
            .build();
        let credentials = match config.token {
            Some(token) => Credentials::new_with_token(config.key_id, config.secret, token),
            None => Credentials::new(config.key_id, config.secret),
        };
        Ok(Self {
            http: http.map_err(away)?,
            bucket: bucket.map_err(|error| StoreError::ObjectsUnavailable(error.to_string()))?,
            credentials,
            prefix: config.prefix,
        })
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.http.request(method, url)
    }
}

#[async_trait]
impl ObjectStore for S3Store {
    fn key_of(&self, blob_id: &str) -> String {
        format!("{}{blob_id}", self.prefix)
    }

    async fn put(&self, key: &str, bytes: Vec<u8>, media_type: &str) -> Result<()> {
        let url = self.bucket.put_object(Some(&self.credentials), key);
        let request = self
            .request(Method::PUT, url.sign(SIGNED_FOR))
            .header(CONTENT_TYPE, media_type)
            .body(bytes);
        let answer = request.send().await.map_err(away)?;
        done(answer).await.map(drop)
    }

    async fn get(&self, key: &str, bytes: u32) -> Result<Option<Vec<u8>>> {
        let url = self.bucket.get_object(Some(&self.credentials), key);
        let request = self.request(Method::GET, url.sign(SIGNED_FOR));
        let answer = request.send().await.map_err(away)?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let mut answer = done(answer).await?;
        let most = bytes as usize;
        let mut read = Vec::with_capacity(most);
        while let Some(chunk) = answer.chunk().await.map_err(away)? {
            if read.len() + chunk.len() > most {
                let message = format!("the object `{key}` has more than {most} bytes");
                return Err(StoreError::Corrupt(message));
            }
            read.extend_from_slice(&chunk);
        }
        Ok(Some(read))
    }

    async fn remove(&self, key: &str) -> Result<()> {
        let url = self.bucket.delete_object(Some(&self.credentials), key);
        let request = self.request(Method::DELETE, url.sign(SIGNED_FOR));
        let answer = request.send().await.map_err(away)?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(());
        }
        done(answer).await.map(drop)
    }
}

/// The answer, unless the service refuses the request. What it says is not told: it may repeat the key's id.
async fn done(answer: Response) -> Result<Response> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    // The connection can be used again once the body is read.
    let _body = answer.bytes().await;
    Err(StoreError::ObjectsUnavailable(format!(
        "it answered with status {status}"
    )))
}

/// An address has a signature in it, so it is told to nobody.
fn away(error: reqwest::Error) -> StoreError {
    let error = error.without_url();
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    StoreError::ObjectsUnavailable(match cause {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    })
}
